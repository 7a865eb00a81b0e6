//! `bench all`: every row and every case, and the documents made of them.
//!
//! Invariant: what is not measured is not written down as if it were; a floor that is missed is
//! marked, and the documents are written all the same.

use std::path::Path;

use anyhow::Result;

use super::args::AllArgs;
use super::catalogues::Pool;
use super::latency::{Case as LatencyCase, Measured};
use super::report::Results;
use super::runs::{self, Case, Row};
use super::{chart, goals, report, say};

/// Runs of ours, and of the peer where it takes seconds and where it takes minutes.
#[derive(Clone, Copy, Debug)]
struct Pace {
    ours: usize,
    peer: usize,
    quick: bool,
}

impl Pace {
    const fn new(quick: bool) -> Self {
        if quick { Self { ours: 3, peer: 1, quick } } else { Self { ours: 10, peer: 10, quick } }
    }

    /// A row that the peer answers within a second or two.
    const fn short(self, workload: &'static str, pool: Pool) -> Case {
        Case { workload, pool, ours: self.ours, peer: self.peer }
    }

    /// A row that takes the peer so long that it is asked once.
    const fn long(self, workload: &'static str, pool: Pool) -> Case {
        Case { workload, pool, ours: self.ours, peer: 1 }
    }

    /// A row that takes it minutes: quick runs do without.
    const fn longest(self, workload: &'static str, pool: Pool) -> Case {
        Case { workload, pool, ours: self.ours, peer: if self.quick { 0 } else { 1 } }
    }

    /// A row without the peer.
    const fn alone(self, workload: &'static str, pool: Pool) -> Case {
        Case { workload, pool, ours: self.ours, peer: 0 }
    }
}

/// Rows of the table.
fn cases(pace: Pace) -> Vec<Case> {
    let mut all = vec![
        pace.short("seed-4", Pool::Cmr),
        pace.short("seed-100", Pool::Cmr),
        pace.short("basic", Pool::Cmr),
        pace.short("wide", Pool::Cmr),
        pace.short("generic-1000", Pool::Cmr),
        pace.short("generic-5000", Pool::Cmr),
        pace.long("generic-20000", Pool::Cmr),
        pace.longest("generic-100000", Pool::Cmr),
        pace.long("classes-100", Pool::Cmr),
        pace.longest("distinct-20000", Pool::Cmr),
        pace.alone("generic-30000", Pool::Cmr),
        pace.alone("poison", Pool::Cmr),
    ];
    for pool in [Pool::Cmr64, Pool::Cmr32] {
        let short = ["basic", "wide", "generic-1000"].map(|name| pace.short(name, pool));
        all.extend(short);
        all.push(pace.long("generic-5000", pool));
    }
    all.push(pace.short("third", Pool::Cmr32));
    let diverse = ["diverse-1", "diverse-50", "diverse-100", "diverse-500"];
    all.extend(diverse.map(|name| pace.short(name, Pool::Linear)));
    all.push(pace.long("diverse-1000", Pool::Linear));
    all.push(pace.long("diverse-1000", Pool::Cmr));
    all.push(pace.long("diverse-5000", Pool::Linear));
    all.push(pace.longest("diverse-20000", Pool::Linear));
    all
}

/// Measures everything and writes the documents.
///
/// # Errors
/// When a side fails or a document cannot be written.
pub fn all(args: &AllArgs) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let mut results = Results { quick: args.quick, ..Results::default() };
    for case in cases(Pace::new(args.quick)) {
        say(&format!("{} on {}", case.workload, case.pool.name()))?;
        results.rows.push(measured(case, dir.path())?);
    }
    for case in LATENCIES {
        say(&format!("latency {}", case.0))?;
        let found: Measured = runs::answer(&["latency".to_owned(), case.0.to_owned()])?;
        results.cases.push((case.1, found));
    }
    write(&results, &args.out)?;
    say(&goals::table(&results))
}

/// The cases, as the arguments spell them.
const LATENCIES: [(&str, LatencyCase); 6] = [
    ("small", LatencyCase::Small),
    ("small-default", LatencyCase::SmallDefault),
    ("large", LatencyCase::Large),
    ("large-default", LatencyCase::LargeDefault),
    ("state", LatencyCase::State),
    ("certificate", LatencyCase::Certificate),
];

fn measured(case: Case, dir: &Path) -> Result<Row> {
    let row = runs::measure(case, dir)?;
    let peer = row.peer.as_ref();
    let theirs = peer.map_or_else(String::new, |peer| {
        format!("; peer {:.4} $/h in {:.3} s", peer.price_usd_per_hour, peer.plan_seconds)
    });
    let ours = &row.ours;
    say(&format!("  {:.4} $/h in {:.6} s{theirs}", ours.price_usd_per_hour, ours.plan_seconds))?;
    Ok(row)
}

fn write(results: &Results, dir: &Path) -> Result<()> {
    std::fs::create_dir_all(dir)?;
    std::fs::write(dir.join("benchmarks.md"), report::document(results))?;
    std::fs::write(dir.join("benchmarks.svg"), chart::svg(&results.rows))?;
    Ok(())
}
