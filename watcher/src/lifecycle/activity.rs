//! The clock of consolidation, and the end of a claim's trace.
//!
//! Invariant: the time of the last pod event lives in the claim's status, so a restart forgets
//! nothing; it is written at most once in a few seconds for each claim.

use std::collections::BTreeMap;

use kube::ResourceExt as _;
use longshore_proto::types::v1::PodPhase;

use super::Step;
use crate::api::keys::conditions;
use crate::counters::Places;
use crate::index::Index;
use crate::project::claim::condition;

/// Least time between two writes for one claim, in milliseconds: below any sensible
/// consolidateAfter, far above what one rollout needs.
const WRITE_EVERY_MS: i64 = 5_000;

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
        let due = last.is_none_or(|last| now_ms - last.0.as_millisecond() >= WRITE_EVERY_MS);
        if let Some(at_ms) = index.touched_ms(node).filter(|_| due) {
            steps.push(Step::Touch { claim: claim.name_any(), node: node.to_owned(), at_ms });
        }
    }
    steps.extend(index.planned_claims().filter_map(|claim| running(index, claim)));
    steps
}

/// The pods of a claim all run; those that are gone meanwhile are not waited for. Counted are the
/// places that the plan in force when the node opened wanted on it, and the pods that came there
/// besides. Where any place was as good as another, no place was at stake: its pods are counted
/// apart.
fn running(index: &Index, claim: &str) -> Option<Step> {
    let node = index.claim(claim)?.status.as_ref()?.node_name.as_deref()?;
    let planned: Vec<_> = index.planned_for(claim).collect();
    if planned.iter().any(|pod| pod.row.phase() != PodPhase::Running) {
        return None;
    }
    let shapes = planned.iter().map(|pod| pod.row.shape_id.as_str());
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
