//! The regions this scheduler can reach, and a signal for the changes of each.
//!
//! Invariant: a region is one of one account: two accounts in a region of AWS are two of them. It
//! is listed while an actuator leads it; its last state stays readable, marked unsynced, when the
//! actuator is gone, so that nothing is concluded from silence.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use longshore_proto::capacity::v1::RegionInfo;
use longshore_proto::capacity::v1::capacity_service_client::CapacityServiceClient;
use longshore_runtime::planted;
use longshore_runtime::propagate::InjectContext;
use tokio::sync::watch;
use tokio::time::Instant;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;

use super::RegionState;

/// Client of an actuator that sends the current trace context along.
pub type CapacityClient = CapacityServiceClient<InterceptedService<Channel, InjectContext>>;

/// What tells regions apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RegionKey {
    /// Name of the region.
    pub region: String,
    /// Account id; empty when its actuator does not say.
    pub account: String,
}

impl RegionKey {
    /// Of the region that an actuator answers for.
    #[must_use]
    pub fn of(info: &RegionInfo) -> Self {
        let account = if planted::is("S5") { "" } else { &info.account_id };
        Self { region: info.region.clone(), account: account.to_owned() }
    }
}

/// Why a cluster has no region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfound {
    /// Nobody serves it.
    Unserved,
    /// Actuators of these accounts do, and the cluster does not say which is its own.
    Accounts(Vec<String>),
}

/// One region: how to reach its leading actuator, and what it reports.
#[derive(Clone)]
pub struct Region {
    /// Client of the leading actuator.
    pub client: CapacityClient,
    /// Its state, shared with the task that keeps it in step.
    pub state: Arc<RwLock<RegionState>>,
    /// A value that changes whenever anything in the region does.
    pub changes: watch::Sender<u64>,
}

impl Region {
    /// Reads the state. The lock is held for the length of `read`, which must not wait.
    pub fn read<T>(&self, read: impl FnOnce(&RegionState) -> T) -> T {
        read(&self.state.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The regions by name and account.
#[derive(Clone)]
pub struct Regions {
    regions: Arc<RwLock<BTreeMap<RegionKey, Region>>>,
    changes: watch::Sender<u64>,
    streams: Arc<AtomicU64>,
    links: Arc<RwLock<BTreeMap<String, Link>>>,
    since: Instant,
}

/// What became of the road to one actuator.
#[derive(Clone, Debug, Default)]
struct Link {
    /// Region it answered for; none before its first answer.
    region: Option<String>,
    /// Why it does not serve now; none while it does.
    trouble: Option<String>,
}

impl Default for Regions {
    fn default() -> Self {
        Self {
            regions: Arc::default(),
            changes: watch::Sender::new(0),
            streams: Arc::default(),
            links: Arc::default(),
            since: Instant::now(),
        }
    }
}

impl Regions {
    /// The region of that name that a cluster of this account is in; an account that is not known,
    /// on either side, means the only one there is.
    ///
    /// # Errors
    /// When nobody serves it, or several accounts do and none is named.
    pub fn find(&self, account: &str, name: &str) -> Result<Region, Unfound> {
        let regions = self.regions.read().unwrap_or_else(PoisonError::into_inner);
        let of_name = || regions.iter().filter(|(key, _)| key.region == name);
        let exact = of_name().find(|(key, _)| !account.is_empty() && key.account == account);
        if let Some((_, region)) = exact {
            return Ok(region.clone());
        }
        let may_be = |key: &RegionKey| account.is_empty() || key.account.is_empty();
        let mut candidates = of_name().filter(|(key, _)| may_be(key) || planted::is("S5"));
        match (candidates.next(), candidates.next()) {
            (Some((_, region)), None) => Ok(region.clone()),
            (None, _) => Err(Unfound::Unserved),
            (Some(_), Some(_)) => {
                Err(Unfound::Accounts(of_name().map(|(key, _)| key.account.clone()).collect()))
            }
        }
    }

    /// A region of that name, of whichever account: for what is on offer there.
    #[must_use]
    pub fn any(&self, name: &str) -> Option<Region> {
        let regions = self.regions.read().unwrap_or_else(PoisonError::into_inner);
        regions.iter().find(|(key, _)| key.region == name).map(|(_, region)| region.clone())
    }

    /// Names of the known regions.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let regions = self.regions.read().unwrap_or_else(PoisonError::into_inner);
        let names: std::collections::BTreeSet<&String> =
            regions.keys().map(|key| &key.region).collect();
        names.into_iter().cloned().collect()
    }

    /// Why actuators do not serve that may be of this region, each with its address.
    #[must_use]
    pub fn troubles(&self, region: &str) -> Vec<String> {
        let links = self.links.read().unwrap_or_else(PoisonError::into_inner);
        let may_serve = |link: &&Link| link.region.as_deref().is_none_or(|known| known == region);
        links.values().filter(may_serve).filter_map(|link| link.trouble.clone()).collect()
    }

    /// How long regions have been looked for: at first none is found, and nothing is wrong.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.since.elapsed()
    }

    pub(super) fn serves(&self, endpoint: &str, region: &str) {
        self.link(endpoint, |link| {
            *link = Link { region: Some(region.to_owned()), trouble: None };
        });
    }

    pub(super) fn fails(&self, endpoint: &str, why: String) {
        self.link(endpoint, |link| link.trouble = Some(why));
    }

    fn link(&self, endpoint: &str, change: impl FnOnce(&mut Link)) {
        let mut links = self.links.write().unwrap_or_else(PoisonError::into_inner);
        change(links.entry(endpoint.to_owned()).or_default());
    }

    /// A value that changes whenever a region comes, or has another leader.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Puts what a leader reports in place of what the one before did; none when that one is newer,
    /// and still leads.
    pub(super) fn put(
        &self,
        info: &RegionInfo,
        client: CapacityClient,
        state: Arc<RwLock<RegionState>>,
    ) -> Option<Region> {
        let mut regions = self.regions.write().unwrap_or_else(PoisonError::into_inner);
        let key = RegionKey::of(info);
        let known = regions.get(&key);
        let term = |state: &RegionState| state.info.as_ref().map_or(0, |info| info.term);
        if known.is_some_and(|known| known.read(|s| s.synced && term(s) > info.term)) {
            return None;
        }
        let changes = known.map_or_else(|| watch::Sender::new(0), |known| known.changes.clone());
        let region = Region { client, state, changes };
        regions.insert(key, region.clone());
        Some(region)
    }

    pub(super) fn next_stream(&self) -> u64 {
        self.streams.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn changed(&self) {
        self.changes.send_modify(|revision| *revision = revision.wrapping_add(1));
    }

    /// Wakes the sessions of one region.
    pub(super) fn changed_in(&self, region: &Region) {
        region.changes.send_modify(|revision| *revision = revision.wrapping_add(1));
        if planted::is("S26") {
            self.changed();
        }
    }
}

#[cfg(test)]
mod tests {
    use longshore_runtime::client::channel;
    use longshore_runtime::net::Network;

    use super::*;

    fn put(regions: &Regions, account: &str, term: u64) -> Option<Region> {
        let channel = channel("http://127.0.0.1:1", &Network::System).unwrap();
        let client = CapacityServiceClient::with_interceptor(channel, InjectContext);
        let info =
            RegionInfo { region: "us-east-1".to_owned(), account_id: account.to_owned(), term };
        let state =
            RegionState { info: Some(info.clone()), synced: true, ..RegionState::default() };
        regions.put(&info, client, Arc::new(RwLock::new(state)))
    }

    fn account(regions: &Regions, account: &str) -> Result<String, Unfound> {
        let region = regions.find(account, "us-east-1")?;
        Ok(region.read(|state| state.info.clone().unwrap_or_default().account_id))
    }

    #[tokio::test]
    async fn two_accounts_in_a_region_are_two_regions() {
        let regions = Regions::default();
        assert_eq!(account(&regions, "1"), Err(Unfound::Unserved));
        put(&regions, "1", 1).unwrap();
        assert_eq!(account(&regions, "").as_deref(), Ok("1"), "the only one");
        assert_eq!(account(&regions, "2"), Err(Unfound::Unserved));
        put(&regions, "2", 1).unwrap();
        assert_eq!(account(&regions, "1").as_deref(), Ok("1"));
        assert_eq!(account(&regions, "2").as_deref(), Ok("2"));
        let both = Unfound::Accounts(vec!["1".to_owned(), "2".to_owned()]);
        assert_eq!(account(&regions, ""), Err(both));
        assert_eq!(regions.names(), ["us-east-1"]);
        let silent = Regions::default();
        put(&silent, "", 1).unwrap();
        assert_eq!(account(&silent, "7").as_deref(), Ok(""), "its actuator does not say");
    }

    #[tokio::test]
    async fn a_leader_that_was_deposed_does_not_take_the_place_of_the_next() {
        let regions = Regions::default();
        let next = put(&regions, "1", 9).unwrap();
        assert!(put(&regions, "1", 5).is_none());
        next.state.write().unwrap().lose(tokio::time::Instant::now());
        assert!(put(&regions, "1", 5).is_some(), "nobody else is there");
    }

    #[tokio::test]
    async fn a_change_wakes_only_those_who_are_in_the_region() {
        let regions = Regions::default();
        let (first, second) = (put(&regions, "1", 1).unwrap(), put(&regions, "2", 1).unwrap());
        let all = regions.changes();
        let (one, two) = (first.changes.subscribe(), second.changes.subscribe());
        regions.changed_in(&first);
        assert_eq!(
            [&one, &two, &all].map(|seen| seen.has_changed().unwrap()),
            [true, false, false]
        );
    }
}
