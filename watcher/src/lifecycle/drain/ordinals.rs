//! In which order replicas of a StatefulSet leave a node: as its own controller would end them, the
//! last first, and each only when those after it are up again.
//!
//! Invariant: order only, and for no longer than [`PATIENCE_MS`]: a set that does not come up keeps
//! no node. Where time is short, as after an interruption, all leave at once.

use longshore_proto::types::v1::PodPhase;

use super::is_protected;
use crate::index::{Index, Now, PodEntry};
use crate::project::pod::ordinal;

/// How long a drain keeps the order, in milliseconds; it is not begun where less is left.
const PATIENCE_MS: i64 = 10 * 60_000;
/// How soon the controller creates the next replica of a name, in milliseconds.
const SUCCEEDED_WITHIN_MS: i64 = 2_000;

/// True while a drain has the time for one replica after the other. Its end is by the clock of
/// day.
pub(super) fn are_kept(index: &Index, claim: &str, end_ms: Option<i64>, now: Now) -> bool {
    let since_ms = index.going_since_ms(claim).unwrap_or(now.steady_ms);
    now.steady_ms - since_ms < PATIENCE_MS
        && end_ms.is_none_or(|end_ms| end_ms - now.wall_ms >= PATIENCE_MS)
}

/// True while a replica waits for others of its set; `leaving` are the pods that leave its node.
pub(super) fn waits(index: &Index, pod: &PodEntry, leaving: &[&PodEntry], now: Now) -> bool {
    let Some((set, own)) = replica(index, pod) else { return false };
    let later = |other: &&PodEntry| {
        let is_later =
            replica(index, other).is_some_and(|(its, number)| its == set && number > own);
        is_later && other.row.namespace == pod.row.namespace && !is_protected(other, now.wall_ms)
    };
    let left_ms = index.replica_left_ms(&pod.row.namespace, set);
    let may_come = left_ms.is_some_and(|at_ms| now.steady_ms - at_ms < SUCCEEDED_WITHIN_MS);
    let named =
        |number: u32| index.pod_named(&(pod.row.namespace.to_string(), format!("{set}-{number}")));
    let mut after = (own.saturating_add(1)..).map_while(named);
    leaving.iter().any(later) || may_come || after.any(|other| !is_up(other))
}

/// The StatefulSet of a pod, and which of its replicas it is.
fn replica<'i>(index: &'i Index, pod: &PodEntry) -> Option<(&'i str, u32)> {
    ordinal(&index.shape(&pod.row.shape_id)?.owner, &pod.row.name)
}

fn is_up(pod: &PodEntry) -> bool {
    let row = &pod.row;
    !row.node_name.is_empty() && !row.deleting && row.phase == PodPhase::Running
}
