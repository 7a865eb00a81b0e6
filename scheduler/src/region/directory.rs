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
}

impl Default for Regions {
    fn default() -> Self {
        Self { regions: Arc::default(), changes: watch::Sender::new(0), streams: Arc::default() }
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
