//! Which launches are asked for in one call.
//!
//! Invariant: only such as EC2 would be asked for in the same words, but for whose they are; what
//! waits already goes together, nothing is waited for. A call that was made for several is resumed
//! for all of them that wait.

use std::sync::Arc;

use longshore_proto::types::v1::Launch;

use crate::fair::Fair;
use crate::leader::Leader;
use crate::ledger::{LAUNCHES_PER_CALL_MAX, LaunchRecord};

/// The launch that is served, and those that wait with it and are like it. All of them are busy.
pub fn gather(leader: &Leader, queue: &Fair<String>, served: String) -> Vec<String> {
    let book = leader.ledger.book();
    let Some(first) = book.launches.get(&served) else { return vec![served] };
    if first.outcome_unknown() {
        let Some(batch) = book.batches.get(&first.batch_id) else { return vec![served] };
        let waiting: Vec<_> =
            batch.waiting(&book).map(|record| record.launch_id().to_owned()).collect();
        leader.busy().extend(waiting.iter().cloned());
        return waiting;
    }
    let shared = leader.shares_calls();
    let like =
        |id: &String| shared && book.launches.get(id).is_some_and(|other| alike(first, other));
    let mut group = queue.take(&first.cluster_id, LAUNCHES_PER_CALL_MAX - 1, like);
    group.push(served);
    group.sort();
    group
}

/// True when both can be asked for in one call, the next one of each.
pub fn alike(one: &LaunchRecord, other: &LaunchRecord) -> bool {
    let wanted = |record: &LaunchRecord| record.may_be_asked() && !record.alone;
    one.cluster_id == other.cluster_id
        && one.refused == other.refused
        && wanted(one)
        && wanted(other)
        && match (&one.launch, &other.launch) {
            (Some(one), Some(other)) => same_node(one, other),
            _ => false,
        }
}

/// True when one node is as good as the other. What its pods request has gone into the candidates.
fn same_node(one: &Launch, other: &Launch) -> bool {
    let Launch {
        launch_id: _,
        claim: _,
        pool,
        node_class,
        node_class_hash,
        candidates,
        requests: _,
        labels,
        taints,
        startup_taints,
        traceparent: _,
    } = one;
    *pool == other.pool
        && *node_class == other.node_class
        && *node_class_hash == other.node_class_hash
        && *candidates == other.candidates
        && *labels == other.labels
        && *taints == other.taints
        && *startup_taints == other.startup_taints
}

/// Those of a group that still want something of EC2: all that wait for the answer to one call, or
/// all that can be asked for together.
pub fn pending(leader: &Leader, group: &[String]) -> Vec<Arc<LaunchRecord>> {
    let book = leader.ledger.book();
    let records = group.iter().filter_map(|id| book.launches.get(id));
    let (waiting, idle): (Vec<_>, Vec<_>) =
        records.cloned().partition(|record| record.outcome_unknown());
    if let Some(first) = waiting.first() {
        let token = first.client_token();
        return waiting.into_iter().filter(|record| record.client_token() == token).collect();
    }
    let Some(first) = idle.iter().find(|record| record.may_be_asked()).cloned() else {
        return Vec::new();
    };
    let together =
        |record: &Arc<LaunchRecord>| Arc::ptr_eq(&first, record) || alike(&first, record);
    idle.into_iter().filter(together).collect()
}

#[cfg(test)]
mod tests;
