//! What an instance looks like to whoever boots on it: the seam between region and kubelets.
//!
//! Invariant: a kubelet learns of its machine only what a real one learns from instance metadata,
//! user data and the hardware.

use std::collections::BTreeMap;

use tokio::sync::watch;

/// Life of an instance, with EC2's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InstanceState {
    /// Launched, still booting.
    Pending,
    /// The operating system is up; user data has been handed over.
    Running,
    /// Termination has been asked for.
    ShuttingDown,
    /// Gone; listed for a while, as EC2 does.
    Terminated,
}

/// One instance as its own operating system sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// EC2 id, `i-` and 17 hexadecimal digits.
    pub instance_id: String,
    /// Type name, for example `t4g.small`.
    pub instance_type: String,
    /// Zone name, for example `us-east-1a`.
    pub zone: String,
    /// Zone id, for example `use1-az1`.
    pub zone_id: String,
    /// Kubernetes architecture name: `amd64` or `arm64`.
    pub arch: String,
    /// True when bought on the spot market.
    pub spot: bool,
    /// Current state.
    pub state: InstanceState,
    /// DNS name inside the VPC; the kubelet's node name.
    pub private_dns_name: String,
    /// Address inside the VPC.
    pub private_ip: String,
    /// Image booted.
    pub image_id: String,
    /// User data as bytes after base64 decoding; empty when none was given.
    pub user_data: Vec<u8>,
    /// Name of the instance profile, when one was given.
    pub instance_profile: Option<String>,
    /// EC2 tags.
    pub tags: BTreeMap<String, String>,
    /// vCPUs of the hardware, in thousandths.
    pub cpu_millis: i64,
    /// Memory that the operating system sees.
    pub memory_bytes: i64,
    /// Most pods the VPC CNI can give addresses to, without prefix delegation.
    pub eni_max_pods: u32,
}

/// Where kubelets learn which machines exist. Implemented by the region.
pub trait InstanceSource: Send + Sync + 'static {
    /// A counter that grows whenever any instance changes.
    fn changes(&self) -> watch::Receiver<u64>;
    /// Every instance still listed, terminated ones included.
    fn instances(&self) -> Vec<Instance>;
}
