//! What the planner fails on is left out, so that the rest of its cluster is planned.
//!
//! Invariant: only what waits or what a plan would be made of is left out, never anything that
//! runs; and nothing goes by choice while something is left out: a world with less in it than there
//! is must not end a node.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use longshore_core::answer::{Plan, Unplaced};
use longshore_core::question::PlanInput;
use longshore_core::reason::{Obstacle, Reason};
use longshore_core::vocabulary::ids::{ObjectKey, PodUid, PoolName, ShapeId};
use longshore_core::world::view::{ClusterView, ObjectRef, World};
use longshore_runtime::planted;
use tokio::time::Instant;

use super::foresight::Coming;

/// How long something is left out at most before the planner is asked about it again.
const LEFT_OUT_FOR: Duration = Duration::from_secs(10 * 60);
/// Most plans that are tried to find out what is at fault.
const TRIALS_MAX: usize = 64;

/// Something that the planner may fail on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Suspect {
    /// Pods of a shape that wait.
    Shape(ShapeId),
    /// A capacity buffer.
    Buffer(ObjectKey),
    /// A pool.
    Pool(PoolName),
}

impl fmt::Display for Suspect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape(shape) => write!(f, "waiting pods of shape {shape}"),
            Self::Buffer(buffer) => write!(f, "CapacityBuffer/{buffer}"),
            Self::Pool(pool) => write!(f, "NodePool/{pool}"),
        }
    }
}

/// What is left out of a cluster's plans.
#[derive(Default)]
pub struct Quarantine {
    held: BTreeMap<Suspect, Held>,
}

/// One thing that is left out.
struct Held {
    until: Instant,
    /// The object as the planner failed on it: another one is given another chance.
    content: String,
    said: String,
}

impl Quarantine {
    /// Leaves out what the planner was found to fail on, with what it said.
    pub fn hold(&mut self, found: BTreeSet<Suspect>, world: &World, said: &str) {
        let until = Instant::now() + LEFT_OUT_FOR;
        for suspect in found {
            tracing::error!(%suspect, said, "the planner fails on this; it is left out of plans");
            let held = Held { until, content: content(&suspect, world), said: said.to_owned() };
            self.held.insert(suspect, held);
        }
    }

    /// The question without what is left out, and what is to be said of that. Nothing goes by
    /// choice while anything is.
    pub fn applied(&mut self, input: PlanInput, coming: &mut Coming) -> (PlanInput, LeftOut) {
        let now = Instant::now();
        self.held.retain(|suspect, held| {
            held.until > now && held.content == content(suspect, &input.world)
        });
        let said = self.held.iter().map(|(suspect, held)| (suspect.clone(), held.said.clone()));
        let left_out = LeftOut { world: Arc::clone(&input.world), said: said.collect() };
        if self.held.is_empty() {
            return (input, left_out);
        }
        coming.retain(|shape, _| !self.held.contains_key(&Suspect::Shape(shape.clone())));
        let world = without(&input.world, self.held.keys());
        (PlanInput { world, consolidates: false, ..input }, left_out)
    }
}

/// What was left out of a plan.
pub struct LeftOut {
    /// The cluster with it.
    world: Arc<World>,
    said: Vec<(Suspect, String)>,
}

impl LeftOut {
    /// Says of pods and pools why they are not planned.
    pub fn tell(self, plan: &mut Plan, closed: &mut BTreeMap<PoolName, Obstacle>) {
        if self.said.is_empty() {
            return;
        }
        for (suspect, said) in self.said {
            let obstacle = Obstacle::PlannerFails { said };
            match suspect {
                Suspect::Shape(shape) => {
                    plan.unplaced.extend(unplaced(&self.world, &shape, obstacle));
                }
                Suspect::Pool(pool) => drop(closed.insert(pool, obstacle)),
                Suspect::Buffer(_) => {}
            }
        }
        plan.unplaced.sort_by(|a, b| a.shape.cmp(&b.shape));
    }
}

/// Everything that could be left out.
fn suspects(world: &World) -> Vec<Suspect> {
    let shapes = world.pending().map(|(shape, _)| Suspect::Shape(shape.clone()));
    let buffers = world.buffers.keys().cloned().map(Suspect::Buffer);
    let pools = world.pools.keys().cloned().map(Suspect::Pool);
    shapes.chain(buffers).chain(pools).collect()
}

/// What has to be left out for `fails` to be false, and nothing that does not: by halves
/// (QuickXplain, Junker, 2004). Empty when it does not fail, fails on what cannot be left out, or
/// would take too many trials.
#[must_use]
pub fn find(input: &PlanInput, fails: impl Fn(&PlanInput) -> bool) -> BTreeSet<Suspect> {
    if planted::is("S20q") {
        return BTreeSet::new();
    }
    let found = Search { input, fails, trials: 0 }.at_fault();
    found.into_iter().flatten().collect()
}

struct Search<'i, F> {
    input: &'i PlanInput,
    fails: F,
    trials: usize,
}

impl<F: Fn(&PlanInput) -> bool> Search<'_, F> {
    /// What is at fault; none when nothing is, or nobody may try any more.
    fn at_fault(&mut self) -> Option<Vec<Suspect>> {
        let all = suspects(&self.input.world);
        let nobodys = !self.fails_without(&[])? || self.fails_without(&all)?;
        if nobodys { None } else { self.needed(&[], &all) }
    }

    /// Whether it fails without these; none when nobody may try any more.
    fn fails_without(&mut self, left_out: &[Suspect]) -> Option<bool> {
        self.trials = Some(self.trials + 1).filter(|trials| *trials <= TRIALS_MAX)?;
        let world = without(&self.input.world, left_out.iter());
        Some((self.fails)(&PlanInput { world, ..self.input.clone() }))
    }

    /// Of `among`, which fails with `gone` left out and not with both, the least to leave out
    /// besides.
    fn needed(&mut self, gone: &[Suspect], among: &[Suspect]) -> Option<Vec<Suspect>> {
        if among.len() <= 1 {
            return Some(among.to_vec());
        }
        let (first, second) = among.split_at(among.len() / 2);
        let of_second = self.needed_after(&[gone, first].concat(), second)?;
        let of_first = self.needed_after(&[gone, of_second.as_slice()].concat(), first)?;
        Some([of_first, of_second].concat())
    }

    fn needed_after(&mut self, gone: &[Suspect], among: &[Suspect]) -> Option<Vec<Suspect>> {
        if self.fails_without(gone)? { self.needed(gone, among) } else { Some(Vec::new()) }
    }
}

fn without<'s>(world: &Arc<World>, left_out: impl Iterator<Item = &'s Suspect>) -> Arc<World> {
    let mut view = ClusterView::of(Arc::clone(world));
    for suspect in left_out {
        match suspect {
            Suspect::Shape(shape) => {
                for pod in waiting(world, shape) {
                    view.remove(ObjectRef::Pod(pod));
                }
            }
            Suspect::Buffer(key) => drop(view.remove(ObjectRef::Buffer(key.clone()))),
            Suspect::Pool(name) => drop(view.remove(ObjectRef::Pool(name.clone()))),
        }
    }
    view.snapshot()
}

/// Pods of a shape that wait, in order of UID.
fn waiting(world: &World, shape: &ShapeId) -> Vec<PodUid> {
    let pods = world.pending().filter(|(id, _)| *id == shape).flat_map(|(_, pods)| pods.keys());
    pods.cloned().collect()
}

/// An object as text, for telling whether it has changed or gone. A shape's id is that of its
/// content.
fn content(suspect: &Suspect, world: &World) -> String {
    match suspect {
        Suspect::Shape(shape) => format!("{:?}", waiting(world, shape).first().map(|_| shape)),
        Suspect::Buffer(key) => format!("{:?}", world.buffers.get(key)),
        Suspect::Pool(name) => format!("{:?}", world.pools.get(name)),
    }
}

fn unplaced(world: &World, shape: &ShapeId, obstacle: Obstacle) -> Option<Unplaced> {
    let (found, pods) = (world.shapes.get(shape)?, waiting(world, shape));
    let reason = Reason::leaf(found.subject(), obstacle);
    (!pods.is_empty()).then(|| Unplaced { shape: shape.clone(), pods, reason })
}

#[cfg(test)]
mod tests;
