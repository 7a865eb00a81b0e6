//! Plans carried out on the real control plane. Without this, a plan may be sound by our own rules
//! and yet leave pods pending on nodes that somebody pays for, or nodes launched for pods that
//! kube-scheduler puts elsewhere. `make deep` does the same for hundreds of clusters.

use std::fmt::Write as _;

use anyhow::{Result, ensure};
use longshore_it::agree::{self, Cluster, Found, Way};
use longshore_watcher::args::Placement;

/// How many clusters.
const CLUSTERS: u64 = 12;
/// Least share of planned places taken as planned, in hundredths of a percent.
const FLOOR_BASIS_POINTS: usize = 9_990;

#[tokio::test(flavor = "multi_thread")]
async fn planned_places_are_taken_and_impossible_pods_are_not_bound() -> Result<()> {
    let mut cluster = Cluster::start().await?;
    let mut misses = String::new();
    let told = |found: &Found| {
        let all = found.outcome.misses();
        Ok(all.iter().try_for_each(|miss| writeln!(misses, "seed {}: {miss}", found.seed))?)
    };
    let way = Way { placement: Some(Placement::Pin), any_candidate: false };
    let tally = agree::agree(&mut cluster, 0..CLUSTERS, way, told).await?;
    ensure!(tally.planned > 100 && tally.impossible > 10, "hardly anything was asked: {tally:?}");
    ensure!(tally.free > 10 && tally.written > 10, "all are told, or none: {tally:?}");
    let told_at_most = tally.planned - tally.free;
    ensure!(tally.written <= told_at_most, "{} of {told_at_most} were told", tally.written);
    let share = tally.realised_basis_points();
    ensure!(share >= FLOOR_BASIS_POINTS, "{share} of ten thousand as planned:\n{misses}");
    ensure!(tally.refused == 0, "the check refuses plans:\n{misses}");
    ensure!(tally.impossible_on_new == 0, "impossible pods were bound:\n{misses}");
    Ok(())
}
