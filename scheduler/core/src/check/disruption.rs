//! Budgets and promises that a disruption must hold.
//!
//! Invariant: interruptions are exempt, since nobody asked, and so is what a pool's replicas leave
//! no place for, since its owner did; everything else is counted together.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::answer::{Disruption, Plan};
use crate::check::{Findings, Part, Rule, cost};
use crate::planted;
use crate::question::PlanInput;
use crate::vocabulary::ids::{NodeName, PodUid, PoolName};
use crate::vocabulary::pool::{ConsolidationPolicy, DisruptionReason};
use crate::vocabulary::resources::total;
use crate::world::claim::NodeClaim;
use crate::world::pod::Pod;

pub(super) fn check(plan: &Plan, input: &PlanInput, findings: &mut Findings) {
    let exempt = [DisruptionReason::Interrupted, DisruptionReason::Excess];
    let all = plan.disruptions.iter().enumerate();
    let chosen: Vec<(usize, &Disruption)> =
        all.filter(|(_, disruption)| !exempt.contains(&disruption.reason)).collect();
    let mut seen: BTreeSet<&NodeName> = BTreeSet::new();
    let mut order: Vec<(&NodeName, usize)> = Vec::new();
    let claims = input.world.claims_by_node();
    for (at, disruption) in &chosen {
        let part = || vec![Part::Disruption(*at)];
        for node in &disruption.nodes {
            findings.require(seen.insert(node), Rule::Disruptable, || {
                (part(), format!("{node} goes twice"))
            });
            let claim = claims.get(node).map(AsRef::as_ref);
            // Where its owner has bounded the drain of a node that must go, budgets wait no longer.
            if !claim.is_some_and(|claim| is_bounded(claim, disruption.reason)) {
                order.push((node, *at));
            }
            node_may_go(input, (node, claim), (*at, disruption.reason), findings);
        }
        moves(input, *at, disruption, findings);
        saving(plan, input, *at, disruption, findings);
    }
    node_budgets(input, &claims, &chosen, findings);
    canaries(input, &claims, &chosen, findings);
    savings(input, &claims, &chosen, findings);
    if planted::is("S16c") {
        order.sort();
    }
    evictions(input, &order, findings);
}

/// Pods of a node that a drain would evict.
fn evicted<'a>(input: &'a PlanInput, node: &NodeName) -> Vec<&'a Pod> {
    let moves = |pod: &&Pod| {
        let shape = input.world.shapes.get(&pod.shape);
        !pod.deleting && shape.is_none_or(|s| !s.stays_with_node())
    };
    input.world.pods_on(node).map(AsRef::as_ref).filter(moves).collect()
}

fn node_may_go(
    input: &PlanInput,
    (name, claim): (&NodeName, Option<&NodeClaim>),
    (at, reason): (usize, DisruptionReason),
    findings: &mut Findings,
) {
    let part = || vec![Part::Disruption(at)];
    let (Some(node), Some(claim)) = (input.world.nodes.get(name), claim) else {
        findings.add(Rule::Disruptable, (part(), format!("{name} is not ours")));
        return;
    };
    let bounded = is_bounded(claim, reason);
    let mut pods = input.world.pods_on(name).filter(|pod| !pod.deleting);
    let held = pods.any(|pod| pod.do_not_disrupt.in_force(input.now_ms));
    let refused = held || node.do_not_disrupt || claim.do_not_disrupt;
    findings.require(!refused || bounded, Rule::Disruptable, || {
        (part(), format!("{name} is do-not-disrupt"))
    });
    let gone = claim.is_leaving() || node.deleting || node.is_fargate();
    findings
        .require(!gone, Rule::Disruptable, || (part(), format!("{name} is leaving or not ours")));
    let empty = evicted(input, name).is_empty();
    findings.require(empty || reason != DisruptionReason::Empty, Rule::Disruptable, || {
        (part(), format!("{name} is not empty"))
    });
    if !is_forced(reason) {
        findings.require(is_quiet(input, claim, empty), Rule::Disruptable, || {
            let why = "consolidateAfter has not passed or the policy forbids it";
            (part(), format!("{name}: {why}"))
        });
    }
}

const fn is_forced(reason: DisruptionReason) -> bool {
    matches!(reason, DisruptionReason::Expired | DisruptionReason::Drifted)
}

const fn is_bounded(claim: &NodeClaim, reason: DisruptionReason) -> bool {
    is_forced(reason) && claim.termination_grace_ms.is_some()
}

fn is_quiet(input: &PlanInput, claim: &NodeClaim, empty: bool) -> bool {
    let Some(pool) = input.world.pools.get(&claim.pool) else { return false };
    let (Some(after_ms), Some(start_ms)) =
        (pool.disruption.consolidate_after_ms, claim.initialized_ms)
    else {
        return false;
    };
    let last_ms = claim.last_pod_event_ms.unwrap_or(start_ms).max(start_ms);
    let policy = empty || pool.disruption.policy != ConsolidationPolicy::WhenEmpty;
    policy && last_ms.saturating_add(after_ms) <= input.now_ms
}

/// Every pod that is evicted has a place to go, and nothing else moves.
fn moves(input: &PlanInput, at: usize, disruption: &Disruption, findings: &mut Findings) {
    let nodes = disruption.nodes.iter();
    let evicted: BTreeSet<&PodUid> =
        nodes.flat_map(|node| evicted(input, node)).map(|pod| &pod.uid).collect();
    let moved: BTreeSet<&PodUid> =
        disruption.moves.iter().map(|placement| &placement.pod).collect();
    findings.require(evicted == moved, Rule::Complete, || {
        let (nodes, out, back) = (&disruption.nodes, evicted.len(), moved.len());
        (vec![Part::Disruption(at)], format!("{nodes:?}: evicts {out} pods, moves {back}"))
    });
}

/// A consolidation saves whatever is bought.
fn saving(
    plan: &Plan,
    input: &PlanInput,
    at: usize,
    disruption: &Disruption,
    findings: &mut Findings,
) {
    if disruption.reason != DisruptionReason::Underutilized {
        return;
    }
    let launches = disruption.replacements.iter().filter_map(|index| plan.launches.get(*index));
    let costs = launches.map(|launch| {
        launch.candidates.iter().map(|candidate| candidate.cost_micro_usd_per_hour).max()
    });
    let dearest = total(costs.map(|cost| cost.unwrap_or(i64::MAX)));
    let cost: i64 = disruption.claims.iter().filter_map(|name| cost_of(input, name)).sum();
    let free = disruption.replacements.is_empty();
    findings.require(free || dearest < cost, Rule::Saving, || {
        let detail = format!("{:?}: {cost} is replaced by up to {dearest}", disruption.nodes);
        (vec![Part::Disruption(at)], detail)
    });
}

fn cost_of(input: &PlanInput, name: &crate::ids::ClaimName) -> Option<i64> {
    let claim = input.world.claims.get(name)?;
    let catalogue = input.catalogue_of(input.world.pools.get(&claim.pool)?)?;
    let node = claim.node.as_ref().and_then(|node| input.world.nodes.get(node));
    let label = |key: &str| node.and_then(|node| node.labels.get(key)).map(String::as_str);
    let kind = claim.instance_type.as_ref().map(|kind| kind.as_str());
    let zone = claim.zone.as_ref().map(|zone| zone.as_str());
    let bought =
        label(crate::labels::CAPACITY_TYPE).and_then(crate::catalogue::CapacityType::from_label);
    let kind = kind.or_else(|| label(crate::labels::INSTANCE_TYPE))?;
    let zone = zone.or_else(|| label(crate::labels::ZONE))?;
    let offering = catalogue.offering(kind, zone, claim.capacity_type.or(bought)?)?;
    Some(cost::of(input, catalogue.types.get(kind)?, offering))
}

fn node_budgets(
    input: &PlanInput,
    claims: &BTreeMap<NodeName, Arc<NodeClaim>>,
    chosen: &[(usize, &Disruption)],
    findings: &mut Findings,
) {
    let mut totals: BTreeMap<&PoolName, (i64, i64)> = BTreeMap::new();
    let counts = |claim: &NodeClaim| claim.initialized_ms.is_some() && !claim.drained;
    for (name, claim) in claims.iter().filter(|(_, claim)| counts(claim)) {
        let Some(node) = input.world.nodes.get(name) else { continue };
        let interrupted = input.interrupted_instances.iter().any(|i| node.provider_id.ends_with(i));
        let disturbed = claim.is_leaving() || node.deleting || !node.ready || interrupted;
        let (total, used) = totals.entry(&claim.pool).or_default();
        *total += 1;
        *used += i64::from(disturbed);
    }
    for (at, disruption) in chosen {
        for claim in disruption.nodes.iter().filter_map(|node| claims.get(node)) {
            let (total, used) = totals.entry(&claim.pool).or_default();
            *used += 1;
            let rules = input.world.pools.get(&claim.pool).map(|pool| &pool.disruption);
            let allowed = rules.and_then(|rules| rules.allowed(disruption.reason, *total));
            let within = allowed.is_none_or(|most| *used <= most);
            findings.require(within, Rule::NodeBudget, || {
                let of = format!("{used} of {total} nodes disturbed, allowed {allowed:?}");
                (vec![Part::Disruption(*at)], format!("{}: {of}", claim.pool))
            });
            // What is refused leaves the rest of the budget to others.
            *used -= i64::from(!within);
        }
    }
}

/// While a rollout has not proven itself, no more drifted nodes go than are looked at.
fn canaries(
    input: &PlanInput,
    claims: &BTreeMap<NodeName, Arc<NodeClaim>>,
    chosen: &[(usize, &Disruption)],
    findings: &mut Findings,
) {
    let mut gone: BTreeMap<&PoolName, i64> = BTreeMap::new();
    for (at, disruption) in chosen.iter().filter(|(_, d)| d.reason == DisruptionReason::Drifted) {
        for claim in disruption.nodes.iter().filter_map(|node| claims.get(node)) {
            let pool = input.world.pools.get(&claim.pool);
            let Some(canary) = pool.and_then(|pool| pool.canary) else { continue };
            let gone = gone.entry(&claim.pool).or_insert(canary.under_way);
            *gone += 1;
            findings.require(*gone <= canary.nodes, Rule::NodeBudget, || {
                let of = format!("{gone} drifted nodes go, to look at {} new ones", canary.nodes);
                (vec![Part::Disruption(*at)], format!("{}: {of}", claim.pool))
            });
        }
    }
}

/// No more pods are moved to save money than their pool allows within the hour.
fn savings(
    input: &PlanInput,
    claims: &BTreeMap<NodeName, Arc<NodeClaim>>,
    chosen: &[(usize, &Disruption)],
    findings: &mut Findings,
) {
    let mut moved: BTreeMap<&PoolName, usize> = BTreeMap::new();
    let saving = |(_, it): &&(usize, &Disruption)| it.reason == DisruptionReason::Underutilized;
    for (at, disruption) in chosen.iter().filter(saving) {
        for (node, claim) in disruption.nodes.iter().filter_map(|it| claims.get_key_value(it)) {
            let pool = input.world.pools.get(&claim.pool);
            let Some(left) = pool.and_then(|pool| pool.disruption.evictions_left) else { continue };
            let moved = moved.entry(&claim.pool).or_default();
            *moved += evicted(input, node).len();
            let within = i64::try_from(*moved).is_ok_and(|moved| moved <= left);
            findings.require(within, Rule::NodeBudget, || {
                let of = format!("{moved} pods move to save money, and {left} may");
                (vec![Part::Disruption(*at)], format!("{}: {of}", claim.pool))
            });
        }
    }
}

/// A budget that covers pods on several nodes must allow all of them, spent in the order in which
/// the plan takes them; on one node the drain waits.
fn evictions(input: &PlanInput, gone: &[(&NodeName, usize)], findings: &mut Findings) {
    for budget in input.world.budgets.values() {
        let mut taken = 0;
        for (node, at) in gone {
            let covered = evicted(input, node).into_iter().filter(|pod| {
                let shape = input.world.shapes.get(&pod.shape);
                shape.is_some_and(|shape| budget.covers(shape)) && budget.minds(pod)
            });
            let count = i64::try_from(covered.count()).unwrap_or(i64::MAX);
            // The first node may drain pod by pod; a further one needs what is left.
            let allowed = count == 0 || budget.disruptions_allowed > taken;
            findings.require(allowed, Rule::DisruptionBudget, || {
                let detail = format!("{}: draining {node} is not allowed", budget.key);
                (vec![Part::Disruption(*at)], detail)
            });
            taken += if allowed { count } else { 0 };
        }
    }
}
