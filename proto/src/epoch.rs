//! Epochs of sessions: times of day in milliseconds, larger with each session of a cluster.
//!
//! Invariant: none is taken that lies far ahead of the clock of who receives it. One that did would
//! keep the cluster's later sessions out until that time had come.

use tonic::Status;

use crate::reason::Reason;

/// How far an epoch may lie ahead: clocks of hosts differ, and a session that begins right after
/// another has the next number, not the time.
pub const AHEAD_MAX_MS: i64 = 15 * 60 * 1000;

/// Checks the epoch of a cluster's session.
///
/// # Errors
/// When it lies too far ahead of `now_ms`, milliseconds since 1970 by the receiver's clock.
pub fn check(cluster: &str, session_epoch: u64, now_ms: i64) -> Result<(), Box<Status>> {
    let ahead = i64::try_from(session_epoch).unwrap_or(i64::MAX).saturating_sub(now_ms);
    if ahead <= AHEAD_MAX_MS {
        return Ok(());
    }
    Err(Box::new(Reason::EpochAhead.status(format!(
        "session {session_epoch} of cluster {cluster} lies {} s ahead of the clock here, and {} s are \
         allowed; set the clocks of both hosts, and if the watcher's was wrong, delete the annotation \
         longshore.dev/session-epoch of its Lease",
        ahead / 1000,
        AHEAD_MAX_MS / 1000
    ))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_is_a_time_that_has_nearly_come() {
        let now_ms = 1_800_000_000_000;
        let at = |ms: i64| u64::try_from(now_ms + ms).unwrap();
        for fine in [1, at(-1), at(0), at(AHEAD_MAX_MS)] {
            assert!(check("c", fine, now_ms).is_ok(), "{fine}");
        }
        for wrong in [at(AHEAD_MAX_MS + 1), u64::MAX] {
            let status = check("c", wrong, now_ms).unwrap_err();
            assert!(status.message().contains("longshore.dev/session-epoch"), "{status}");
        }
    }
}
