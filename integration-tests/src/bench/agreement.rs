//! `bench agree`: seed after seed on the real control plane, with nominations and without.
//!
//! Invariant: every pod that did not go where it was planned is named. Without nominations that is what
//! kube-scheduler does by itself, and no miss.

use anyhow::{Result, ensure};

use super::args::AgreeArgs;
use super::say;
use crate::agree::{self, Cluster, Found, Tally, Way};

/// Share of planned pods that have to be bound where they are planned, in millionths.
const WANTED_PPM: usize = 999_000;

/// Carries out the plans and says how far kube-scheduler agrees.
///
/// # Errors
/// When the control plane does not start, a trial does not end, or fewer pods than wanted are bound
/// as planned.
pub fn agreement(args: &AgreeArgs) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(compare(args))
}

async fn compare(args: &AgreeArgs) -> Result<()> {
    let mut cluster = Cluster::start().await?;
    let seeds = || args.from..args.from.saturating_add(args.clusters);
    let mut rows = Vec::new();
    let way = Way { nominate: true, any_candidate: false };
    rows.push(("nominated", agree::agree(&mut cluster, seeds(), way, told).await?));
    let way = Way { nominate: true, any_candidate: true };
    rows.push(("nominated, any candidate", agree::agree(&mut cluster, seeds(), way, told).await?));
    if !args.nominated_only {
        let way = Way { nominate: false, any_candidate: false };
        let quiet = |_: &Found| Ok(());
        rows.push(("left alone", agree::agree(&mut cluster, seeds(), way, quiet).await?));
    }
    say(&agree::table(&rows))?;
    rows.iter().filter(|(name, _)| name.starts_with("nominated")).try_for_each(judge)
}

fn told(found: &Found) -> Result<()> {
    let misses = found.outcome.misses();
    misses.iter().try_for_each(|miss| say(&format!("seed {}: {miss}", found.seed)))
}

fn judge((name, tally): &(&str, Tally)) -> Result<()> {
    let share = tally.as_planned_ppm();
    ensure!(share >= WANTED_PPM, "{name}: {share} ppm of the pods were bound as planned");
    Ok(())
}
