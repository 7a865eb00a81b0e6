//! Kubelets that join a cluster, real or simulated, when their instance boots.
//!
//! Invariant: a kubelet learns of its machine from the instance and its user data alone, and acts
//! on the cluster through the Kubernetes API alone.

pub mod capacity;
mod client;
mod devices;
mod dispatch;
mod handle;
mod machine;
pub mod node;
mod pod;
mod refusals;
pub mod userdata;

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;

use crate::cluster::clock::Clock;

pub use handle::Kubelets;
pub use node::StaticNode;

/// Annotation: how long a pod's containers run before they exit, `30s`; for ever without it.
pub const RUNS_FOR: &str = "lab.longshore.dev/runs-for";
/// Annotation: exit code of containers that end by themselves; 0 without it.
pub const EXIT_CODE: &str = "lab.longshore.dev/exit-code";
/// Annotation: how long containers take to become ready after they started, `5s`.
pub const READY_AFTER: &str = "lab.longshore.dev/ready-after";
/// Annotation: how long containers take to exit once asked to, `10s`; never longer than the grace.
pub const STOPS_AFTER: &str = "lab.longshore.dev/stops-after";

/// How kubelets behave. The default is as fast as the API server answers.
#[derive(Clone, Debug)]
pub struct KubeletConfig {
    /// Name of the cluster; machines whose user data names another never join.
    pub cluster_name: String,
    /// Address of the API server as user data has to name it; any will do when none.
    pub cluster_endpoint: Option<String>,
    /// Region, for the topology label.
    pub region: String,
    /// Version the kubelets report.
    pub kubelet_version: String,
    /// From the instance running to its Node object: operating system and kubelet start.
    pub register_delay: Duration,
    /// From the Node object to Ready: the CNI plugin's start.
    pub ready_delay: Duration,
    /// From a pod being bound to its containers running: image pull and start.
    pub pod_start_delay: Duration,
    /// From the first request to stop to the exit of a pod's containers, at most its grace.
    pub pod_stop_delay: Duration,
    /// How long pods of Jobs run that do not say it themselves.
    pub job_pod_duration: Duration,
    /// From a pod's being called not ready with its node to its kubelet's word against that.
    pub status_interval: Duration,
    /// Pause between renewals of a node's lease.
    pub lease_interval: Duration,
    /// Size of the root volume, the node's ephemeral storage.
    pub root_volume_bytes: i64,
    /// True to play the cloud controller: Node objects of terminated instances are removed.
    pub removes_nodes_of_terminated_instances: bool,
    /// True when a driver lists the devices of nodes in ResourceSlices.
    pub lists_devices: bool,
    /// Images on which the network plug-in does not start: nodes join, and are never ready.
    pub sick_images: BTreeSet<String>,
    /// Most requests to the API server at a time: for nodes, and for pods.
    pub requests_in_flight_max: usize,
    /// What the machines' clocks show.
    pub clock: Clock,
}

impl KubeletConfig {
    /// Kubelets of one cluster in one region, without delays.
    pub fn new(cluster_name: &str, region: &str) -> Self {
        Self {
            cluster_name: cluster_name.to_owned(),
            cluster_endpoint: None,
            region: region.to_owned(),
            kubelet_version: "v1.35.0".to_owned(),
            register_delay: Duration::ZERO,
            ready_delay: Duration::ZERO,
            pod_start_delay: Duration::ZERO,
            pod_stop_delay: Duration::ZERO,
            job_pod_duration: Duration::from_secs(1),
            status_interval: Duration::from_millis(100),
            lease_interval: Duration::from_secs(10),
            root_volume_bytes: 20 << 30,
            removes_nodes_of_terminated_instances: true,
            lists_devices: false,
            sick_images: BTreeSet::new(),
            requests_in_flight_max: 32,
            clock: Clock::starting_at(Timestamp::now()),
        }
    }

    /// The same with the delays seen on EKS: 25 s to register, 10 s to Ready, 2 s to start a pod;
    /// and a kubelet's 10 s between two looks at what it has reported.
    #[must_use]
    pub fn realistic(self) -> Self {
        Self {
            register_delay: Duration::from_secs(25),
            ready_delay: Duration::from_secs(10),
            pod_start_delay: Duration::from_secs(2),
            pod_stop_delay: Duration::from_secs(2),
            status_interval: Duration::from_secs(10),
            ..self
        }
    }
}
