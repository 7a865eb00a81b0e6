//! The regions this scheduler can reach, and one signal for all their changes.
//!
//! Invariant: a region is listed while an actuator leads it; its last state stays readable, marked
//! unsynced, when the actuator is gone, so that nothing is concluded from silence.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use longshore_proto::capacity::v1::capacity_service_client::CapacityServiceClient;
use longshore_runtime::propagate::InjectContext;
use tokio::sync::watch;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;

use super::RegionState;

/// Client of an actuator that sends the current trace context along.
pub type CapacityClient = CapacityServiceClient<InterceptedService<Channel, InjectContext>>;

/// One region: how to reach its leading actuator, and what it reports.
#[derive(Clone)]
pub struct Region {
    /// Client of the leading actuator.
    pub client: CapacityClient,
    /// Its state, shared with the task that keeps it in step.
    pub state: Arc<RwLock<RegionState>>,
}

impl Region {
    /// Reads the state. The lock is held for the length of `read`, which must not wait.
    pub fn read<T>(&self, read: impl FnOnce(&RegionState) -> T) -> T {
        read(&self.state.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The regions by name.
#[derive(Clone)]
pub struct Regions {
    regions: Arc<RwLock<BTreeMap<String, Region>>>,
    changes: watch::Sender<u64>,
    streams: Arc<AtomicU64>,
    links: Arc<RwLock<BTreeMap<String, Link>>>,
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
        }
    }
}

impl Regions {
    /// The region of that name, when an actuator has reported it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Region> {
        self.regions.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Names of the known regions.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let regions = self.regions.read().unwrap_or_else(PoisonError::into_inner);
        regions.keys().cloned().collect()
    }

    /// Why actuators do not serve that may be of this region, each with its address.
    #[must_use]
    pub fn troubles(&self, region: &str) -> Vec<String> {
        let links = self.links.read().unwrap_or_else(PoisonError::into_inner);
        let may_serve = |link: &&Link| link.region.as_deref().is_none_or(|known| known == region);
        links.values().filter(may_serve).filter_map(|link| link.trouble.clone()).collect()
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

    /// A value that changes whenever anything in any region does.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub(super) fn put(&self, name: &str, region: Region) {
        let mut regions = self.regions.write().unwrap_or_else(PoisonError::into_inner);
        regions.insert(name.to_owned(), region);
    }

    pub(super) fn next_stream(&self) -> u64 {
        self.streams.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn changed(&self) {
        self.changes.send_modify(|revision| *revision = revision.wrapping_add(1));
    }
}
