//! The books at the end: instances against launches and claims.
//!
//! Invariant: counted from what EC2 and the cluster say, never from a service's memory.

use std::collections::{BTreeMap, BTreeSet};

use longshore_lab::instance::{Instance, InstanceState};

/// Tag that names the launch an instance stems from.
pub const LAUNCH_TAG: &str = "longshore.dev/launch-id";

/// Tag that names the call for several launches that an instance stems from.
const BATCH_TAG: &str = "longshore.dev/batch-id";

/// Counts over all instances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Books {
    /// Instances ever launched.
    pub launches: usize,
    /// Instances beyond the first of one launch.
    pub duplicates: usize,
    /// Instances alive that no claim stands for.
    pub leaks: usize,
}

/// Balances instances against the provider ids of the claims that exist.
#[must_use]
pub fn books(instances: &[Instance], claimed: &BTreeSet<String>) -> Books {
    let mut by_launch: BTreeMap<&str, usize> = BTreeMap::new();
    for instance in instances {
        // One of a call for several launches that ended before it was known whose it is stands for
        // itself.
        let own = || instance.tags.contains_key(BATCH_TAG).then_some(&instance.instance_id);
        let launch = instance.tags.get(LAUNCH_TAG).or_else(own).map_or("", String::as_str);
        *by_launch.entry(launch).or_default() += 1;
    }
    let alive = |instance: &&Instance| {
        matches!(instance.state, InstanceState::Pending | InstanceState::Running)
    };
    let unclaimed = |instance: &&Instance| {
        !claimed.iter().any(|provider_id| provider_id.ends_with(&instance.instance_id))
    };
    Books {
        launches: instances.len(),
        duplicates: by_launch.values().map(|count| count - 1).sum(),
        leaks: instances.iter().filter(alive).filter(unclaimed).count(),
    }
}
