//! The simulated cluster: an API server, a plain scheduler and the controllers workloads need.
//!
//! Invariant: clients reach it over the Kubernetes API only, and what they see is what a real
//! control plane would show them.

mod admission;
pub mod clock;
mod control;
pub mod error;
pub mod faults;
mod handle;
mod http;
mod identity;
pub(crate) mod object;
mod patch;
mod resources;
pub(crate) mod schedule;
mod schema;
pub mod selector;
mod server;
mod store;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use jiff::Timestamp;

pub use handle::{Cluster, ClusterError, ClusterHandle};

/// How a simulated cluster is set up.
#[derive(Clone, Debug)]
pub struct ClusterConfig {
    /// Name of the cluster, as user data and tags give it.
    pub name: String,
    /// Where to listen; port 0 takes any free one.
    pub listen: SocketAddr,
    /// Source of uids and generated names.
    pub seed: u64,
    /// What the cluster's clock shows at the start.
    pub start_time: Timestamp,
    /// Changes remembered for each resource; older watches get `410 Gone`.
    pub history_per_resource: usize,
    /// Pause between bookmarks of a quiet watch.
    pub bookmark_interval: Duration,
    /// Minor version that is claimed, `35` for 1.35.
    pub kubernetes_minor: u32,
    /// True to run kube-scheduler's stand-in.
    pub scheduler: bool,
    /// True to run the controllers of workloads, budgets, garbage and nodes.
    pub controllers: bool,
    /// True to remove pods whose grace is over though no kubelet said so. A real cluster waits for
    /// the kubelet or the node's end.
    pub reaps_pods_after_grace: bool,
}

impl Default for ClusterConfig {
    fn default() -> Self {
        Self {
            name: "lab".to_owned(),
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            seed: 1,
            start_time: Timestamp::now(),
            history_per_resource: 100_000,
            bookmark_interval: Duration::from_secs(60),
            kubernetes_minor: 35,
            scheduler: true,
            controllers: true,
            reaps_pods_after_grace: true,
        }
    }
}

impl ClusterConfig {
    fn control(&self) -> control::ControlConfig {
        control::ControlConfig {
            scheduler: self.scheduler,
            controllers: self.controllers,
            reaps_pods_after_grace: self.reaps_pods_after_grace,
        }
    }
}
