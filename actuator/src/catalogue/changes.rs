//! What changed between two catalogues of the same id.
//!
//! Invariant: equal ids mean equal types and offerings, so only prices and what is left in
//! reservations can differ.

use longshore_proto::types::v1::{Catalogue, Offering, OfferingUpdate};

/// Offerings whose price or room changed. Availability is told by whoever closes and reopens.
#[must_use]
pub fn offering_changes(before: &Catalogue, after: &Catalogue) -> Vec<OfferingUpdate> {
    let types = before.types.iter().zip(&after.types);
    let mut updates = Vec::new();
    for (old, new) in types {
        for (was, is) in old.offerings.iter().zip(&new.offerings) {
            let said = |o: &Offering| (o.price_micro_usd_per_hour, o.reservation_count);
            if said(was) != said(is) {
                updates.push(OfferingUpdate {
                    instance_type: new.name.clone(),
                    zone: is.zone.clone(),
                    capacity_type: is.capacity_type,
                    price_micro_usd_per_hour: is.price_micro_usd_per_hour,
                    available: is.available,
                    reservation_id: is.reservation_id.clone(),
                    reservation_count: is.reservation_count,
                });
            }
        }
    }
    updates
}
