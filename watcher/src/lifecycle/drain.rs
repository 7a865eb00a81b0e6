//! Draining: which pods must leave a node, in which order, and by when.
//!
//! Invariant: only ever through the eviction API while there is time, so that budgets hold; past
//! the claim's deadline by deletion. Static pods and pods that tolerate the taint of a disrupted
//! node stay. A node is not drained while a pod, or the node itself, is there and cannot be read:
//! it is told to people (`report.rs`), and waited for. What keeps a node is known (`blockers.rs`).

mod blockers;
mod ordinals;
mod volumes;

use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt as _;
use longshore_runtime::planted;

use super::{Step, drain_end};
use crate::api::NodeClaim;
use crate::api::keys::conditions;
use crate::index::pods::{PodEntry, PodFacts};
use crate::index::{Index, Now};
use crate::names;
use crate::project::claim::{condition, is_drained};
use crate::project::node::is_ready;
use blockers::Blockers;
pub use volumes::Volumes;

/// A pod this long past its end is stuck, and no longer waited for, in milliseconds.
const STUCK_AFTER_MS: i64 = 60_000;
/// Most by which the clocks of two hosts are taken to differ, in milliseconds.
const SKEW_MAX_MS: i64 = 10 * 60 * 1000;
/// Least time from the moment a node begins to go until its instance is ended, in milliseconds; as
/// long as the peer's.
const DRAIN_MIN_MS: i64 = 5_000;
/// A pod whose Deployment was asked for the next one is evicted after this long all the same, in
/// milliseconds; as long as a Deployment may take before it says that it makes no progress.
const SURGE_PATIENCE_MS: i64 = 10 * 60_000;
/// How long after its deadline a drain has begun that will begin, in milliseconds: it is written
/// down, and then the claim is deleted.
const BEGUN_WITHIN_MS: i64 = 60_000;
/// Least grace of a pod that is deleted because time is up, in seconds.
const FORCED_GRACE_MIN_SECONDS: i64 = 1;

/// What draining calls for.
#[must_use]
pub fn steps(index: &Index, now: Now) -> Vec<Step> {
    let claims = index.claims().filter(|claim| claim.metadata.deletion_timestamp.is_some());
    let drains = claims.flat_map(|claim| drain(index, claim, now));
    let deleted = index.held_nodes();
    let deleted = deleted.filter_map(|node| deleted_node(index, &node));
    drains.chain(deleted).chain(left_over(index, now)).collect()
}

/// Deadlines of drains that never began, since whoever was to begin them died: the next drain of
/// such a node would be over before it begins.
fn left_over(index: &Index, now: Now) -> impl Iterator<Item = Step> {
    let staying = index.claims().filter(|claim| claim.metadata.deletion_timestamp.is_none());
    let is_over = move |at_ms: i64| at_ms.saturating_add(BEGUN_WITHIN_MS) < now.wall_ms;
    let late = staying.filter(move |claim| drain_end::noted_ms(claim).is_some_and(is_over));
    late.map(|it| Step::SetDeadline { claim: it.name_any(), deadline_ms: None })
}

/// When the next node has waited for load balancers for long enough, by the steady clock; none
/// while none waits.
#[must_use]
pub fn due_ms(index: &Index, now: Now) -> Option<i64> {
    let going = index.claims().filter(|claim| claim.metadata.deletion_timestamp.is_some());
    let closed = going.filter_map(|claim| index.going_since_ms(&claim.name_any()));
    closed.map(|at_ms| at_ms + DRAIN_MIN_MS).filter(|at_ms| *at_ms > now.steady_ms).min()
}

/// `kubectl delete node` deletes the claim, which drains the node.
fn deleted_node(index: &Index, node: &Node) -> Option<Step> {
    let owner = node.owner_references().iter().find(|owner| owner.kind == "NodeClaim");
    match owner.and_then(|owner| index.claim(&owner.name)) {
        Some(claim) if claim.metadata.deletion_timestamp.is_some() => None,
        Some(claim) => Some(Step::DeleteClaim { claim: claim.name_any() }),
        None => Some(Step::ReleaseNode { node: node.name_any() }),
    }
}

fn drain(index: &Index, claim: &NodeClaim, now: Now) -> Vec<Step> {
    let mut blockers = Blockers::of(claim);
    let mut steps = if claim.status.as_ref().is_some_and(is_drained) {
        Vec::new()
    } else {
        go_on(index, claim, now, &mut blockers)
    };
    steps.extend(blockers.told(index, now.wall_ms));
    steps
}

/// The next steps of a drain that is not over; what keeps it goes to `blockers`.
fn go_on(index: &Index, claim: &NodeClaim, now: Now, blockers: &mut Blockers<'_>) -> Vec<Step> {
    let name = claim.name_any();
    let Some(node) = index.node_of(claim) else {
        let node = claim.status.as_ref().and_then(|status| status.node_name.as_deref());
        let hidden = index.hides_node(node.unwrap_or_default()) && !planted::is("S3a");
        if hidden {
            blockers.unreadable(&format!("Node/{}", node.unwrap_or("of the claim")));
            return Vec::new();
        }
        return vec![Step::MarkDrained { claim: name, volumes: Volumes::Detached }];
    };
    let mut steps = Vec::new();
    let deadline_ms = deadline(claim);
    if let Some(deadline_ms) = deadline_ms
        && !claim.annotations().contains_key(names::TERMINATION_TIMESTAMP)
    {
        steps.push(Step::SetDeadline { claim: name.clone(), deadline_ms: Some(deadline_ms) });
    }
    if !is_cordoned(&node) {
        steps.push(Step::Cordon { node: node.name_any() });
        return steps;
    }
    let node_name = node.name_any();
    let waiting: Vec<_> = index.pods_on(&node_name).filter(|pod| must_leave(pod, now)).collect();
    let end_ms = deadline_ms.map(|deadline_ms| believed(index, claim, deadline_ms, now));
    if waiting.is_empty() {
        if let Some((namespace, pod)) = index.hidden_pod(&node_name).filter(|_| !planted::is("S3a"))
        {
            blockers.unreadable(&format!("Pod/{namespace}/{pod}"));
        } else if !serves(index, claim, &node, now) {
            let over = end_ms.is_some_and(|end_ms| end_ms <= now.wall_ms);
            let late = over || volumes::are_late(index, claim, now);
            // Only a kubelet that works takes volumes off.
            let attached = volumes::awaited(index, &node_name, now).filter(|_| is_ready(&node));
            let attached: Vec<_> = attached.collect();
            steps.extend(volumes::step(claim, &attached, late));
            blockers.of_volumes(attached.iter().filter(|_| !late));
        }
        return steps;
    }
    steps.extend(departures(index, &name, &waiting, end_ms, now));
    blockers.of_pods(index, &waiting, now);
    steps
}

/// True while load balancers may still send traffic through the node: they take a moment to see
/// that it is closed, and one sends to nodes that have no pod of the service, too.
fn serves(index: &Index, claim: &NodeClaim, node: &Node, now: Now) -> bool {
    let status = claim.status.as_ref();
    let served = status.and_then(|it| condition(&it.conditions, conditions::INITIALIZED)).is_some();
    let closed_ms = index.going_since_ms(&claim.name_any()).unwrap_or(now.steady_ms);
    served && is_ready(node) && now.steady_ms - closed_ms < DRAIN_MIN_MS
}

/// When the drain of a claim ends at the latest, in milliseconds since the epoch.
fn deadline(claim: &NodeClaim) -> Option<i64> {
    if let Some(noted_ms) = drain_end::noted_ms(claim) {
        return Some(noted_ms);
    }
    let deleted_ms = claim.metadata.deletion_timestamp.as_ref()?.0.as_millisecond();
    let grace = claim.spec.termination_grace_period.as_ref()?.duration();
    Some(deleted_ms + i64::try_from(grace.as_millis()).unwrap_or(i64::MAX / 2))
}

/// The deadline by this host's clock, or later: a clock that is ahead of the API server's would
/// have pods deleted the moment their node begins to go. So the claim must also have been seen to
/// go here for as long as its drain may take, or for as long as clocks may differ.
fn believed(index: &Index, claim: &NodeClaim, deadline_ms: i64, now: Now) -> i64 {
    let deleted = claim.metadata.deletion_timestamp.as_ref();
    let (Some(deleted), false) = (deleted, planted::is("S23b")) else { return deadline_ms };
    let drain_ms = deadline_ms.saturating_sub(deleted.0.as_millisecond()).clamp(0, SKEW_MAX_MS);
    let since_ms = index.going_since_ms(&claim.name_any()).unwrap_or(now.steady_ms);
    let left_ms = since_ms.saturating_add(drain_ms).saturating_sub(now.steady_ms);
    deadline_ms.max(now.wall_ms.saturating_add(left_ms))
}

fn is_cordoned(node: &Node) -> bool {
    let spec = node.spec.as_ref();
    let taints = spec.and_then(|s| s.taints.as_deref()).unwrap_or_default();
    spec.is_some_and(|s| s.unschedulable == Some(true))
        && taints.iter().any(|taint| taint.key == names::DISRUPTED_TAINT)
        && node.labels().contains_key(names::EXCLUDE_FROM_LOAD_BALANCERS)
}

/// True for a pod that a drain ends.
#[must_use]
pub fn must_leave(pod: &PodEntry, now: Now) -> bool {
    let facts = &pod.facts;
    !facts.mirror && !facts.tolerates_disruption && !is_stuck(facts, now)
}

/// True for a pod that a drain moves: one that goes on elsewhere.
#[must_use]
pub fn moves(pod: &PodEntry, now: Now) -> bool {
    must_leave(pod, now) && !pod.facts.daemon
}

/// True long after a pod should have ended.
fn is_stuck(facts: &PodFacts, now: Now) -> bool {
    is_late(facts, STUCK_AFTER_MS, now)
}

/// True when a pod should have ended so many milliseconds ago: by the API server's clock, and by
/// what was seen of it here, because the two clocks may differ by minutes.
fn is_late(facts: &PodFacts, by_ms: i64, now: Now) -> bool {
    let Some(deletion) = &facts.deletion else { return false };
    let late = now.wall_ms > deletion.by_ms + by_ms;
    let least_ms = by_ms + facts.grace_seconds.saturating_mul(1000).clamp(0, SKEW_MAX_MS);
    let seen = deletion.since_ms.is_some_and(|since_ms| now.steady_ms - since_ms > least_ms);
    late && (seen || planted::is("S23a"))
}

/// Pods leave in this order: those of DaemonSets last, because the others live by what they do; of
/// each, the critical ones after the others.
const fn tier(facts: &PodFacts) -> (bool, bool) {
    (facts.daemon, facts.critical)
}

/// Steps for pods that must leave: those whose time is up at once, of the others the first tier,
/// and of a StatefulSet one after the other.
fn departures(
    index: &Index,
    claim: &str,
    waiting: &[&PodEntry],
    deadline_ms: Option<i64>,
    now: Now,
) -> Vec<Step> {
    let mut steps = Vec::new();
    let first = waiting.iter().map(|pod| tier(&pod.facts)).min();
    let in_order = ordinals::are_kept(index, claim, deadline_ms, now);
    for pod in waiting {
        let turn = !pod.row.deleting
            && Some(tier(&pod.facts)) == first
            && !(in_order && ordinals::waits(index, pod, waiting, now));
        if let Some(grace_seconds) = deadline_ms.and_then(|d| forced(pod, d, now.wall_ms)) {
            steps.push(Step::ForceDelete { pod: pod.row.clone(), grace_seconds });
        } else if turn && !is_protected(pod, now.wall_ms) {
            steps.extend(departure(index, claim, pod, now));
        }
    }
    steps
}

/// How a pod leaves whose turn it is; nothing while the next pod of its Deployment is on its way.
fn departure(index: &Index, claim: &str, pod: &PodEntry, now: Now) -> Option<Step> {
    let row = || pod.row.clone();
    match index.surge(&pod.row.uid) {
        None if pod.row.surges => Some(Step::Surge { pod: row() }),
        Some(Some(since_ms)) if now.steady_ms - since_ms < SURGE_PATIENCE_MS => None,
        None | Some(_) => Some(Step::Evict { pod: row(), claim: claim.to_owned() }),
    }
}

/// Grace for a pod that would otherwise outlive the deadline; nothing while there is time.
fn forced(pod: &PodEntry, deadline_ms: i64, now_ms: i64) -> Option<u32> {
    let late = match &pod.facts.deletion {
        Some(deletion) => deletion.by_ms > deadline_ms,
        None => now_ms > deadline_ms - pod.facts.grace_seconds * 1000,
    };
    let left_seconds = (deadline_ms - now_ms).div_euclid(1000).max(FORCED_GRACE_MIN_SECONDS);
    late.then(|| u32::try_from(left_seconds).unwrap_or(u32::MAX))
}

/// True while eviction is refused by an annotation on the pod.
#[must_use]
pub fn is_protected(pod: &PodEntry, now_ms: i64) -> bool {
    let row = &pod.row;
    let over = row.do_not_disrupt_until_ms.is_some_and(|until_ms| until_ms <= now_ms);
    row.do_not_disrupt && !over
}
