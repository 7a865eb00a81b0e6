//! `bench differ`: cluster after cluster to both planners, and where ours does worse.
//!
//! Invariant: where ours does worse for no named difference, the command fails. What is compared is
//! price and pods placed; who took longer is said and never decides.

mod difference;
mod verdict;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use serde_json::Value;

use super::args::{DifferArgs, Effort, Output, PackArgs};
use super::catalogues::Pool;
use super::numbers::{count, percentile};
use super::outcome::Outcome;
use super::{pack, peer, say, workloads};
use crate::clusters;
use difference::Difference;
use verdict::Verdict;

/// How often the peer is asked again before its answer counts as the one it always gives.
const AGAIN: usize = 4;

/// How one cluster ended.
struct Found {
    verdict: Verdict,
    why: Option<Difference>,
    ours: Outcome,
    theirs: Outcome,
}

impl Found {
    fn is_unnamed(&self) -> bool {
        self.verdict.is_worse() && self.why.is_none()
    }
}

/// Where files go that both sides read.
struct Bench {
    catalogue: PathBuf,
    dir: PathBuf,
}

/// Compares clusters and lists those that are not simply better or the same; they stay in the
/// folder.
///
/// # Errors
/// When ours does worse somewhere for no named difference, a side fails, or a file cannot be
/// written.
pub fn differ(args: &DifferArgs) -> Result<()> {
    std::fs::create_dir_all(&args.dir)?;
    let catalogue = workloads::write_catalogue(Pool::Mixed, &args.dir)?;
    let bench = Bench { catalogue, dir: args.dir.clone() };
    let mut all = Vec::new();
    for seed in args.seeds.clone() {
        let found = bench.compare(&format!("cluster-{seed}"), &clusters::cluster(seed))?;
        if !found.verdict.is_no_worse() {
            say(&line(seed, &found))?;
        }
        all.push(found);
    }
    say(&table(&all))?;
    let unnamed = all.iter().filter(|found| found.is_unnamed()).count();
    let dir = args.dir.display();
    ensure!(unnamed == 0, "ours does worse on {unnamed} clusters for no named reason; see {dir}");
    Ok(())
}

impl Bench {
    /// Both plans of a cluster. Its file stays unless ours does as well or better.
    fn compare(&self, name: &str, cluster: &Value) -> Result<Found> {
        let file = self.dir.join(format!("{name}.json"));
        let (ours, theirs) = self.ask(&file, cluster)?;
        let verdict = Verdict::of(&ours, &theirs);
        let mut found = Found { verdict, why: None, ours, theirs };
        if found.verdict.is_worse() {
            found.why = self.explain(&file, cluster, &found)?;
        }
        if found.verdict.is_no_worse() {
            std::fs::remove_file(&file)?;
        }
        Ok(found)
    }

    fn ask(&self, file: &Path, cluster: &Value) -> Result<(Outcome, Outcome)> {
        std::fs::write(file, cluster.to_string() + "\n")?;
        let files = self.files(file);
        Ok((pack::pack(&files)?, peer::peer(&files)?))
    }

    /// The difference without which ours does not do worse. A plan of ours that the check refuses
    /// has no excuse.
    fn explain(&self, file: &Path, cluster: &Value, found: &Found) -> Result<Option<Difference>> {
        if found.verdict == Verdict::Refused {
            return Ok(None);
        }
        for _ in 0..AGAIN {
            let theirs = peer::peer(&self.files(file))?;
            if Verdict::of(&found.ours, &theirs).is_no_worse() {
                return Ok(Some(Difference::Chance));
            }
        }
        let without = file.with_extension("without.json");
        for difference in Difference::IN_CLUSTERS {
            let Some(cluster) = difference.taken_out(cluster) else { continue };
            let (ours, theirs) = self.ask(&without, &cluster)?;
            std::fs::remove_file(&without)?;
            if Verdict::of(&ours, &theirs).is_no_worse() {
                return Ok(Some(difference));
            }
        }
        Ok(None)
    }

    fn files(&self, file: &Path) -> PackArgs {
        PackArgs {
            catalogue: self.catalogue.clone(),
            workload: None,
            files: vec![file.to_owned()],
            max_cpu_milli: None,
            daemonset: None,
            effort: Effort::Default,
            output: Output::Json,
            list_violations: false,
        }
    }
}

fn line(seed: u64, found: &Found) -> String {
    let side = |outcome: &Outcome| {
        format!(
            "{} of {} pods, {} nodes, {:.4} $/h, {} violations",
            outcome.placed,
            outcome.pods,
            outcome.nodes,
            outcome.price_usd_per_hour,
            outcome.violations.unwrap_or(0)
        )
    };
    let why = match found.why {
        Some(difference) => format!(" ({})", difference.name()),
        None if found.is_unnamed() => " (no named difference)".to_owned(),
        None => String::new(),
    };
    let (ours, theirs) = (side(&found.ours), side(&found.theirs));
    format!("cluster {seed}: {}{why}: {ours}; peer {theirs}", found.verdict.says())
}

/// How many clusters ended how, and who took longer.
fn table(all: &[Found]) -> String {
    let mut lines =
        vec!["| clusters | ours against the peer |".to_owned(), "|---:|---|".to_owned()];
    for verdict in Verdict::ALL {
        let mut named: BTreeMap<Option<Difference>, usize> = BTreeMap::new();
        let ended = all.iter().filter(|found| found.verdict == verdict);
        ended.for_each(|found| *named.entry(found.why).or_default() += 1);
        for (why, number) in named {
            let why = match why {
                Some(difference) => format!(": {}", difference.name()),
                None if verdict.is_worse() => ": **no named difference**".to_owned(),
                None => String::new(),
            };
            lines.push(format!("| {number} | {}{why} |", verdict.says()));
        }
    }
    let took = |of: fn(&Found) -> f64| -> Vec<f64> { all.iter().map(of).collect() };
    let (ours, theirs) = (
        took(|found| found.ours.plan_seconds * 1e3),
        took(|found| found.theirs.plan_seconds * 1e3),
    );
    let longer = ours.iter().zip(&theirs).filter(|(ours, theirs)| ours > theirs).count();
    lines.push(format!(
        "\nA plan took {:.1} ms (p50) and {:.1} ms (p99), the peer's {:.1} and {:.1}; ours took longer on {} of {}.",
        percentile(&ours, 50),
        percentile(&ours, 99),
        percentile(&theirs, 50),
        percentile(&theirs, 99),
        count(longer),
        count(all.len()),
    ));
    lines.join("\n")
}
