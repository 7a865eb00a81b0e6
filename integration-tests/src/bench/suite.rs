//! `bench all`: every row and every case, and the documents made of them.
//!
//! Invariant: what is not measured is not written down as if it were; a floor that is missed is
//! marked, and the documents are written all the same.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use super::args::AllArgs;
use super::catalogues::Pool;
use super::latency::{Case as LatencyCase, Measured};
use super::results::Results;
use super::runs::{self, Case, Pace, Row, Side};
use super::{chart, goals, machine, report, say};

/// Everything, with time for the rows that take the peer minutes.
const FULL: Pace =
    Pace { runs: 10, enough: Duration::from_secs(20), limit: Duration::from_secs(600) };
const QUICK: Pace =
    Pace { runs: 3, enough: Duration::from_secs(5), limit: Duration::from_secs(60) };

const SHORT: [(&str, Pool); 20] = [
    ("seed-4", Pool::Cmr),
    ("seed-100", Pool::Cmr),
    ("basic", Pool::Cmr),
    ("wide", Pool::Cmr),
    ("generic-1000", Pool::Cmr),
    ("generic-5000", Pool::Cmr),
    ("classes-100", Pool::Cmr),
    ("basic", Pool::Cmr64),
    ("wide", Pool::Cmr64),
    ("generic-1000", Pool::Cmr64),
    ("generic-5000", Pool::Cmr64),
    ("basic", Pool::Cmr32),
    ("wide", Pool::Cmr32),
    ("generic-1000", Pool::Cmr32),
    ("generic-5000", Pool::Cmr32),
    ("third", Pool::Cmr32),
    ("diverse-1", Pool::Linear),
    ("diverse-50", Pool::Linear),
    ("diverse-100", Pool::Linear),
    ("diverse-500", Pool::Linear),
];

/// Rows for which quick runs do not ask the peer, as it takes minutes.
const LONG: [(&str, Pool); 6] = [
    ("generic-20000", Pool::Cmr),
    ("generic-100000", Pool::Cmr),
    ("distinct-20000", Pool::Cmr),
    ("diverse-1000", Pool::Cmr),
    ("diverse-5000", Pool::Linear),
    ("diverse-20000", Pool::Linear),
];

/// Rows without the peer, which would take hours over pods that fit nothing.
const ALONE: [(&str, Pool); 2] = [("generic-30000", Pool::Cmr), ("poison", Pool::Cmr)];

/// Rows of the table.
fn cases(quick: bool) -> Vec<Case> {
    let case = |peer| move |(workload, pool)| Case { workload, pool, peer };
    let short = SHORT.into_iter().map(case(true));
    let long = LONG.into_iter().map(case(!quick));
    short.chain(long).chain(ALONE.into_iter().map(case(false))).collect()
}

/// Measures everything and writes the documents.
///
/// # Errors
/// When a side fails or a document cannot be written.
pub fn all(args: &AllArgs) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (quick, commit) = (args.quick, machine::commit());
    let mut results = Results { quick, commit, ..Results::default() };
    let pace = if args.quick { QUICK } else { FULL };
    for case in cases(args.quick) {
        say(&format!("{} on {}", case.workload, case.pool.name()))?;
        results.rows.push(measured(case, pace, dir.path())?);
        write(&results, &args.out)?;
    }
    for (name, case) in LATENCIES {
        say(&format!("latency {name}"))?;
        let found = runs::answer(&["latency".to_owned(), name.to_owned()], LATENCY_LIMIT)?;
        results.cases.extend(found.map(|found: Measured| (case, found)));
    }
    write(&results, &args.out)?;
    say(&goals::table(&results))
}

/// A case ends by itself long before, unless one plan takes minutes.
const LATENCY_LIMIT: Duration = Duration::from_secs(600);

/// The cases, as the arguments spell them.
const LATENCIES: [(&str, LatencyCase); 6] = [
    ("small", LatencyCase::Small),
    ("small-default", LatencyCase::SmallDefault),
    ("large", LatencyCase::Large),
    ("large-default", LatencyCase::LargeDefault),
    ("state", LatencyCase::State),
    ("certificate", LatencyCase::Certificate),
];

fn measured(case: Case, pace: Pace, dir: &Path) -> Result<Row> {
    let row = runs::measure(case, pace, dir)?;
    let told = |side: &Side| match &side.outcome {
        Some(found) => format!("{:.4} $/h in {:.6} s", found.price_usd_per_hour, side.seconds),
        None if side.runs > 0 => format!("given up after {} s", side.seconds),
        None => "not asked".to_owned(),
    };
    say(&format!("  {}; peer {}", told(&row.ours), told(&row.peer)))?;
    Ok(row)
}

fn write(results: &Results, dir: &Path) -> Result<()> {
    std::fs::create_dir_all(dir)?;
    std::fs::write(dir.join("benchmarks.md"), report::document(results))?;
    std::fs::write(dir.join("benchmarks.svg"), chart::svg(&results.rows))?;
    Ok(())
}
