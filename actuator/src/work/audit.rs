//! Forgetting what is old in the audit record.
//!
//! Invariant: by age alone.

use std::sync::Arc;
use std::time::Duration;

use crate::leader::Leader;
use crate::ledger::audit_id_at;

/// Time between two looks.
const INTERVAL: Duration = Duration::from_secs(3600);
/// How long an entry is kept in etcd, in milliseconds: 30 days.
const KEEP_MS: i64 = 30 * 86_400_000;

pub async fn run(leader: Arc<Leader>) -> anyhow::Result<()> {
    loop {
        tokio::time::sleep(INTERVAL).await;
        let before = audit_id_at(leader.now_ms() - KEEP_MS);
        leader.store.forget_audit(&leader.term, &before).await?;
    }
}
