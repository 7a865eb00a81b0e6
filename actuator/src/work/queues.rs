//! One reader for each interruption queue that clusters name.
//!
//! Invariant: a queue that is absent is said on the node classes of its clusters and tried again;
//! nothing else waits for it.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use longshore_runtime::tasks::Supervisor;
use tokio_util::sync::CancellationToken;

use crate::interruptions;
use crate::leader::Leader;

pub fn start(leader: &Arc<Leader>, supervisor: &Supervisor) {
    let leader = Arc::clone(leader);
    let owner = supervisor.clone();
    supervisor.spawn_once("interruption-queues", async move {
        let token = owner.token().clone();
        let mut version = leader.ledger.version();
        let mut readers: BTreeMap<String, CancellationToken> = BTreeMap::new();
        loop {
            version.mark_unchanged();
            adjust(&leader, &owner, &mut readers);
            tokio::select! {
                () = token.cancelled() => return Ok(()),
                changed = version.changed() => {
                    if changed.is_err() {
                        return Ok(());
                    }
                }
            }
        }
    });
}

/// Starts readers of new queues and ends those of queues that nobody names any more.
fn adjust(
    leader: &Arc<Leader>,
    supervisor: &Supervisor,
    readers: &mut BTreeMap<String, CancellationToken>,
) {
    let wanted = wanted(leader);
    readers.retain(|queue, token| {
        let kept = wanted.contains(queue);
        if !kept {
            token.cancel();
        }
        kept
    });
    for queue in wanted {
        let Entry::Vacant(reader) = readers.entry(queue) else { continue };
        let token = supervisor.token().child_token();
        let reading = interruptions::read(Arc::clone(leader), reader.key().clone(), token.clone());
        supervisor.spawn_once("interruption-queue", reading);
        reader.insert(token);
    }
}

fn wanted(leader: &Leader) -> BTreeSet<String> {
    let book = leader.ledger.book();
    let facts = book.clusters.values().filter_map(|cluster| cluster.facts.as_ref());
    let named = facts.map(|facts| facts.interruption_queue.clone());
    let configured = leader.context.tuning.interruption_queue.clone();
    named.chain(configured).filter(|queue| !queue.is_empty()).collect()
}
