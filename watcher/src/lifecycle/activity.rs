//! The clock of consolidation, and the end of a claim's trace.
//!
//! Invariant: the time of the last pod event lives in the claim's status, so a restart forgets
//! nothing that matters; it is written for each claim as often as whoever reads it needs it, which
//! is once a minute where nothing depends on it. The condition Consolidatable follows it late, and
//! goes with the next write: only people look at it.

use std::collections::BTreeMap;

use kube::ResourceExt as _;
use longshore_proto::time::duration_ms;
use longshore_proto::types::v1::PodPhase;

use super::Step;
use crate::api::NodeClaim;
use crate::api::keys::conditions;
use crate::counters::Places;
use crate::index::Index;
use crate::project::claim::{condition, pool_of};

/// Least time between two writes for one claim, in milliseconds: this share of consolidateAfter, by
/// which a restart of the watcher may have it fall short.
const WRITE_EVERY_SHARE: i64 = 6;
/// It is never less than this, in milliseconds: far above what one rollout needs.
const WRITE_EVERY_MIN_MS: i64 = 5_000;
/// Nor more than this, in milliseconds, for people.
const WRITE_EVERY_MAX_MS: i64 = 60_000;
/// How much longer than consolidateAfter a node is quiet before its claim says so, in milliseconds:
/// in a burst that would be a write a node for what is over in a minute.
const CALM_MS: i64 = 5 * 60_000;

/// What activity calls for.
#[must_use]
pub fn steps(index: &Index, now_ms: i64) -> Vec<Step> {
    let mut steps = Vec::new();
    for claim in index.claims() {
        let Some(status) = &claim.status else { continue };
        let Some(node) = status.node_name.as_deref() else { continue };
        // Until its first pod event a node is as old as its initialisation, for all who ask.
        let initialized = condition(&status.conditions, conditions::INITIALIZED);
        let last = status.last_pod_event_time.as_ref().into_iter().chain(initialized).max();
        let pause_ms = pause_ms(after_ms(index, claim));
        let due = last.is_none_or(|last| now_ms - last.0.as_millisecond() >= pause_ms);
        let touched_ms = index.touched_ms(node);
        if let Some(at_ms) = touched_ms.filter(|_| due) {
            steps.push(Step::Touch { claim: claim.name_any(), node: node.to_owned(), at_ms });
        }
        let last_ms = last.map(|last| last.0.as_millisecond());
        let last_ms = last_ms.filter(|_| initialized.is_some() && touched_ms.is_none());
        steps.extend(consolidatable(index, claim, last_ms, now_ms));
    }
    steps.extend(index.planned_claims().filter_map(|claim| running(index, claim)));
    steps
}

/// Least time between two writes for a claim of a pool with this consolidateAfter: nodes that may
/// go at once, or never, do not wait for the clock.
fn pause_ms(after_ms: Option<i64>) -> i64 {
    let waits = after_ms.filter(|after_ms| *after_ms > 0);
    waits.map_or(WRITE_EVERY_MAX_MS, |after_ms| {
        (after_ms / WRITE_EVERY_SHARE).clamp(WRITE_EVERY_MIN_MS, WRITE_EVERY_MAX_MS)
    })
}

/// The condition Consolidatable, where a claim has another; `last_ms` is when pods last came or
/// left, none when they just did.
fn consolidatable(
    index: &Index,
    claim: &NodeClaim,
    last_ms: Option<i64>,
    now_ms: i64,
) -> Option<Step> {
    let status = claim.status.as_ref()?;
    let said = condition(&status.conditions, conditions::CONSOLIDATABLE).is_some();
    let going = claim.metadata.deletion_timestamp.is_some();
    let quiet_ms =
        last_ms.zip(after_ms(index, claim)).map(|(last_ms, after_ms)| last_ms + after_ms);
    let holds = match quiet_ms {
        // Until the next write of its clock it stays as it is.
        None if last_ms.is_none() => return None,
        None => false,
        Some(quiet_ms) if said => quiet_ms <= now_ms,
        Some(quiet_ms) => quiet_ms + CALM_MS <= now_ms,
    };
    let differs = holds != said && !going;
    differs.then(|| Step::SetConsolidatable { claim: claim.name_any(), holds })
}

/// How long a node of the claim's pool must be quiet, in milliseconds; none where it is never
/// consolidated.
fn after_ms(index: &Index, claim: &NodeClaim) -> Option<i64> {
    let pool = index.pool_row(pool_of(claim.labels()))?;
    pool.disruption.as_ref()?.consolidate_after.as_ref().map(duration_ms)
}

/// The pods of a claim all run; those that are gone meanwhile are not waited for. Counted are the
/// places that the plan in force when the node opened wanted on it, and the pods that came there
/// besides. Where any place was as good as another, no place was at stake: its pods are counted
/// apart.
fn running(index: &Index, claim: &str) -> Option<Step> {
    let node = index.claim(claim)?.status.as_ref()?.node_name.as_deref()?;
    let planned: Vec<_> = index.planned_for(claim).collect();
    if planned.iter().any(|pod| pod.row.phase != PodPhase::Running) {
        return None;
    }
    let shapes = planned.iter().map(|pod| &*pod.row.shape_id);
    let places = if index.takes_any_order(claim) {
        Places { free: planned.len(), ..Places::default() }
    } else {
        at_stake(index, node, shapes)?
    };
    Some(Step::Running { claim: claim.to_owned(), places })
}

/// Places of `shapes` that were planned on a node, held against the pods there. Pods of one shape
/// are the same to planner and kube-scheduler alike: a place is realised when any pod of the
/// planned shape has it, and is not given up while one waits that may still come: nothing is said
/// until then.
fn at_stake<'a>(
    index: &Index,
    node: &str,
    shapes: impl Iterator<Item = &'a str>,
) -> Option<Places> {
    let mut besides: BTreeMap<&str, usize> = BTreeMap::new();
    for pod in index.pods_on(node).filter(|pod| !pod.facts.daemon && !pod.facts.mirror) {
        *besides.entry(&pod.row.shape_id).or_default() += 1;
    }
    let mut places = Places::default();
    for shape in shapes {
        places.planned += 1;
        match besides.get_mut(shape).filter(|left| **left > 0) {
            Some(left) => {
                *left -= 1;
                places.realised += 1;
            }
            None if index.awaits(shape) => return None,
            None => {}
        }
    }
    if places.planned > 0 {
        places.planned += besides.into_values().sum::<usize>();
    }
    Some(places)
}
