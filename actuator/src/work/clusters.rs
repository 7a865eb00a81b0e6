//! Forgetting clusters that nobody writes for any more.
//!
//! Invariant: by age alone only when nothing of a cluster runs; whoever writes for it keeps it.

use std::sync::Arc;
use std::time::Duration;

use longshore_runtime::planted;

use crate::leader::Leader;
use crate::ledger::{Book, Draft};
use crate::service::cluster::{SEEN_STEP_MS, drop_cluster, living, running};

/// Time between two looks.
const INTERVAL: Duration = Duration::from_secs(600);
/// How long a cluster is kept that nobody writes for, in milliseconds: 30 days.
const KEEP_MS: i64 = 30 * SEEN_STEP_MS;

pub async fn run(leader: Arc<Leader>) -> anyhow::Result<()> {
    loop {
        tokio::time::sleep(INTERVAL).await;
        forget_old(&leader).await?;
    }
}

async fn forget_old(leader: &Leader) -> anyhow::Result<()> {
    let now_ms = leader.now_ms();
    let still: Vec<_> = {
        let (book, inventory) = (leader.ledger.book(), leader.inventory.borrow());
        let empty = |id: &&String| running(&inventory, id) == 0;
        book.clusters.keys().filter(empty).cloned().collect()
    };
    let edit = move |book: &Book, draft: &mut Draft| {
        let old: Vec<_> = still.into_iter().filter(|id| is_old(book, id, now_ms)).collect();
        for id in &old {
            // Never refused.
            let _ = drop_cluster(book, draft, id);
        }
        touch_unseen(book, draft, now_ms);
        old
    };
    let (forgotten, _) = leader.ledger.edit(None, edit).await?;
    for cluster_id in forgotten {
        leader.board.forget_cluster(&cluster_id);
        tracing::info!(cluster_id, "cluster forgotten: nobody wrote for it in 30 days");
    }
    Ok(())
}

fn is_old(book: &Book, cluster_id: &str, now_ms: i64) -> bool {
    let seen_ms = book.clusters.get(cluster_id).map_or(0, |cluster| cluster.seen_ms);
    let old = seen_ms > 0 && now_ms.saturating_sub(seen_ms) >= KEEP_MS && !planted::is("S14");
    old && living(book, cluster_id) == 0
}

/// Clusters that an older version recorded count from now on.
fn touch_unseen(book: &Book, draft: &mut Draft, now_ms: i64) {
    for (id, cluster) in book.clusters.iter().filter(|(_, cluster)| cluster.seen_ms == 0) {
        let mut seen = (**cluster).clone();
        seen.seen_ms = now_ms;
        draft.clusters.insert(id.clone(), Arc::new(seen));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{ClusterRecord, LaunchRecord};
    use crate::testing::launch;

    #[test]
    fn a_cluster_is_old_when_nobody_wrote_for_it_and_nothing_is_left() {
        let mut book = Book::default();
        for (id, seen_ms) in [("old", 5), ("young", 6), ("unknown", 0), ("busy", 5)] {
            let cluster = ClusterRecord { seen_ms, ..ClusterRecord::default() };
            book.clusters.insert(id.to_owned(), Arc::new(cluster));
        }
        let mut draft = Draft::default();
        draft.put(LaunchRecord::new(launch(vec![]), "busy", 0, 0));
        touch_unseen(&book, &mut draft, 9);
        book.absorb(draft);
        let old = book.clusters.keys().filter(|id| is_old(&book, id, KEEP_MS + 5));
        assert_eq!(old.collect::<Vec<_>>(), ["old"]);
        assert_eq!(book.clusters["unknown"].seen_ms, 9);
    }
}
