//! Plans carried out on the real control plane. Without this, a plan may be sound by our own rules and
//! yet leave pods pending on nodes that somebody pays for, or nodes launched for pods that
//! kube-scheduler puts elsewhere. `make deep` does the same for hundreds of clusters.

use anyhow::{Result, ensure};
use longshore_it::agree::{self, Cluster, Found, Way};

/// How many clusters, each with the cheapest candidates; half as many with any.
const CLUSTERS: u64 = 14;

#[tokio::test(flavor = "multi_thread")]
async fn pods_are_bound_where_they_are_planned() -> Result<()> {
    let mut cluster = Cluster::start().await?;
    let mut misses = Vec::new();
    let mut told = |found: &Found| {
        let said = found.outcome.misses();
        misses.extend(said.into_iter().map(|miss| format!("seed {}: {miss}", found.seed)));
        Ok(())
    };
    let cheapest = Way { nominate: true, any_candidate: false };
    let first = agree::agree(&mut cluster, 0..CLUSTERS, cheapest, &mut told).await?;
    let any = Way { nominate: true, any_candidate: true };
    let second = agree::agree(&mut cluster, CLUSTERS..CLUSTERS * 3 / 2, any, &mut told).await?;
    println!("{}", agree::table(&[("cheapest", first), ("any candidate", second)]));
    ensure!(first.planned > 100, "hardly anything was planned: {first:?}");
    ensure!(misses.is_empty(), "not as planned:\n{}", misses.join("\n"));
    Ok(())
}
