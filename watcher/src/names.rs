//! The keys the watcher works with, under short names, and the few that are its own business.
//!
//! Invariant: what the API defines is only named here, never spelled again.

pub use crate::api::keys::annotations::{
    ACCEPT_LOSSES_UNTIL, CANARY, CANARY_PATIENCE, CANARY_WAIT, DO_NOT_CONSOLIDATE, DO_NOT_DISRUPT,
    DO_NOT_EVICT, DRIFT_HASH, EVICTIONS_PER_HOUR, LAUNCH_ID, MAX_PRICE, NODE_REPAIR,
    POD_DELETION_COST, REPLACED_BY, REPLACEMENT, RETRY_ROLLOUT, SPREAD_DENSITY, SURGE, SURGED_FOR,
    TERMINATION_TIMESTAMP, TRACEPARENT,
};
pub use crate::api::keys::finalizers::TERMINATION;
pub use crate::api::keys::labels::{
    ARCH, CAPACITY_TYPE, DO_NOT_SYNC_TAINTS, EXCLUDE_FROM_LOAD_BALANCERS, EXCLUDED_BY_AUTOSCALER,
    HOSTNAME, INITIALIZED, INSTANCE_TYPE, NODE_POOL, OS, PROVISIONER_NAME, REGION, REGISTERED,
    ZONE, ZONE_ID,
};
pub use crate::api::keys::taints::{
    CLOUD_UNINITIALIZED, DISRUPTED as DISRUPTED_TAINT, NOT_READY, UNREACHABLE,
    UNREGISTERED as UNREGISTERED_TAINT,
};

use crate::api::keys::labels::ALIASES;

/// Annotation on claims: why they are being disrupted.
pub const DISRUPTION_REASON: &str = "longshore.dev/disruption-reason";
/// Prefix of the instance labels that EC2 node classes bring.
pub const EC2_PREFIX: &str = "karpenter.k8s.aws/";
/// Prefix of taints that stand for a readiness gate and are gone before a node is initialised.
pub const READINESS_PREFIX: &str = "readiness.k8s.io/";
/// Field manager of everything that Longshore writes.
pub const FIELD_MANAGER: &str = "longshore";

/// Spelling in use today of a label key that has changed its name.
#[must_use]
pub fn canonical(key: &str) -> &str {
    if key == PROVISIONER_NAME {
        return NODE_POOL;
    }
    ALIASES.iter().find(|(alias, _)| *alias == key).map_or(key, |(_, today)| today)
}
