//! What a pool can buy: its node class as the region resolves it.
//!
//! Invariant: a pool whose supply is not known is not ready, and says what it waits for.

use crate::region::RegionState;
use crate::wire::pool::Supply;

/// What a node class adds to the pools and claims that name it.
#[must_use]
pub fn of_class(cluster_id: &str, class: &str, region: &RegionState) -> Supply {
    let Some(resolution) = region.node_class(cluster_id, class) else {
        let waiting = format!(
            "node class {class} has not been resolved in the region yet; check that it exists"
        );
        return Supply { not_ready: Some(waiting), ..Supply::default() };
    };
    let status = resolution.status.as_ref();
    let subnets = status.map(|status| status.subnets.as_slice()).unwrap_or_default();
    let not_ready = (!resolution.ready).then(|| {
        let conditions = status.map(|status| status.conditions.as_slice()).unwrap_or_default();
        let failed = conditions.iter().find(|condition| condition.status == Some(false));
        let why = failed.map_or("it is still being resolved", |condition| &condition.message);
        format!("node class {class}: {why}")
    });
    Supply {
        catalogue: resolution.catalogue_id.clone(),
        zones: Some(subnets.iter().map(|subnet| subnet.zone.clone()).collect()),
        not_ready,
    }
}
