//! Cases that make their own world in this process: how long a plan takes again and again, what a
//! cluster takes in memory, and what checking a proof takes.
//!
//! Invariant: the world is made before the clock starts, and every measured plan is made from the
//! world as it came. A case that is slow ends after a minute with the plans it has.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::ValueEnum;
use longshore_core::bound::BoundKind;
use longshore_core::certificate::{self, PodClass, PricedRoom, SharedRoom};
use longshore_core::ids::ShapeId;
use longshore_core::plan;
use longshore_core::question::{Effort, PlanInput};
use longshore_core::resources::Resources;
use longshore_core::world::shape::PodShape;
use serde::{Deserialize, Serialize};

use super::allocated::allocated;
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
    /// Most bytes held at once.
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
    let (_, allocated) = allocated(worlds::resident);
    Measured { runs: 1, bytes: allocated.peak, ..Measured::default() }
}

/// The proof by resource prices of one plan's bound, checked as `core::check` does, against every
/// offer there is. No runs when the plan comes with another kind of proof.
fn proofs() -> Result<Measured> {
    let input = worlds::small(0)?;
    let found = plan(&input);
    let launched = found.launches.iter().flat_map(|launch| &launch.pods);
    let shapes =
        launched.filter_map(|pod| input.world.shapes.get(&input.world.pods.get(pod)?.shape));
    let mut counts: BTreeMap<&ShapeId, (&PodShape, i64)> = BTreeMap::new();
    for shape in shapes {
        counts.entry(&shape.id).or_insert((shape, 0)).1 += 1;
    }
    let types = input.catalogues.values().flat_map(|catalogue| catalogue.types.values());
    let offers: Vec<PricedRoom> = types
        .flat_map(|kind| kind.offerings.iter().map(move |offering| (kind, offering)))
        .map(|(kind, offering)| PricedRoom {
            room: kind.allocatable(),
            price_micro_usd_per_hour: offering.price_micro_usd_per_hour,
        })
        .collect();
    let names: BTreeSet<&str> = counts.values().flat_map(|(s, _)| s.requests.names()).collect();
    let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
    let (classes, rooms) = shared(&names, &counts, &offers);
    let demand = counts.values().map(|(shape, count)| shape.requests.times(*count));
    let demand = demand.fold(Resources::default(), |sum, amount| sum.plus(&amount));
    let verify = || match found.bound.kind {
        BoundKind::ClassValues | BoundKind::PriceSets | BoundKind::WholeNodes => {
            certificate::verify_values(&found.bound, &names, &classes, &rooms)
        }
        BoundKind::ResourcePrices | BoundKind::None => {
            certificate::verify(&found.bound, &demand, offers.iter().cloned())
        }
    };
    if found.bound.kind == BoundKind::None || verify().is_err() {
        // Refusing a proof quickly is no measure of accepting it.
        return Ok(Measured::default());
    }
    let took = (0..PROOFS).map(|_| milliseconds(|| drop(verify())));
    Ok(timed(&took.collect::<Vec<_>>()))
}

/// The same question for a proof by values of pods: no pod of these worlds refuses a type.
fn shared(
    names: &[String],
    counts: &BTreeMap<&ShapeId, (&PodShape, i64)>,
    offers: &[PricedRoom],
) -> (Vec<PodClass>, Vec<SharedRoom>) {
    let vector = |amount: &Resources| names.iter().map(|name| amount.get(name)).collect();
    let class = |(id, (shape, count)): (&&ShapeId, &(&PodShape, i64))| PodClass {
        shape: (*id).clone(),
        request: vector(&shape.requests),
        count: *count,
    };
    let room = |offer: &PricedRoom| SharedRoom {
        price_micro_usd_per_hour: offer.price_micro_usd_per_hour,
        room: vector(&offer.room),
        admits: vec![true; counts.len()],
    };
    let distinct: BTreeSet<SharedRoom> = offers.iter().map(room).collect();
    (counts.iter().map(class).collect(), distinct.into_iter().collect())
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
