//! The world with names resolved to indexes: what every later step of a plan reads.
//!
//! Invariant: built once for each plan, from the input alone; shapes are numbered in order of id
//! and existing nodes in order of preference.

pub(crate) mod existing;
pub(crate) mod possible_labels;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::answer::NewNode;
use crate::answer::steps::Resolved;
use crate::model::existing::ExistingNode;
use crate::offers::market::Market;
use crate::pack::problem::vector::{Dims, Vector};
use crate::planted;
use crate::question::PlanInput;
use crate::vocabulary::ids::{NodeName, ShapeId};
use crate::vocabulary::labels::Labels;
use crate::vocabulary::requirements::Requirements;
use crate::vocabulary::taint::{Taint, untolerated};
use crate::world::buffer::{BUFFER_PODS_MAX, BUFFERED_PODS_MAX, CapacityBuffer};
use crate::world::claim::NodeClaim;
use crate::world::pod::Pod;
use crate::world::shape::PodShape;
use crate::world::topology::{Heights, Topology};
use crate::world::view::{PodSet, World};

/// The resolved world.
#[derive(Debug)]
pub(crate) struct Model<'a> {
    /// What it was made from.
    pub(crate) input: &'a PlanInput,
    /// All shapes.
    pub(crate) shapes: Vec<&'a PodShape>,
    index: BTreeMap<&'a ShapeId, usize>,
    /// Where pods of each shape may go by themselves.
    pub(crate) alternatives: Vec<Vec<Requirements>>,
    /// Resources in use.
    pub(crate) dims: Dims,
    /// What one pod of each shape requests.
    pub(crate) requests: Vec<Vector>,
    /// Pods to place, by shape, in order of UID.
    pub(crate) demand: Vec<Vec<&'a Arc<Pod>>>,
    /// Existing and coming nodes.
    pub(crate) existing_nodes: Vec<ExistingNode<'a>>,
    /// What can be bought.
    pub(crate) market: Market<'a>,
    /// Rules between pods, with everything that stays counted.
    pub(crate) topology: Topology,
    /// Shapes of DaemonSets.
    pub(crate) daemons: Vec<usize>,
    /// Pods of capacity buffers to find room for, by shape.
    pub(crate) buffered: BTreeMap<usize, i64>,
    /// Claims by the node they made.
    pub(crate) claim_of: BTreeMap<NodeName, Arc<NodeClaim>>,
}

impl<'a> Model<'a> {
    /// Pods of each shape that wait and can be placed at all.
    pub(crate) fn schedulable(&self) -> Vec<i64> {
        let count = |shape: usize| match self.shapes[shape].unschedulable {
            Some(_) => 0,
            None => i64::try_from(self.demand[shape].len()).unwrap_or(i64::MAX),
        };
        (0..self.shapes.len()).map(count).collect()
    }

    /// How much there is of everything.
    pub(crate) fn counts(&self) -> Resolved {
        Resolved {
            shapes: self.shapes.len(),
            pods: self.demand.iter().map(Vec::len).sum(),
            nodes: self.existing_nodes.len(),
        }
    }

    /// Resolves the input.
    pub(crate) fn new(input: &'a PlanInput) -> Self {
        Self::resolve(input, &Heights::new())
    }

    /// Resolves the input, with spreads over hosts of these heights.
    pub(crate) fn resolve(input: &'a PlanInput, heights: &Heights) -> Self {
        let world = input.world.as_ref();
        let shapes: Vec<&PodShape> = world.shapes.values().map(AsRef::as_ref).collect();
        let index: BTreeMap<&ShapeId, usize> =
            world.shapes.keys().enumerate().map(|(at, id)| (id, at)).collect();
        let dims = Dims::of(shapes.iter().filter(|s| !s.is_daemon).map(|s| &s.requests));
        let daemons: BTreeSet<usize> =
            world.daemon_sets.values().filter_map(|set| index.get(&set.shape).copied()).collect();
        let mut model = Self {
            input,
            alternatives: shapes.iter().map(|shape| shape.node_alternatives()).collect(),
            requests: shapes.iter().map(|shape| dims.vector(&shape.requests)).collect(),
            demand: vec![Vec::new(); shapes.len()],
            existing_nodes: Vec::new(),
            market: Market { pools: Vec::new(), tiers: 0 },
            topology: Topology::of(&shapes, heights),
            daemons: daemons.into_iter().collect(),
            buffered: buffered(world, &index),
            claim_of: world.claims_by_node(),
            shapes,
            index,
            dims,
        };
        model.add_pending();
        let waiting: Vec<usize> = model.demand.iter().map(Vec::len).collect();
        model.existing_nodes = existing::all(&mut model);
        model.sort_demand(&waiting);
        let buyers: Vec<&PodShape> = model.buyers().map(|shape| model.shapes[shape]).collect();
        model.market = Market::open(input, &buyers);
        model
    }

    /// Index of a pod's shape; none when the shape has not arrived.
    pub(crate) fn shape_of(&self, pod: &Pod) -> Option<usize> {
        self.index.get(&pod.shape).copied()
    }

    /// Node or claim that a waiting pod is nominated to or was planned for.
    pub(crate) fn preference(&self, pod: &'a Pod) -> Option<&'a str> {
        let planned = || self.input.earlier.get(&pod.uid).map(String::as_str);
        pod.nominated_node.as_ref().map(NodeName::as_str).or_else(planned)
    }

    /// DaemonSets of which a pod runs on a node with exactly these labels and taints.
    pub(crate) fn daemons_on(
        &self,
        labels: &Labels,
        taints: &[Taint],
    ) -> impl Iterator<Item = usize> {
        self.daemons.iter().copied().filter(|daemon| {
            untolerated(taints, &self.shapes[*daemon].tolerations).is_none()
                && self.alternatives[*daemon].iter().any(|wanted| wanted.allow(labels))
        })
    }

    /// Index of a shape; none when it has not arrived.
    pub(crate) fn index_of(&self, shape: &ShapeId) -> Option<usize> {
        self.index.get(shape).copied()
    }

    /// True when pods of the shape belong to their node: DaemonSet and mirror pods.
    pub(crate) fn stays_with_node(&self, shape: usize) -> bool {
        self.shapes[shape].stays_with_node()
    }

    /// Pods of a node to launch by shape.
    pub(crate) fn load(&self, node: &NewNode) -> BTreeMap<usize, i64> {
        let mut load = BTreeMap::new();
        for pod in node.pods.iter().filter_map(|uid| self.input.world.pods.get(uid)) {
            if let Some(shape) = self.shape_of(pod) {
                *load.entry(shape).or_default() += 1;
            }
        }
        load
    }

    /// Shapes that may need a node: those with pods to place and those that may have to move.
    fn buyers(&self) -> impl Iterator<Item = usize> {
        let moving = self.existing_nodes.iter().flat_map(|existing| existing.pods.keys().copied());
        let waiting = (0..self.shapes.len()).filter(|shape| !self.demand[*shape].is_empty());
        let all: BTreeSet<usize> =
            moving.chain(waiting).chain(self.buffered.keys().copied()).collect();
        all.into_iter().filter(|shape| !self.shapes[*shape].is_daemon)
    }

    fn add_pending(&mut self) {
        let now_ms = self.input.now_ms;
        let failed =
            |pods: &PodSet| pods.values().any(|pod| pod.unschedulable && waits_for_us(pod));
        let world = &self.input.world;
        let is_common =
            |id: &ShapeId| world.shapes.get(id).is_some_and(|it| it.scheduler.is_empty());
        let at_work = world.pending().any(|(id, pods)| is_common(id) && failed(pods));
        for (id, pods) in world.pending() {
            let Some(shape) = self.index.get(id).copied() else { continue };
            if !self.stays_with_node(shape) && !self.shapes[shape].opts_out() {
                let (tried, behind) = (failed(pods), at_work && is_common(id));
                let foreseen = |pod: &Pod| {
                    is_next(pod, now_ms) && (tried || behind && is_overdue(pod, now_ms))
                };
                let waiting = pods.values().filter(|pod| waits_for_us(pod) || foreseen(pod));
                self.demand[shape].extend(waiting);
            }
        }
    }

    /// Puts pods in order of UID. Those that wait are, `waiting` of each shape; those of leaving
    /// existing nodes came after them.
    fn sort_demand(&mut self, waiting: &[usize]) {
        let all = self.demand.iter_mut().zip(waiting);
        for (pods, _) in all.filter(|(pods, waiting)| pods.len() > **waiting) {
            pods.sort_by(|a, b| a.uid.cmp(&b.uid));
        }
    }
}

fn buffered(world: &World, index: &BTreeMap<&ShapeId, usize>) -> BTreeMap<usize, i64> {
    let mut left = if planted::is("S27") { i64::MAX } else { BUFFERED_PODS_MAX };
    let most = if planted::is("S27") { i64::MAX } else { BUFFER_PODS_MAX };
    let known = |buffer: &CapacityBuffer| {
        let shape = *index.get(&buffer.shape)?;
        let count = buffer.replicas.clamp(0, most).min(left);
        left -= count;
        Some((shape, count))
    };
    world.buffers.values().filter_map(known).collect()
}

/// A pod that kube-scheduler has not tried yet counts as waiting for this long after its creation,
/// in milliseconds: at a hundred pods a second, which a busy one does, five thousand take as long.
/// One that is not tried by then is nobody's.
const FORESIGHT_MS: i64 = 60_000;

/// A new pod is next when kube-scheduler has given up on another of its shape: it will on this one
/// too, unless there is room by then, and the plan fills room that is there first. So a burst is
/// planned as a whole, not as fast as kube-scheduler fails its pods.
fn is_next(pod: &Pod, now_ms: i64) -> bool {
    let new = now_ms.saturating_sub(pod.created_ms) < FORESIGHT_MS;
    new && pod.nominated_node.is_none() && !pod.unschedulable && !pod.deleting
}

/// A kube-scheduler that is at work has not tried a pod so long after its creation, in
/// milliseconds, only because thousands wait with it; one that is not behind tries each within a
/// few. Creation is told in whole seconds, so that this is one to two of them.
const OVERDUE_MS: i64 = 2_000;

/// A new pod of no known fate is next, too, where kube-scheduler is so far behind that to wait for
/// its verdict would take longer than all else.
fn is_overdue(pod: &Pod, now_ms: i64) -> bool {
    now_ms.saturating_sub(pod.created_ms) >= OVERDUE_MS
}

/// A pod without a node is ours when kube-scheduler has given up on it or we have nominated it;
/// gated pods and those that preemption is making room for are not.
fn waits_for_us(pod: &Pod) -> bool {
    let ours = pod.unschedulable || pod.nominated_node.is_some();
    ours && !pod.preempting && !pod.deleting
}
