//! The connected clusters, and what tells them apart.
//!
//! Invariant: at most one session of a cluster is open, and no cluster opens one after the other
//! without end: each begins with all that the cluster holds. A cluster is its name, account and
//! region; what is not told of these may be anything. Its UID only confirms that: restored from
//! another's etcd, a cluster has the other's UID, and is another one where its place is another.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use longshore_proto::cluster::v1::Hello;
use longshore_proto::reason::Reason;
use longshore_runtime::planted;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use crate::session::{Breaker, Query};

/// Sessions that a cluster may open one right after the other: a rollout of the watcher, a move
/// between schedulers and a bad road together need fewer.
const AT_ONCE: u32 = 10;
/// For each more it has to wait so long.
const EACH: Duration = Duration::from_secs(1);

/// A cluster as its watcher introduces it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    /// Name.
    pub name: String,
    /// Region; empty while unknown.
    pub region: String,
    /// Account; empty when not told.
    pub account: String,
    /// UID; empty when not told.
    pub uid: String,
}

impl Identity {
    /// Of the watcher that says hello.
    #[must_use]
    pub fn of(hello: &Hello) -> Self {
        Self {
            name: hello.cluster_id.clone(),
            region: hello.region.clone(),
            account: hello.account_id.clone(),
            uid: hello.cluster_uid.clone(),
        }
    }

    /// True when both may stand for the same name, account and region.
    fn may_be_at(&self, other: &Self) -> bool {
        let agree = |one: &str, two: &str| one == two || one.is_empty() || two.is_empty();
        let place = agree(&self.region, &other.region) && agree(&self.account, &other.account);
        self.name == other.name && (place || planted::is("S5"))
    }

    fn is_same_cluster(&self, other: &Self) -> bool {
        self.name == other.name && !self.uid.is_empty() && self.uid == other.uid
    }

    fn is_other_cluster(&self, other: &Self) -> bool {
        let told = !self.uid.is_empty() && !other.uid.is_empty();
        told && self.uid != other.uid && !planted::is("S5")
    }

    /// True when somebody may mean this one by `name`: its name, with region and account before it
    /// if need be.
    fn is_called(&self, name: &str) -> bool {
        let Self { name: own, region, account, .. } = self;
        name == own
            || name == format!("{region}/{own}")
            || name == format!("{account}/{region}/{own}")
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = [&self.account, &self.region].into_iter().filter(|part| !part.is_empty());
        place.into_iter().try_for_each(|part| write!(f, "{part}/"))?;
        f.write_str(&self.name)
    }
}

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

/// Why a session is not let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rival {
    /// One of the same cluster with at least its epoch is open.
    Newer(u64),
    /// It cannot be told from another cluster, which is connected.
    Other(Identity),
    /// Too many have come before it in a short time.
    Flapping,
}

impl Rival {
    /// The refusal of `cluster`, whose session has this epoch.
    #[must_use]
    pub fn refusal(&self, cluster: &Identity, session_epoch: u64) -> Status {
        match self {
            Self::Newer(epoch) => Reason::StaleFence.status(format!(
                "session {session_epoch} of cluster {cluster} is not newer than session {epoch}, which \
                 is open; raise Hello.session_epoch with every session, and give each cluster a name of \
                 its own"
            )),
            Self::Other(known) => Reason::ClusterMismatch.status(format!(
                "cluster {cluster} with UID {:?} cannot be told from cluster {known} with UID {:?}, which \
                 is connected; start both watchers with --region and --account-id, or give one of them \
                 another --cluster-name; one that took the other's place is served once the other's \
                 watcher has gone",
                cluster.uid, known.uid
            )),
            Self::Flapping => Reason::Overloaded.status(format!(
                "cluster {cluster} has opened {AT_ONCE} sessions in a few seconds, and may open one in \
                 {EACH:?}; its watcher tries again by itself. If that goes on, see in its log why its \
                 sessions end, or whether two watchers serve the cluster"
            )),
        }
    }
}

#[derive(Default)]
struct State {
    open: BTreeMap<Identity, Connected>,
    /// What has ended on absence alone: a session that begins anew has no new allowance.
    breakers: BTreeMap<Identity, Arc<Mutex<Breaker>>>,
    /// When each cluster may again open as many sessions at once as any. Virtual scheduling, ITU-T
    /// I.371: each session moves it on by as long as one takes to be earned.
    rested: BTreeMap<Identity, Instant>,
}

/// The connected clusters.
#[derive(Clone, Default)]
pub struct Sessions(Arc<Mutex<State>>);

impl Sessions {
    /// Puts a session in place and ends the one before it; its cluster's breaker.
    ///
    /// # Errors
    /// When the new one's epoch is not larger, the cluster cannot be told from another, or it opens
    /// sessions too often.
    pub fn admit(
        &self,
        cluster: &Identity,
        session: Connected,
    ) -> Result<Arc<Mutex<Breaker>>, Rival> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = state.before(cluster)?;
        if let Some(known) = before.as_ref().and_then(|before| state.open.get(before))
            && known.session_epoch >= session.session_epoch
        {
            return Err(Rival::Newer(known.session_epoch));
        }
        state.pace(cluster)?;
        if let Some(known) = before.and_then(|before| state.open.remove(&before)) {
            known.token.cancel();
        }
        state.open.insert(cluster.clone(), session);
        Ok(state.breaker(cluster))
    }

    /// Takes a session away, unless another one is in its place already.
    pub fn leave(&self, cluster: &Identity, session_epoch: u64) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.open.get(cluster).is_some_and(|known| known.session_epoch == session_epoch) {
            state.open.remove(cluster);
        }
    }

    /// The session of the cluster that is called so.
    ///
    /// # Errors
    /// What the clusters are to be called when there are several; nothing when there is none.
    pub fn get(&self, name: &str) -> Result<Connected, Vec<String>> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let called: Vec<_> = state.open.iter().filter(|(known, _)| known.is_called(name)).collect();
        match called.as_slice() {
            [(_, session)] => Ok((*session).clone()),
            several => Err(several.iter().map(|(known, _)| known.to_string()).collect()),
        }
    }

    /// What the connected clusters are called.
    #[must_use]
    pub fn clusters(&self) -> Vec<String> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.open.keys().map(ToString::to_string).collect()
    }
}

impl State {
    /// The open session that one of `cluster` takes the place of.
    fn before(&self, cluster: &Identity) -> Result<Option<Identity>, Rival> {
        let near: Vec<_> = self.open.keys().filter(|known| known.may_be_at(cluster)).collect();
        let same: Vec<_> = near.iter().filter(|known| known.is_same_cluster(cluster)).collect();
        if let [same] = same.as_slice() {
            return Ok(Some((**same).clone()));
        }
        let other = near.iter().find(|known| known.is_other_cluster(cluster) || near.len() > 1);
        match other {
            Some(other) => Err(Rival::Other((*other).clone())),
            None => Ok(near.first().map(|known| (*known).clone())),
        }
    }

    /// One session more of a cluster.
    fn pace(&mut self, cluster: &Identity) -> Result<(), Rival> {
        let now = Instant::now();
        self.rested.retain(|_, at| *at > now);
        let rested = self.rested.get(cluster).copied().unwrap_or(now) + EACH;
        if rested.duration_since(now) > EACH * AT_ONCE {
            return Err(Rival::Flapping);
        }
        self.rested.insert(cluster.clone(), rested);
        Ok(())
    }

    fn breaker(&mut self, cluster: &Identity) -> Arc<Mutex<Breaker>> {
        let now = Instant::now();
        // What is in use has a session; of the rest only what still counts is kept.
        self.breakers.retain(|_, breaker| {
            let idle = breaker.lock().unwrap_or_else(PoisonError::into_inner).is_idle(now);
            Arc::strong_count(breaker) > 1 || !idle
        });
        Arc::clone(self.breakers.entry(cluster.clone()).or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(session_epoch: u64) -> Connected {
        let (queries, _) = mpsc::channel(1);
        Connected { session_epoch, queries, token: CancellationToken::new() }
    }

    fn cluster(account: &str, region: &str, uid: &str) -> Identity {
        let [account, region, uid] = [account, region, uid].map(str::to_owned);
        Identity { name: "prod".to_owned(), region, account, uid }
    }

    #[test]
    fn a_larger_epoch_takes_over_and_any_other_is_refused() {
        let sessions = Sessions::default();
        let (first, c) = (session(5), cluster("", "", ""));
        sessions.admit(&c, first.clone()).unwrap();
        assert_eq!(sessions.admit(&c, session(4)).err(), Some(Rival::Newer(5)));
        assert_eq!(sessions.admit(&c, session(5)).err(), Some(Rival::Newer(5)));
        assert!(!first.token.is_cancelled());
        sessions.admit(&c, session(6)).unwrap();
        assert!(first.token.is_cancelled());
        sessions.leave(&c, 5);
        assert_eq!(sessions.get("prod").map(|known| known.session_epoch).ok(), Some(6));
        sessions.leave(&c, 6);
        assert!(sessions.clusters().is_empty());
    }

    #[test]
    fn clusters_of_one_name_live_side_by_side_where_they_can_be_told_apart() {
        let takes_over = |one: [&str; 3], two: [&str; 3]| {
            let sessions = Sessions::default();
            let first = session(5);
            let identity = |[account, region, uid]: [&str; 3]| cluster(account, region, uid);
            sessions.admit(&identity(one), first.clone()).unwrap();
            let admitted = sessions.admit(&identity(two), session(6));
            admitted.map(|_| first.token.is_cancelled()).map_err(|_| ())
        };
        for (one, two, outcome) in [
            (["1", "us", "x"], ["1", "us", "x"], Ok(true)),
            (["1", "us", "x"], ["1", "eu", "y"], Ok(false)),
            (["1", "us", "x"], ["2", "us", "y"], Ok(false)),
            (["1", "us", "x"], ["1", "us", "y"], Err(())),
            (["1", "us", "x"], ["", "", "y"], Err(())),
            (["", "", ""], ["1", "us", "y"], Ok(true)),
            (["1", "us", "x"], ["", "", ""], Ok(true)),
            (["", "us", "x"], ["1", "us", "x"], Ok(true)),
            // One was restored from the etcd of the other.
            (["1", "us", "x"], ["2", "us", "x"], Ok(false)),
            (["", "us", "x"], ["1", "eu", "x"], Ok(false)),
        ] {
            assert_eq!(takes_over(one, two), outcome, "{one:?} then {two:?}");
        }
    }

    #[test]
    fn of_two_clusters_of_one_uid_the_one_at_the_place_is_meant() {
        let sessions = Sessions::default();
        let (first, second) = (session(5), session(6));
        sessions.admit(&cluster("1", "us", "x"), first.clone()).unwrap();
        sessions.admit(&cluster("2", "us", "x"), second.clone()).unwrap();
        let unclear = sessions.admit(&cluster("", "us", "x"), session(7));
        assert!(matches!(unclear, Err(Rival::Other(_))), "it may be either");
        let again = sessions.admit(&cluster("1", "us", "x"), session(5));
        assert_eq!(again.err(), Some(Rival::Newer(5)));
        sessions.admit(&cluster("2", "us", "x"), session(8)).unwrap();
        assert!(!first.token.is_cancelled() && second.token.is_cancelled());
    }

    #[test]
    fn a_name_of_two_clusters_is_asked_for_with_its_region() {
        let sessions = Sessions::default();
        sessions.admit(&cluster("1", "us", "x"), session(5)).unwrap();
        assert!(sessions.get("prod").is_ok());
        sessions.admit(&cluster("1", "eu", "y"), session(6)).unwrap();
        let several = vec!["1/eu/prod".to_owned(), "1/us/prod".to_owned()];
        assert_eq!(sessions.get("prod").err(), Some(several));
        assert_eq!(sessions.get("eu/prod").map(|known| known.session_epoch).ok(), Some(6));
        assert_eq!(sessions.get("1/us/prod").map(|known| known.session_epoch).ok(), Some(5));
        assert_eq!(sessions.get("other").err(), Some(Vec::new()));
        let unclear = sessions.admit(&cluster("", "", ""), session(7));
        assert!(matches!(unclear, Err(Rival::Other(_))), "it may be either");
    }

    #[tokio::test(start_paused = true)]
    async fn a_cluster_that_flaps_waits_and_keeps_the_session_that_it_has() {
        let (sessions, c) = (Sessions::default(), cluster("1", "us", "x"));
        let mut last = session(0);
        for epoch in 1..=u64::from(AT_ONCE) {
            last = session(epoch);
            sessions.admit(&c, last.clone()).unwrap();
        }
        assert_eq!(sessions.admit(&c, session(90)).err(), Some(Rival::Flapping));
        assert!(!last.token.is_cancelled());
        sessions.leave(&c, last.session_epoch);
        assert_eq!(sessions.admit(&c, session(91)).err(), Some(Rival::Flapping));
        assert!(sessions.admit(&cluster("2", "us", "y"), session(1)).is_ok(), "others go on");
        tokio::time::advance(EACH).await;
        assert!(sessions.admit(&c, session(92)).is_ok());
        assert_eq!(sessions.admit(&c, session(93)).err(), Some(Rival::Flapping));
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_session_has_no_new_allowance() {
        let (sessions, c) = (Sessions::default(), cluster("1", "us", "x"));
        let admits = |breaker: Arc<Mutex<Breaker>>, name: &str| {
            breaker.lock().unwrap().admits(name, 0, Instant::now())
        };
        let first = sessions.admit(&c, session(1)).unwrap();
        assert!(admits(Arc::clone(&first), "a") && admits(first, "b"));
        sessions.leave(&c, 1);
        let second = sessions.admit(&c, session(2)).unwrap();
        assert!(!admits(second, "c"));
    }
}
