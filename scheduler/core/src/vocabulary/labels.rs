//! Labels and the keys the planner itself knows.
//!
//! Invariant: every key that is spelt in the planner is spelt here.

use std::collections::BTreeMap;

pub use crate::vocabulary::catalogue::capacity_group::{
    CAPACITY_EIGHTH, CAPACITY_HALF, CAPACITY_QUARTER,
};

/// Label key to value.
pub type Labels = BTreeMap<String, String>;

/// Name of the node; the topology in which every node is its own domain.
pub const HOSTNAME: &str = "kubernetes.io/hostname";
/// Zone name.
pub const ZONE: &str = "topology.kubernetes.io/zone";
/// Zone id.
pub const ZONE_ID: &str = "topology.k8s.aws/zone-id";
/// Region.
pub const REGION: &str = "topology.kubernetes.io/region";
/// CPU architecture.
pub const ARCH: &str = "kubernetes.io/arch";
/// Operating system.
pub const OS: &str = "kubernetes.io/os";
/// Instance type.
pub const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
/// Family of the instance type, such as m7g.
pub const INSTANCE_FAMILY: &str = "karpenter.k8s.aws/instance-family";
/// Build of Windows.
pub const WINDOWS_BUILD: &str = "node.kubernetes.io/windows-build";
/// How the instance is bought.
pub const CAPACITY_TYPE: &str = "karpenter.sh/capacity-type";
/// Pool that owns the node.
pub const NODE_POOL: &str = "karpenter.sh/nodepool";
/// The same for nodes of a legacy Provisioner.
pub const PROVISIONER: &str = "karpenter.sh/provisioner-name";
/// Set to `true` on a node that has registered.
pub const REGISTERED: &str = "karpenter.sh/registered";
/// Set to `true` on a node that has initialised.
pub const INITIALIZED: &str = "karpenter.sh/initialized";
/// Set by EKS on its own compute; `fargate` nodes hold exactly one pod and are never capacity.
pub const COMPUTE_TYPE: &str = "eks.amazonaws.com/compute-type";
/// Reservation an instance runs in.
pub const RESERVATION_ID: &str = "karpenter.k8s.aws/capacity-reservation-id";
/// Kind of the reservation an instance runs in.
pub const RESERVATION_TYPE: &str = "karpenter.k8s.aws/capacity-reservation-type";
/// Whether the owner of the reservation may take an instance back.
pub const RESERVATION_INTERRUPTIBLE: &str = "karpenter.k8s.aws/capacity-reservation-interruptible";
/// What these say of every reservation here: on-demand ones that nobody takes back.
pub const OF_RESERVATIONS: [(&str, &str); 2] =
    [(RESERVATION_TYPE, "default"), (RESERVATION_INTERRUPTIBLE, "false")];

/// Prefix of the labels an instance type carries.
const PROVIDER_PREFIX: &str = "karpenter.k8s.aws/";
/// Label prefix of the node class a node was made from; named by its user, not by the provider.
const NODE_CLASS_PREFIX: &str = "karpenter.k8s.aws/ec2nodeclass";

const WELL_KNOWN: [&str; 12] = [
    NODE_POOL,
    CAPACITY_TYPE,
    ZONE,
    ZONE_ID,
    REGION,
    INSTANCE_TYPE,
    ARCH,
    OS,
    WINDOWS_BUILD,
    CAPACITY_HALF,
    CAPACITY_QUARTER,
    CAPACITY_EIGHTH,
];

/// True for keys that a new node will define although nobody has written them down: a requirement
/// on an undefined well-known key may still be met, one on any other undefined key may not.
#[must_use]
pub fn is_well_known(key: &str) -> bool {
    WELL_KNOWN.contains(&key)
        || (key.starts_with(PROVIDER_PREFIX) && !key.starts_with(NODE_CLASS_PREFIX))
}

/// The key under which a label is known today: legacy aliases are rewritten, and the EBS driver's
/// name of a zone; others stay. Watchers do the same (`watcher/src/api/keys.rs`), so that whoever
/// asks for a plan without one gets the same answer.
#[must_use]
pub fn canonical(key: &str) -> &str {
    match key {
        "topology.ebs.csi.aws.com/zone" | "failure-domain.beta.kubernetes.io/zone" => ZONE,
        "failure-domain.beta.kubernetes.io/region" => REGION,
        "beta.kubernetes.io/arch" => ARCH,
        "beta.kubernetes.io/os" => OS,
        "beta.kubernetes.io/instance-type" => INSTANCE_TYPE,
        _ => key,
    }
}
