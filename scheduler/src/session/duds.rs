//! Offerings whose nodes do not come up: for a while, a pool buys others in their place.
//!
//! Invariant: nothing is avoided for good, so a pool that has no other offering, and a pod that
//! fits no other, tries again by itself; an offering of which a node has come into service since
//! the one that failed was asked for is not at fault.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use longshore_core::catalogue::{CapacityType, Catalogue};
use longshore_core::ids::{InstanceTypeName, PoolName, Zone};
use longshore_proto::types::v1;

use crate::wire::catalogue::capacity_type;
use crate::wire::time_ms;

/// How long an offering is avoided, in milliseconds: others are bought for its pods at once, and
/// what fits no other, or has to be replaced by it, does not wait for long.
const AVOIDED_MS: i64 = 2 * 60 * 1000;

/// A type, in a zone, bought in a way.
pub type Sold = (InstanceTypeName, Zone, CapacityType);

/// What pools do not buy for a while.
pub type Avoided = BTreeMap<PoolName, BTreeSet<Sold>>;

/// What has become of the offerings of a pool.
#[derive(Debug, Default)]
pub struct Duds {
    /// When a node last came into service, in milliseconds since 1970.
    served: BTreeMap<Sold, i64>,
    /// When one last failed, the same.
    failed: BTreeMap<Sold, i64>,
}

impl Duds {
    /// The node of a claim has come into service.
    pub fn serves(&mut self, claim: &v1::NodeClaim, now_ms: i64) {
        if let Some(sold) = sold(claim) {
            self.failed.remove(&sold);
            self.served.insert(sold, now_ms);
        }
    }

    /// The node of a claim has not come up in time.
    pub fn fails(&mut self, claim: &v1::NodeClaim, now_ms: i64) {
        let Some(sold) = sold(claim) else { return };
        let asked_ms = claim.create_time.as_ref().map_or(now_ms, time_ms);
        if self.served.get(&sold).is_some_and(|served_ms| *served_ms >= asked_ms) {
            return;
        }
        let (instance_type, zone, capacity_type) = &sold;
        tracing::info!(
            pool = claim.pool, %instance_type, %zone, ?capacity_type,
            "its node did not come up: others are bought for two minutes"
        );
        self.failed.insert(sold, now_ms);
    }

    /// Forgets what is to be tried again. When there is more of that next, in milliseconds since
    /// 1970.
    pub fn forget(&mut self, now_ms: i64) -> Option<i64> {
        self.failed.retain(|_, failed_ms| *failed_ms + AVOIDED_MS > now_ms);
        self.failed.values().map(|failed_ms| failed_ms + AVOIDED_MS).min()
    }

    /// What is not bought.
    #[must_use]
    pub fn avoided(&self) -> BTreeSet<Sold> {
        self.failed.keys().cloned().collect()
    }
}

/// What a claim's node was bought as, once that is known.
fn sold(claim: &v1::NodeClaim) -> Option<Sold> {
    let known = !claim.instance_type.is_empty() && !claim.zone.is_empty();
    let kind = capacity_type(claim.capacity_type()).filter(|_| known)?;
    Some((claim.instance_type.as_str().into(), claim.zone.as_str().into(), kind))
}

/// A catalogue in which these offerings are not to be had.
#[must_use]
pub fn without(catalogue: &Catalogue, avoided: &BTreeSet<Sold>) -> Arc<Catalogue> {
    let mut left = catalogue.clone();
    for (name, zone, kind) in avoided {
        let offerings = left.types.get_mut(name).map(|instance| &mut instance.offerings);
        for offering in offerings.into_iter().flatten() {
            offering.available &= offering.zone != *zone || offering.capacity_type != *kind;
        }
    }
    Arc::new(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(zone: &str, created_s: i64) -> v1::NodeClaim {
        v1::NodeClaim {
            pool: "p".to_owned(),
            instance_type: "m".to_owned(),
            zone: zone.to_owned(),
            capacity_type: v1::CapacityType::Spot.into(),
            create_time: Some(prost_types::Timestamp { seconds: created_s, nanos: 0 }),
            ..Default::default()
        }
    }

    fn zones(duds: &Duds) -> Vec<String> {
        duds.avoided().iter().map(|(_, zone, _)| zone.to_string()).collect()
    }

    #[test]
    fn an_offering_is_avoided_for_a_while_after_its_node_has_failed() {
        let mut duds = Duds::default();
        duds.fails(&v1::NodeClaim::default(), 900_000);
        assert_eq!(zones(&duds), [""; 0], "nothing was bought for it");
        duds.fails(&claim("a", 0), 900_000);
        duds.fails(&claim("b", 0), 930_000);
        assert_eq!(zones(&duds), ["a", "b"]);
        assert_eq!(duds.forget(900_000 + AVOIDED_MS - 1), Some(900_000 + AVOIDED_MS));
        assert_eq!(duds.forget(900_000 + AVOIDED_MS), Some(930_000 + AVOIDED_MS));
        assert_eq!(zones(&duds), ["b"]);
        duds.serves(&claim("b", 0), 940_000);
        assert_eq!((zones(&duds), duds.forget(940_000)), (vec![], None));
    }

    #[test]
    fn an_offering_that_has_served_meanwhile_is_not_at_fault() {
        let mut duds = Duds::default();
        duds.serves(&claim("a", 0), 60_000);
        duds.fails(&claim("a", 60), 960_000);
        assert_eq!(zones(&duds), [""; 0]);
        duds.fails(&claim("a", 61), 961_000);
        assert_eq!(zones(&duds), ["a"], "it was asked for later than the other served");
    }
}
