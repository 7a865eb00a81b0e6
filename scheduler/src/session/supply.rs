//! What a pool can buy: its node class as the region resolves it.
//!
//! Invariant: a pool whose supply is not known is not ready, and says what it waits for.

use longshore_proto::types::v1::NodeClass;
use longshore_runtime::planted;

use crate::region::RegionState;
use crate::wire::pool::Supply;

/// What a node class adds to the pools and claims that name it; `known` is the object in the
/// cluster.
#[must_use]
pub fn of_class(
    cluster_id: &str,
    class: &str,
    known: Option<&NodeClass>,
    region: &RegionState,
) -> Supply {
    let leaving = known.is_some_and(|known| known.deleting) && !planted::is("S29b");
    let leaving = leaving.then(|| {
        format!(
            "node class {class} is being deleted, which its nodes keep from ending; let the NodePool's \
             nodeClassRef name another"
        )
    });
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
        not_ready: leaving.or(not_ready),
    }
}

/// True when the region has said whether a class can be used.
#[must_use]
pub fn is_told(cluster_id: &str, class: &str, region: &RegionState) -> bool {
    region.node_class(cluster_id, class).is_some_and(|resolution| {
        let conditions = resolution.status.iter().flat_map(|status| &status.conditions);
        resolution.ready || conditions.into_iter().any(|it| it.status == Some(false))
    })
}

#[cfg(test)]
mod tests {
    use longshore_proto::capacity::v1::region_change::Change;
    use longshore_proto::capacity::v1::{NodeClassResolution, RegionChange};
    use longshore_proto::cluster::v1::SetNodeClassStatus;

    use super::*;

    #[test]
    fn a_class_that_is_being_deleted_supplies_nothing_however_the_region_resolves_it() {
        let mut region = RegionState::default();
        let status = SetNodeClassStatus { node_class: "k/n".to_owned(), ..Default::default() };
        let resolution = NodeClassResolution {
            cluster_id: "c".to_owned(),
            status: Some(status),
            ready: true,
            ..Default::default()
        };
        region.apply(RegionChange { change: Some(Change::NodeClass(resolution)) });
        let not_ready = |known: Option<&NodeClass>| of_class("c", "k/n", known, &region).not_ready;
        let mut class = NodeClass::default();
        // A watcher of the version before does not say.
        assert_eq!((not_ready(None), not_ready(Some(&class))), (None, None));
        class.deleting = true;
        assert!(not_ready(Some(&class)).is_some_and(|why| why.contains("nodeClassRef")));
    }
}
