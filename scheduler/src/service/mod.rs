//! The two services the scheduler serves, as thin shells.

pub mod cluster;
pub mod planning;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::session::Query;

/// A connected cluster, as the services see it.
#[derive(Clone)]
pub struct Connected {
    /// Epoch of its session.
    pub session_epoch: u64,
    /// Questions to the session.
    pub queries: mpsc::Sender<Query>,
    /// Ends the session.
    pub token: CancellationToken,
}

/// The connected clusters by id.
#[derive(Clone, Default)]
pub struct Sessions(Arc<Mutex<BTreeMap<String, Connected>>>);

impl Sessions {
    /// Puts a session in place and ends the one before it.
    ///
    /// # Errors
    /// The epoch of the session in place when the new one's is not larger.
    pub fn admit(&self, cluster_id: &str, session: Connected) -> Result<(), u64> {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = sessions.get(cluster_id) {
            if known.session_epoch >= session.session_epoch {
                return Err(known.session_epoch);
            }
            known.token.cancel();
        }
        sessions.insert(cluster_id.to_owned(), session);
        Ok(())
    }

    /// Takes a session away, unless another one is in its place already.
    pub fn leave(&self, cluster_id: &str, session_epoch: u64) {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.get(cluster_id).is_some_and(|known| known.session_epoch == session_epoch) {
            sessions.remove(cluster_id);
        }
    }

    /// The session of a cluster.
    #[must_use]
    pub fn get(&self, cluster_id: &str) -> Option<Connected> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(cluster_id).cloned()
    }

    /// Ids of the connected clusters.
    #[must_use]
    pub fn clusters(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(session_epoch: u64) -> Connected {
        let (queries, _) = mpsc::channel(1);
        Connected { session_epoch, queries, token: CancellationToken::new() }
    }

    #[test]
    fn a_larger_epoch_takes_over_and_any_other_is_refused() {
        let sessions = Sessions::default();
        let first = session(5);
        sessions.admit("c", first.clone()).unwrap();
        assert_eq!(sessions.admit("c", session(4)), Err(5));
        assert_eq!(sessions.admit("c", session(5)), Err(5));
        assert!(!first.token.is_cancelled());
        sessions.admit("c", session(6)).unwrap();
        assert!(first.token.is_cancelled());
        sessions.leave("c", 5);
        assert_eq!(sessions.get("c").map(|known| known.session_epoch), Some(6));
        sessions.leave("c", 6);
        assert!(sessions.clusters().is_empty());
    }
}
