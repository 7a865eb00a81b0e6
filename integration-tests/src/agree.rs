//! Agreement with the real kube-scheduler: seeded clusters are planned and the plans carried out on
//! a real control plane; then plan and bindings are compared.
//!
//! Invariant: the plan comes from manifests as `longshore plan` reads them, nominations and the
//! opening of nodes from the watcher's own directives; only the bindings count.

mod cluster;
mod daemons;
mod machines;
mod order;
mod question;
mod report;
mod trial;
mod verdict;

use std::ops::Range;

use anyhow::{Context as _, Result};

pub use cluster::Cluster;
pub use report::table;
pub use trial::Way;
pub use verdict::{Ended, Miss, Outcome, Planned, Tally};

/// What was found for one seed.
#[derive(Clone, Debug)]
pub struct Found {
    /// The seed.
    pub seed: u64,
    /// How it ended.
    pub outcome: Outcome,
}

/// Carries out the plans of these seeds, one after the other; `told` hears of each.
///
/// # Errors
/// When a plan is unsound, or a trial does not come to its end.
pub async fn agree(
    cluster: &mut Cluster,
    seeds: Range<u64>,
    way: Way,
    mut told: impl FnMut(&Found) -> Result<()>,
) -> Result<Tally> {
    let dir = tempfile::tempdir()?;
    let mut sum = Tally::default();
    for seed in seeds {
        let asked = question::ask(seed, dir.path())?;
        let ended = trial::carry_out(cluster, &asked, way).await;
        let outcome = ended.with_context(|| format!("seed {seed}"))?;
        sum = sum.plus(outcome.tally());
        told(&Found { seed, outcome })?;
    }
    Ok(sum)
}
