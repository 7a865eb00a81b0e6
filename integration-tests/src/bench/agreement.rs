//! `bench agree`: seed after seed on the real control plane, pinned, nominated and left alone.
//!
//! Invariant: every pod that did not go where it was planned is named. Left alone, that is what
//! kube-scheduler does by itself, and no miss.

use anyhow::{Result, ensure};

use longshore_watcher::args::Placement;

use super::args::AgreeArgs;
use super::say;
use crate::agree::{self, Cluster, Found, Tally, Way};

/// How plans are carried out.
const WAYS: [(&str, Option<Placement>); 3] = [
    ("pinned", Some(Placement::Pin)),
    ("nominated", Some(Placement::Nominate)),
    ("left alone", None),
];
/// Least share of planned places that a pinned pod of the shape has to have, in hundredths of a
/// percent.
const FLOOR_BASIS_POINTS: usize = 9_990;
/// Most of the impossible pods that may be bound on new nodes, in hundredths of a percent; why
/// there are any is said in docs/design/0002-realisation.md.
const IMPOSSIBLE_BASIS_POINTS_MAX: usize = 30;

/// Carries out the plans and says how far kube-scheduler agrees.
///
/// # Errors
/// When the control plane does not start, a trial does not end, too few places are taken as
/// planned, or a new node took a pod that the plan calls impossible.
pub fn agreement(args: &AgreeArgs) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(compare(args))
}

async fn compare(args: &AgreeArgs) -> Result<()> {
    let mut cluster = Cluster::start().await?;
    let mut rows = Vec::new();
    for (name, placement) in WAYS.into_iter().take(if args.pinned_only { 1 } else { WAYS.len() }) {
        let way = Way { placement, any_candidate: args.any_candidate };
        let heard = |found: &Found| if placement.is_some() { told(name, found) } else { Ok(()) };
        rows.push((name, agree::agree(&mut cluster, args.seeds.clone(), way, heard).await?));
    }
    say(&agree::table(&rows))?;
    rows.first().map_or(Ok(()), |(_, pinned)| judge(pinned))
}

fn told(way: &str, found: &Found) -> Result<()> {
    let misses = found.outcome.misses();
    misses.iter().try_for_each(|miss| say(&format!("{way}, seed {}: {miss}", found.seed)))
}

fn judge(found: &Tally) -> Result<()> {
    let (share, floor) = (found.realised_basis_points(), FLOOR_BASIS_POINTS);
    ensure!(share >= floor, "of ten thousand places {share} were taken as planned, not {floor}");
    ensure!(found.refused == 0, "the check refuses {} plans", found.refused);
    let (wrong, all) = (found.impossible_on_new, found.impossible);
    let few = wrong * 10_000 <= all * IMPOSSIBLE_BASIS_POINTS_MAX;
    ensure!(few, "{wrong} of {all} impossible pods were bound on new nodes");
    Ok(())
}
