//! `bench agree`: seed after seed on the real control plane, with nominations and without.
//!
//! Invariant: every pod that did not go where it was planned is named. Without nominations that is what
//! kube-scheduler does by itself, and no miss.

use anyhow::{Result, ensure};

use super::args::AgreeArgs;
use super::say;
use crate::agree::{self, Cluster, Found, Tally, Way};

/// Least share of planned places that a pod of the shape has to have with nominations, in hundredths
/// of a percent.
const FLOOR_BASIS_POINTS: usize = 9_000;
/// Most of the impossible pods that may be bound on new nodes, in hundredths of a percent: pods that
/// moved make room, or company, that the plan does not have.
const IMPOSSIBLE_BASIS_POINTS_MAX: usize = 100;

/// Carries out the plans and says how far kube-scheduler agrees.
///
/// # Errors
/// When the control plane does not start, a trial does not end, too few places are taken as planned,
/// or a new node took a pod that the plan calls impossible.
pub fn agreement(args: &AgreeArgs) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(compare(args))
}

async fn compare(args: &AgreeArgs) -> Result<()> {
    let mut cluster = Cluster::start().await?;
    let seeds = || args.seeds.clone();
    let any_candidate = args.any_candidate;
    let way = Way { nominate: true, any_candidate };
    let mut rows = vec![("nominated", agree::agree(&mut cluster, seeds(), way, told).await?)];
    if !args.nominated_only {
        let way = Way { nominate: false, any_candidate };
        let quiet = |_: &Found| Ok(());
        rows.push(("left alone", agree::agree(&mut cluster, seeds(), way, quiet).await?));
    }
    say(&agree::table(&rows))?;
    rows.first().map_or(Ok(()), |(_, nominated)| judge(nominated))
}

fn told(found: &Found) -> Result<()> {
    let misses = found.outcome.misses();
    misses.iter().try_for_each(|miss| say(&format!("seed {}: {miss}", found.seed)))
}

fn judge(nominated: &Tally) -> Result<()> {
    let (share, floor) = (nominated.realised_basis_points(), FLOOR_BASIS_POINTS);
    ensure!(share >= floor, "of ten thousand places {share} were taken as planned, not {floor}");
    ensure!(nominated.refused == 0, "the check refuses {} plans", nominated.refused);
    let (wrong, all) = (nominated.impossible_on_new, nominated.impossible);
    let few = wrong * 10_000 <= all * IMPOSSIBLE_BASIS_POINTS_MAX;
    ensure!(few, "{wrong} of {all} impossible pods were bound on new nodes");
    Ok(())
}
