//! What metrics show of a plan and of the world it was made for.
//!
//! Invariant: worked out once for each plan, beside it, off the session's loop; passes over nodes,
//! claims and pools, and over pods only where a plan looks at what keeps nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use longshore_core::answer::Plan;
use longshore_core::explain::{Fate, NodeAnswer};
use longshore_core::question::PlanInput;
use longshore_core::vocabulary::ids::{NodeName, PoolName};
use longshore_core::vocabulary::pool::{DisruptionReason, NodePool};
use longshore_core::vocabulary::resources::Resources;
use longshore_core::world::claim::NodeClaim;
use longshore_core::world::node::Node;
use longshore_runtime::metrics::series::{number, usd};

use crate::counters::{Figures, PoolFigures};
use crate::session::pools;

/// Reasons that budgets of Karpenter's pools name, as these spell them.
const BUDGETED: [(DisruptionReason, &str); 3] = [
    (DisruptionReason::Empty, "Empty"),
    (DisruptionReason::Underutilized, "Underutilized"),
    (DisruptionReason::Drifted, "Drifted"),
];

/// Nodes of a pool by which its budgets are measured.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    total: i64,
    disturbed: i64,
}

/// The figures of a plan; `kept` says what keeps each node, where that was looked at.
#[must_use]
pub fn of(input: &PlanInput, plan: &Plan, kept: Option<&[NodeAnswer]>) -> Figures {
    let world = &input.world;
    let unplaced = plan.unplaced.iter().map(|unplaced| unplaced.pods.len()).sum();
    let (sizes, costs, counts) = (pools::sizes(world), costs(input), counts(input));
    let of_pool = |pool: &Arc<NodePool>| {
        let (nodes, capacity) = sizes.get(pool.name.as_str()).cloned().unwrap_or_default();
        let amounts = capacity.names().map(|name| (name.to_owned(), capacity.get(name)));
        let usage = amounts.chain([("nodes".to_owned(), i64::from(nodes))]).map(in_units);
        let count = counts.get(&pool.name).copied().unwrap_or_default();
        let figures = PoolFigures {
            limits: pool.limits.clone().into_iter().map(in_units).collect(),
            usage: usage.collect(),
            cost_usd_per_hour: usd(costs.get(&pool.name).copied().unwrap_or(0)),
            allowed: BUDGETED.map(|(reason, name)| (name, allowed(pool, reason, count))).to_vec(),
        };
        (pool.name.to_string(), figures)
    };
    Figures {
        pools: world.pools.values().map(of_pool).collect(),
        nodes: count(world.nodes.len()),
        waiting: count(plan.placements.len() + unplaced),
        unplaced: count(unplaced),
        idle_usd_per_hour: kept.map(|kept| idle(input, kept)),
    }
}

/// What is paid for room that no pod asks for, by what keeps its nodes: of each node the share of
/// its price that is left of the resource of which pods ask for the most.
fn idle(input: &PlanInput, kept: &[NodeAnswer]) -> BTreeMap<String, f64> {
    let world = &input.world;
    let mut requests: BTreeMap<&NodeName, Resources> = BTreeMap::new();
    for pod in world.pods.values() {
        if let (Some(node), Some(shape)) = (&pod.node, world.shape_of(pod)) {
            let sum = requests.entry(node).or_default();
            *sum = sum.plus(&shape.requests);
        }
    }
    let mut idle: BTreeMap<String, f64> = BTreeMap::new();
    for answer in kept {
        let node = world.nodes.get(&answer.node);
        let price = world.claims.get(&answer.claim).and_then(|claim| price(input, claim));
        let (Some(node), Some(price)) = (node, price) else { continue };
        let asked = requests.get(&answer.node).map_or(0.0, |asked| share(asked, &node.allocatable));
        *idle.entry(holder(answer)).or_default() += usd(price) * (1.0 - asked);
    }
    idle
}

/// The greater share, 0 to 1, of cores or memory.
fn share(asked: &Resources, of: &Resources) -> f64 {
    let parts = [(asked.cpu_millis, of.cpu_millis), (asked.memory_bytes, of.memory_bytes)];
    let shares = parts.map(|(part, whole)| number(part) / number(whole.max(1)));
    shares.into_iter().fold(0.0, f64::max).min(1.0)
}

/// What keeps a node first, as a label has it.
fn holder(answer: &NodeAnswer) -> String {
    match (answer.fate, answer.holds.first()) {
        (Fate::Leaving(_) | Fate::Goes(_), _) => "leaving".to_owned(),
        (Fate::Stays | Fate::MustGo(_), Some(hold)) => hold.rule.code().to_ascii_lowercase(),
        (Fate::Stays | Fate::MustGo(_), None) => "nothing".to_owned(),
    }
}

fn count(things: usize) -> f64 {
    number(i64::try_from(things).unwrap_or(i64::MAX))
}

/// An amount of a resource as Kubernetes counts it: cores, where the planner counts thousandths.
fn in_units((name, amount): (String, i64)) -> (String, f64) {
    let amount = number(amount);
    let amount = if name == "cpu" { amount / 1000.0 } else { amount };
    (name, amount)
}

/// What the instances of each pool cost now, in micro-dollars per hour, where it is known.
fn costs(input: &PlanInput) -> BTreeMap<PoolName, i64> {
    let mut costs = BTreeMap::new();
    for claim in input.world.claims.values() {
        if let Some(price) = price(input, claim) {
            *costs.entry(claim.pool.clone()).or_default() += price;
        }
    }
    costs
}

fn price(input: &PlanInput, claim: &NodeClaim) -> Option<i64> {
    let catalogue = input.catalogue_of(input.world.pools.get(&claim.pool)?)?;
    let (kind, zone) = (claim.instance_type.as_ref()?, claim.zone.as_ref()?);
    let offering = catalogue.offering(kind.as_str(), zone.as_str(), claim.capacity_type?)?;
    Some(offering.price_micro_usd_per_hour)
}

/// Nodes of each pool that are in service, and those that are going or not ready: these use up its
/// budgets.
fn counts(input: &PlanInput) -> BTreeMap<PoolName, Count> {
    let mut counts: BTreeMap<_, Count> = BTreeMap::new();
    for (name, claim) in input.world.claims_by_node() {
        let Some(node) = input.world.nodes.get(&name) else { continue };
        if claim.initialized_ms.is_some() && !claim.drained {
            let count = counts.entry(claim.pool.clone()).or_default();
            count.total += 1;
            count.disturbed += i64::from(is_disturbed(input, &claim, node));
        }
    }
    counts
}

fn is_disturbed(input: &PlanInput, claim: &NodeClaim, node: &Node) -> bool {
    claim.is_leaving() || !node.ready || input.interrupted_instances.contains(node.instance_id())
}

/// How many more nodes may go for a reason: all of them where no budget says otherwise.
fn allowed(pool: &NodePool, reason: DisruptionReason, count: Count) -> f64 {
    let allowed = pool.disruption.allowed(reason, count.total).unwrap_or(count.total);
    number((allowed - count.disturbed).max(0))
}

#[cfg(test)]
mod tests;
