//! The clock of consolidation, and the end of a claim's trace.
//!
//! Invariant: the time of the last pod event lives in the claim's status, so a restart forgets
//! nothing; it is written at most once in a few seconds for each claim.

use std::collections::BTreeMap;

use kube::ResourceExt as _;
use longshore_proto::types::v1::PodPhase;

use super::Step;
use crate::index::Index;

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
        let last_ms = status.last_pod_event_time.as_ref().map(|t| t.0.as_millisecond());
        let due = last_ms.is_none_or(|last_ms| now_ms - last_ms >= WRITE_EVERY_MS);
        if let Some(at_ms) = index.touched_ms(node).filter(|_| due) {
            steps.push(Step::Touch { claim: claim.name_any(), node: node.to_owned(), at_ms });
        }
    }
    steps.extend(index.planned_claims().filter_map(|claim| running(index, claim)));
    steps
}

/// The pods of a claim all run; those that are gone meanwhile are not waited for. Counted are the places
/// that the plan in force when the node opened wanted on it, and the pods that came there besides.
/// Pods of one shape are the same to planner and kube-scheduler alike: a place is realised when any pod
/// of the planned shape has it, and is not given up while one waits that may still come. Where any place was as
/// good as another, each pod that runs has what was planned for it.
fn running(index: &Index, claim: &str) -> Option<Step> {
    let node = index.claim(claim)?.status.as_ref()?.node_name.as_deref()?;
    let mut besides: BTreeMap<&str, usize> = BTreeMap::new();
    for pod in index.pods_on(node).filter(|pod| !pod.facts.daemon && !pod.facts.mirror) {
        *besides.entry(&pod.row.shape_id).or_default() += 1;
    }
    let any_order = index.takes_any_order(claim);
    let (mut places, mut realised) = (0, 0);
    for pod in index.planned_for(claim) {
        if pod.row.phase() != PodPhase::Running {
            return None;
        }
        places += 1;
        if any_order {
            realised += 1;
            continue;
        }
        match besides.get_mut(pod.row.shape_id.as_str()).filter(|left| **left > 0) {
            Some(left) => {
                *left -= 1;
                realised += 1;
            }
            None if index.awaits(&pod.row.shape_id) => return None,
            None => {}
        }
    }
    let besides = if any_order { 0 } else { besides.into_values().sum::<usize>() };
    let pods = if places == 0 { 0 } else { places + besides };
    Some(Step::Running { claim: claim.to_owned(), pods, realised })
}
