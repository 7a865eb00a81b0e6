//! How many pods of one spread over hosts a node may hold.
//!
//! On nodes that fill evenly a spread allows more pods than its skew, but only for as long as no
//! empty node appears that it looks at. So it is done for pods that have no place otherwise, and
//! where a pool asks for it.
//!
//! Invariant: a plan that counts on it is kept only when it is better than the one that does not,
//! and the check, which counts the pods of all nodes by itself, finds nothing wrong with it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::answer::Plan;
use crate::answer::steps::Planned;
use crate::check::check;
use crate::question::{Effort, PlanInput};
use crate::vocabulary::ids::{NodeName, ShapeId};
use crate::vocabulary::labels::HOSTNAME;
use crate::vocabulary::pool::NodePool;
use crate::vocabulary::taint::untolerated;
use crate::world::shape::PodShape;
use crate::world::topology::{GroupRule, GroupSpec, Heights, host_spreads};

/// Most spreads that are packed densely in one plan; those with most pods come first.
const SPREADS_MAX: usize = 8;
/// Most pods of all spreads that a plan may have to try it: every try is a plan.
const PODS_MAX: i64 = 20_000;
/// Numbers of nodes that the pods of one spread are tried on.
const NODES: [i64; 12] = [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32];

/// A spread over hosts.
struct Spread {
    /// Its place among all rules.
    at: usize,
    skew: i64,
    /// Pods that it counts, wherever they are.
    pods: i64,
    /// Most of them on one node.
    tallest: i64,
    /// True when some of those who obey it wait.
    waits: bool,
    /// Those who obey it.
    owners: Vec<ShapeId>,
    /// True when they can be only on nodes of pools that pack densely.
    dense: bool,
}

/// The best plan, with spreads over hosts as high as pools allow and prices want.
pub(crate) fn choose(input: &PlanInput, at: impl Fn(&PlanInput, &Heights) -> Planned) -> Planned {
    let safe = at(input, &Heights::new());
    let dense = input.world.pools.values().any(|pool| pool.dense_spread);
    let idle = safe.plan.unplaced.is_empty() && safe.plan.launches.is_empty();
    if (!dense || idle) && !leaves_spread(input, &safe.plan) {
        return safe;
    }
    let spreads = spreads(input);
    let safe = place_left(input, &at, &spreads, safe);
    place_densely(input, &at, &spreads, safe)
}

/// True when a pod without a place may owe that to a spread over hosts.
fn leaves_spread(input: &PlanInput, plan: &Plan) -> bool {
    let mut shapes = plan.unplaced.iter().filter_map(|left| input.world.shapes.get(&left.shape));
    shapes.any(|shape| {
        let mut spreads = shape.topology_spread.iter();
        obeys_it_alone(shape) && spreads.any(|spread| spread.topology_key == HOSTNAME)
    })
}

/// The plan in which pods without a place may stand one higher than their skew: where every node
/// that their spread looks at holds one of them, kube-scheduler binds them there anyway.
fn place_left(
    input: &PlanInput,
    at: &impl Fn(&PlanInput, &Heights) -> Planned,
    spreads: &[Spread],
    safe: Planned,
) -> Planned {
    let left: BTreeSet<&ShapeId> =
        safe.plan.unplaced.iter().map(|unplaced| &unplaced.shape).collect();
    let waits = |spread: &&Spread| spread.owners.iter().any(|owner| left.contains(owner));
    let raised = spreads.iter().filter(waits).map(|spread| (spread.at, spread.skew + 1));
    let heights: Heights = raised.collect();
    if heights.is_empty() {
        return safe;
    }
    let raised = at(input, &heights);
    let better = worth(&raised.plan) < worth(&safe.plan) && check(&raised.plan, input).is_empty();
    if better { raised } else { safe }
}

/// The plan in which pods of dense pools stand as high as is cheapest.
fn place_densely(
    input: &PlanInput,
    at: &impl Fn(&PlanInput, &Heights) -> Planned,
    spreads: &[Spread],
    safe: Planned,
) -> Planned {
    let spreads: Vec<&Spread> = spreads.iter().filter(|s| s.dense).take(SPREADS_MAX).collect();
    if spreads.is_empty() {
        return safe;
    }
    let sketch = PlanInput { effort: Effort::Greedy, ..input.clone() };
    let mut best = (worth(&at(&sketch, &Heights::new()).plan), Heights::new());
    let mut consider = |heights: Heights| {
        let plan = at(&sketch, &heights).plan;
        let worth = worth(&plan);
        if worth < best.0 && check(&plan, &sketch).is_empty() {
            best = (worth, heights);
        }
        best.1.clone()
    };
    // What stands may stand again: a node that is replaced needs no more nodes than it was.
    let high = spreads.iter().filter(|spread| spread.tallest > spread.skew);
    let mut heights = high.map(|spread| (spread.at, spread.tallest)).collect::<Heights>();
    if !heights.is_empty() {
        heights = consider(heights);
    }
    for spread in spreads.iter().filter(|spread| spread.waits) {
        for height in spread.heights() {
            let mut tried = heights.clone();
            tried.insert(spread.at, height);
            heights = consider(tried);
        }
    }
    if heights.is_empty() {
        return safe;
    }
    let dense = at(input, &heights);
    let better = worth(&dense.plan) < worth(&safe.plan) && check(&dense.plan, input).is_empty();
    if better { dense } else { safe }
}

/// What plans are compared by, less is better: pods without a place, then what the fleet costs.
fn worth(plan: &Plan) -> (usize, i64) {
    let left = plan.unplaced.iter().map(|unplaced| unplaced.pods.len()).sum();
    let weights = plan.launch_cost_micro_usd_per_hour - plan.launch_price_micro_usd_per_hour;
    (left, plan.fleet_price_micro_usd_per_hour + weights)
}

impl Spread {
    /// Heights that put its pods evenly on one node, two and more.
    fn heights(&self) -> BTreeSet<i64> {
        let heights = NODES.iter().map(|nodes| (self.pods + nodes - 1) / nodes);
        heights.filter(|height| *height > self.skew).collect()
    }
}

/// Spreads over hosts that limit their pods, those with most pods first.
fn spreads(input: &PlanInput) -> Vec<Spread> {
    let world = input.world.as_ref();
    let pools: Vec<&NodePool> = world.pools.values().map(AsRef::as_ref).collect();
    let shapes: Vec<&PodShape> = world.shapes.values().map(AsRef::as_ref).collect();
    let counted = Counted::of(input);
    let all = host_spreads(&shapes).into_iter();
    let mut spreads: Vec<Spread> =
        all.filter_map(|(at, spec)| counted.spread(at, &spec, &shapes, &pools)).collect();
    spreads.sort_by_key(|spread| (-spread.pods, spread.at));
    let pods: i64 = spreads.iter().map(|spread| spread.pods).sum();
    if pods > PODS_MAX { Vec::new() } else { spreads }
}

/// True when the pods obey no other rule by which they might have to wait. Those of one spread can
/// always go to its emptiest node; with a second rule they could come in an order in which each
/// waits for another.
fn obeys_it_alone(shape: &PodShape) -> bool {
    let hard = shape.topology_spread.iter().filter(|spread| !spread.schedule_anyway);
    hard.count() == 1 && shape.required_affinity.is_empty()
}

/// True when every pool that might make a node for the pods packs densely, and there is one.
fn is_dense(shape: &PodShape, pools: &[&NodePool]) -> bool {
    let alternatives = shape.node_alternatives();
    let is_reached = |pool: &&&NodePool| {
        let offered = pool.offered();
        untolerated(&pool.taints, &shape.tolerations).is_none()
            && alternatives.iter().any(|wanted| wanted.conflict_with_offer(&offered).is_none())
    };
    let reached: Vec<&&NodePool> = pools.iter().filter(is_reached).collect();
    !reached.is_empty() && reached.iter().all(|pool| pool.dense_spread)
}

/// Pods of the world.
struct Counted<'a> {
    /// By shape and node.
    standing: BTreeMap<&'a ShapeId, BTreeMap<&'a NodeName, i64>>,
    /// Those that wait, by shape.
    waiting: BTreeMap<&'a ShapeId, i64>,
}

impl<'a> Counted<'a> {
    fn of(input: &'a PlanInput) -> Self {
        let mut counted = Self { standing: BTreeMap::new(), waiting: BTreeMap::new() };
        for pod in input.world.pods.values().map(Arc::as_ref).filter(|pod| !pod.deleting) {
            let count = match &pod.node {
                Some(node) => {
                    counted.standing.entry(&pod.shape).or_default().entry(node).or_default()
                }
                None => counted.waiting.entry(&pod.shape).or_default(),
            };
            *count += 1;
        }
        counted
    }

    /// A spread with its pods; none when they are no more than its skew, or might wait for each
    /// other.
    fn spread(
        &self,
        at: usize,
        spec: &GroupSpec,
        shapes: &[&PodShape],
        pools: &[&NodePool],
    ) -> Option<Spread> {
        let GroupRule::Spread { max_skew: skew, .. } = spec.rule else { return None };
        let mut nodes: BTreeMap<&NodeName, i64> = BTreeMap::new();
        let mut pods = 0;
        for shape in spec.members.iter().map(|shape| &shapes[shape].id) {
            pods += self.waiting.get(shape).copied().unwrap_or(0);
            for (node, count) in self.standing.get(shape).into_iter().flatten() {
                *nodes.entry(node).or_default() += count;
            }
        }
        let pods = pods + nodes.values().sum::<i64>();
        let tallest = nodes.values().copied().max().unwrap_or(0);
        if pods <= skew || !spec.owners.iter().all(|owner| obeys_it_alone(shapes[owner])) {
            return None;
        }
        let owners: Vec<ShapeId> =
            spec.owners.iter().map(|shape| shapes[shape].id.clone()).collect();
        let waits = owners.iter().any(|owner| self.waiting.contains_key(owner));
        let dense = spec.owners.iter().all(|owner| is_dense(shapes[owner], pools));
        Some(Spread { at, skew, pods, tallest, waits, owners, dense })
    }
}
