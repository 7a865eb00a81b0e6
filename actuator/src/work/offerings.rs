//! Reopening offerings that have been closed for long enough.
//!
//! Invariant: told within a few seconds of the time.

use std::sync::Arc;
use std::time::Duration;

use longshore_proto::capacity::v1::OfferingUpdates;

use crate::leader::Leader;

const TICK: Duration = Duration::from_secs(2);

pub async fn run(leader: Arc<Leader>) -> anyhow::Result<()> {
    loop {
        let updates = leader.closed().reopen(leader.now_ms());
        leader.board.post_offerings(OfferingUpdates { updates, ..OfferingUpdates::default() });
        tokio::time::sleep(TICK).await;
    }
}
