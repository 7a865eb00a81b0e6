//! `bench differ`: cluster after cluster to both planners, and where ours does worse.
//!
//! Invariant: worse is fewer pods placed, a higher price for as many, or a plan that the check
//! refuses. Where the check refuses the peer's plan, its price counts for nothing, and that is said.

use std::path::Path;

use anyhow::Result;

use super::args::{DifferArgs, Effort, Output, PackArgs};
use super::catalogues::Pool;
use super::outcome::Outcome;
use super::{pack, peer, say, workloads};
use crate::clusters;

/// How one cluster ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    /// Ours places more, or costs less.
    Better,
    /// Both do the same.
    Same,
    /// Ours is not better, and the peer's plan cannot be carried out.
    PeerIllegal,
    /// Ours costs more.
    Dearer,
    /// Ours places fewer pods.
    Fewer,
    /// Ours cannot be carried out.
    Illegal,
}

/// Compares clusters and says where ours does worse. The worse ones stay in the folder.
///
/// # Errors
/// When a side fails or a file cannot be written.
pub fn differ(args: &DifferArgs) -> Result<()> {
    std::fs::create_dir_all(&args.dir)?;
    let catalogue = workloads::write_catalogue(Pool::Mixed, &args.dir)?;
    let mut verdicts = Vec::new();
    for seed in args.from..args.from.saturating_add(args.clusters) {
        let file = args.dir.join(format!("cluster-{seed}.json"));
        std::fs::write(&file, clusters::cluster(seed).to_string() + "\n")?;
        let files = asked(&catalogue, &file);
        let (ours, theirs) = (pack::pack(&files)?, peer::peer(&files)?);
        let verdict = judge(&ours, &theirs);
        if verdict > Verdict::PeerIllegal {
            say(&line(seed, verdict, &ours, &theirs))?;
        } else {
            std::fs::remove_file(&file)?;
        }
        verdicts.push(verdict);
    }
    say(&summary(&verdicts))
}

fn asked(catalogue: &Path, file: &Path) -> PackArgs {
    PackArgs {
        catalogue: catalogue.to_owned(),
        workload: None,
        files: vec![file.to_owned()],
        max_cpu_milli: None,
        daemonset: None,
        effort: Effort::Default,
        output: Output::Json,
        list_violations: false,
    }
}

fn judge(ours: &Outcome, theirs: &Outcome) -> Verdict {
    let wrong = |outcome: &Outcome| outcome.violations.is_some_and(|found| found > 0);
    let dearer = ours.price_usd_per_hour - theirs.price_usd_per_hour;
    match ours.placed.cmp(&theirs.placed) {
        _ if wrong(ours) => Verdict::Illegal,
        std::cmp::Ordering::Greater => Verdict::Better,
        _ if dearer < -1e-7 && ours.placed == theirs.placed => Verdict::Better,
        _ if wrong(theirs) => Verdict::PeerIllegal,
        std::cmp::Ordering::Less => Verdict::Fewer,
        std::cmp::Ordering::Equal if dearer > 1e-7 => Verdict::Dearer,
        std::cmp::Ordering::Equal => Verdict::Same,
    }
}

fn line(seed: u64, verdict: Verdict, ours: &Outcome, theirs: &Outcome) -> String {
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
    format!("cluster {seed}: {verdict:?}: {}; peer {}", side(ours), side(theirs))
}

fn summary(verdicts: &[Verdict]) -> String {
    let count = |wanted: Verdict| verdicts.iter().filter(|found| **found == wanted).count();
    let all = [
        Verdict::Better,
        Verdict::Same,
        Verdict::PeerIllegal,
        Verdict::Dearer,
        Verdict::Fewer,
        Verdict::Illegal,
    ];
    let counts = all.map(|verdict| format!("{verdict:?} {}", count(verdict)));
    format!("{} clusters: {}", verdicts.len(), counts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(placed: u64, price_usd_per_hour: f64, violations: u64) -> Outcome {
        let violations = Some(violations);
        Outcome { placed, price_usd_per_hour, violations, ..Outcome::default() }
    }

    #[test]
    fn worse_is_what_is_worse_against_a_legal_plan() {
        let peer = outcome(5, 1.0, 0);
        let table = [
            (outcome(5, 1.0, 0), Verdict::Same),
            (outcome(5, 0.9, 0), Verdict::Better),
            (outcome(6, 2.0, 0), Verdict::Better),
            (outcome(5, 1.1, 0), Verdict::Dearer),
            (outcome(4, 0.5, 0), Verdict::Fewer),
            (outcome(6, 0.5, 1), Verdict::Illegal),
        ];
        for (ours, verdict) in table {
            assert_eq!(judge(&ours, &peer), verdict, "{ours:?}");
        }
        let illegal = outcome(6, 0.5, 1);
        assert_eq!(judge(&outcome(5, 1.0, 0), &illegal), Verdict::PeerIllegal);
        assert_eq!(judge(&outcome(6, 0.4, 0), &illegal), Verdict::Better);
    }
}
