//! Cases that make their own world in this process: how long a plan takes again and again, what a
//! cluster takes in memory, and what checking a proof takes.
//!
//! Invariant: the world is made before the clock starts, and every measured plan is made from the
//! world as it came. A case that is slow ends after a minute with the plans it has.

use std::time::{Duration, Instant};

use anyhow::Result;
use clap::ValueEnum;
use longshore_core::bound::BoundKind;
use longshore_core::certificate::{self, PricedRoom};
use longshore_core::plan::{Effort, PlanInput, plan};
use longshore_core::resources::Resources;
use serde::{Deserialize, Serialize};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region};

use super::numbers::{count, percentile};
use super::worlds;

/// Most plans of a case, each of the small ones of another world.
const SMALL_WORLDS: u64 = 300;
const LARGE_PLANS: usize = 20;
const PROOFS: usize = 200;
/// After so long no further plan is begun.
const ENOUGH: Duration = Duration::from_secs(60);

/// A case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Case {
    /// A thousand pods in 200 classes onto an empty cluster, first good plan.
    Small,
    /// The same at default effort.
    SmallDefault,
    /// A hundred thousand pods in 500 classes onto 10,000 nodes, first good plan.
    Large,
    /// The same at default effort.
    LargeDefault,
    /// The planner's view of 10,000 nodes with their claims and 100,000 pods.
    State,
    /// Checking the proof of one bound.
    Certificate,
}

/// What was measured.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Measured {
    /// Number of plans, or of proofs.
    pub runs: u64,
    /// Half of them took no longer, in thousandths of a second.
    pub p50_ms: f64,
    /// Of a hundred, 99 took no longer.
    pub p99_ms: f64,
    /// Bytes held.
    pub bytes: u64,
}

/// Measures a case.
///
/// # Errors
/// When the embedded facts cannot be read.
pub fn measure(case: Case) -> Result<Measured> {
    match case {
        Case::Small => small(Effort::Greedy),
        Case::SmallDefault => small(Effort::Default),
        Case::Large => large(Effort::Greedy),
        Case::LargeDefault => large(Effort::Default),
        Case::State => Ok(state()),
        Case::Certificate => proofs(),
    }
}

fn small(effort: Effort) -> Result<Measured> {
    let begun = Instant::now();
    let seeds = (0..SMALL_WORLDS).take_while(|_| begun.elapsed() < ENOUGH);
    let took = seeds.map(|seed| {
        let input = PlanInput { effort, ..worlds::small(seed)? };
        Ok(milliseconds(|| drop(plan(&input))))
    });
    Ok(timed(&took.collect::<Result<Vec<_>>>()?))
}

fn large(effort: Effort) -> Result<Measured> {
    let input = PlanInput { effort, ..worlds::large()? };
    let begun = Instant::now();
    let turns = (0..LARGE_PLANS).take_while(|_| begun.elapsed() < ENOUGH);
    let took = turns.map(|_| milliseconds(|| drop(plan(&input))));
    Ok(timed(&took.collect::<Vec<_>>()))
}

fn state() -> Measured {
    let region = Region::new(&INSTRUMENTED_SYSTEM);
    let view = worlds::resident();
    let change = region.change();
    let bytes = count(change.bytes_allocated.saturating_sub(change.bytes_deallocated));
    drop(view);
    Measured { runs: 1, bytes, ..Measured::default() }
}

/// The proof by resource prices of one plan's bound, checked as `core::check` does, against every offer
/// there is. No runs when the plan comes with another kind of proof.
fn proofs() -> Result<Measured> {
    let input = worlds::small(0)?;
    let found = plan(&input);
    let mut demand = Resources::default();
    for pod in found.launches.iter().flat_map(|launch| &launch.pods) {
        let shape = input.world.pods.get(pod).and_then(|pod| input.world.shapes.get(&pod.shape));
        demand = shape.map_or(demand.clone(), |shape| demand.plus(&shape.requests));
    }
    let types = input.catalogues.values().flat_map(|catalogue| catalogue.types.values());
    let offers: Vec<PricedRoom> = types
        .flat_map(|kind| kind.offerings.iter().map(move |offering| (kind, offering)))
        .map(|(kind, offering)| PricedRoom {
            room: kind.allocatable(),
            price_micro_usd_per_hour: offering.price_micro_usd_per_hour,
        })
        .collect();
    let verify = || certificate::verify(&found.bound, &demand, offers.iter().cloned());
    if found.bound.kind != BoundKind::ResourcePrices || verify().is_err() {
        // Another kind of proof has a check of its own; refusing this one quickly is no measure of it.
        return Ok(Measured::default());
    }
    let took = (0..PROOFS).map(|_| milliseconds(|| drop(verify())));
    Ok(timed(&took.collect::<Vec<_>>()))
}

fn milliseconds(work: impl FnOnce()) -> f64 {
    let started = Instant::now();
    work();
    started.elapsed().as_secs_f64() * 1e3
}

fn timed(all: &[f64]) -> Measured {
    Measured {
        runs: count(all.len()),
        p50_ms: percentile(all, 50),
        p99_ms: percentile(all, 99),
        bytes: 0,
    }
}
