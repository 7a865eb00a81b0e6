//! Catalogues, offerings and candidates on the wire and in the planner.

use longshore_core::vocabulary::catalogue::capacity_group::CapacityGroup;
use longshore_core::vocabulary::catalogue::{
    CapacityType, Catalogue, InstanceType, Offering, PRICE_MAX, Reservation,
};
use longshore_proto::types::v1;

use super::{WireError, resources};
use crate::settings::INTERRUPTIONS_MAX;

/// Reads a catalogue or a part of one.
///
/// # Errors
/// When a type or an offering cannot be read.
pub fn catalogue(wire: &v1::Catalogue) -> Result<Catalogue, WireError> {
    let mut catalogue = Catalogue { id: wire.catalogue_id.as_str().into(), ..Catalogue::default() };
    for kind in &wire.types {
        let read = instance_type(kind).map_err(|error| error.of("instance type", &kind.name))?;
        catalogue.put(read);
    }
    Ok(catalogue)
}

/// Applies new prices and availability; what the catalogue does not have is skipped.
pub fn update(catalogue: &mut Catalogue, updates: &[v1::OfferingUpdate]) {
    for update in updates {
        let Some(kind) = capacity_type(update.capacity_type()) else { continue };
        for offering in catalogue.offerings_mut(&update.instance_type, &update.zone, kind) {
            apply(offering, update);
        }
    }
}

/// Applies an update to one of the offerings that it may be about.
fn apply(offering: &mut Offering, update: &v1::OfferingUpdate) {
    if !update.reservation_id.is_empty() {
        let own = offering.reservation.as_mut();
        let Some(own) = own.filter(|own| own.id.as_str() == update.reservation_id) else { return };
        if update.reservation_count >= 0 {
            own.remaining = update.reservation_count;
        }
    }
    offering.available = update.available;
    if (1..=PRICE_MAX).contains(&update.price_micro_usd_per_hour) {
        offering.price_micro_usd_per_hour = update.price_micro_usd_per_hour;
    }
}

fn instance_type(wire: &v1::InstanceType) -> Result<InstanceType, WireError> {
    if wire.name.is_empty() {
        return Err(WireError::field("name", "is empty"));
    }
    let amount = |amount: &Option<v1::Resources>, field: &str| {
        resources::from_wire(amount.as_ref()).map_err(|error| error.within(field))
    };
    let offerings: Result<_, _> = wire.offerings.iter().map(offering).collect();
    Ok(InstanceType {
        name: wire.name.as_str().into(),
        labels: wire.labels.clone(),
        capacity: amount(&wire.capacity, "capacity")?,
        overhead: amount(&wire.overhead, "overhead")?,
        offerings: offerings?,
    })
}

fn offering(wire: &v1::Offering) -> Result<Offering, WireError> {
    let capacity_type = capacity_type(wire.capacity_type()).ok_or_else(|| {
        WireError::field("offerings.capacity_type", "is missing; use reserved, spot or on-demand")
    })?;
    if wire.price_micro_usd_per_hour < 0 {
        return Err(WireError::field("offerings.price_micro_usd_per_hour", "is negative"));
    }
    if wire.price_micro_usd_per_hour > PRICE_MAX {
        let problem = format!("is over {PRICE_MAX}; give millionths of a dollar an hour");
        return Err(WireError::field("offerings.price_micro_usd_per_hour", &problem));
    }
    let rate = wire.interruptions_per_million_hours;
    if rate.is_some_and(|rate| !(0..=INTERRUPTIONS_MAX).contains(&rate)) {
        let problem = format!("is outside 0 to {INTERRUPTIONS_MAX}; leave it out if unknown");
        return Err(WireError::field("offerings.interruptions_per_million_hours", &problem));
    }
    if wire.reservation_count < 0 {
        return Err(WireError::field("offerings.reservation_count", "is negative"));
    }
    let reservation = (!wire.reservation_id.is_empty()).then(|| Reservation {
        id: wire.reservation_id.as_str().into(),
        remaining: wire.reservation_count,
    });
    Ok(Offering {
        zone: wire.zone.as_str().into(),
        zone_id: wire.zone_id.as_str().into(),
        capacity_type,
        price_micro_usd_per_hour: wire.price_micro_usd_per_hour,
        available: wire.available,
        reservation,
        group: CapacityGroup::default(),
        interruptions_per_million_hours: wire.interruptions_per_million_hours,
    })
}

/// Reads a capacity type; unspecified means unknown.
#[must_use]
pub const fn capacity_type(wire: v1::CapacityType) -> Option<CapacityType> {
    match wire {
        v1::CapacityType::Unspecified => None,
        v1::CapacityType::Reserved => Some(CapacityType::Reserved),
        v1::CapacityType::Spot => Some(CapacityType::Spot),
        v1::CapacityType::OnDemand => Some(CapacityType::OnDemand),
    }
}

/// Writes a capacity type.
#[must_use]
pub const fn capacity_type_to_wire(kind: CapacityType) -> v1::CapacityType {
    match kind {
        CapacityType::Reserved => v1::CapacityType::Reserved,
        CapacityType::Spot => v1::CapacityType::Spot,
        CapacityType::OnDemand => v1::CapacityType::OnDemand,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire() -> v1::Catalogue {
        let offering = v1::Offering {
            zone: "a".to_owned(),
            capacity_type: v1::CapacityType::Spot.into(),
            price_micro_usd_per_hour: 7,
            available: true,
            ..Default::default()
        };
        let kind = v1::InstanceType {
            name: "t3.small".to_owned(),
            offerings: vec![offering],
            ..Default::default()
        };
        v1::Catalogue { types: vec![kind], ..Default::default() }
    }

    #[test]
    fn updates_change_price_and_availability() {
        let mut read = catalogue(&wire()).unwrap();
        let update_of = |price| v1::OfferingUpdate {
            instance_type: "t3.small".to_owned(),
            zone: "a".to_owned(),
            capacity_type: v1::CapacityType::Spot.into(),
            price_micro_usd_per_hour: price,
            ..Default::default()
        };
        update(&mut read, &[update_of(0)]);
        let offering = read.offering("t3.small", "a", CapacityType::Spot).unwrap().clone();
        assert_eq!((offering.available, offering.price_micro_usd_per_hour), (false, 7));
        update(&mut read, &[update_of(i64::MAX)]);
        let offering = read.offering("t3.small", "a", CapacityType::Spot).unwrap();
        assert_eq!(offering.price_micro_usd_per_hour, 7);
        update(&mut read, &[update_of(9)]);
        let offering = read.offering("t3.small", "a", CapacityType::Spot).unwrap();
        assert_eq!(offering.price_micro_usd_per_hour, 9);
    }

    /// A catalogue whose one type has two reservations in one zone.
    fn reserved() -> v1::Catalogue {
        let mut wire = wire();
        let offering = |id: &str, reservation_count| v1::Offering {
            capacity_type: v1::CapacityType::Reserved.into(),
            reservation_id: id.to_owned(),
            reservation_count,
            ..wire.types[0].offerings[0].clone()
        };
        wire.types[0].offerings = vec![offering("cr-1", 1), offering("cr-2", 2)];
        wire
    }

    #[test]
    fn an_update_of_a_reservation_changes_that_one_and_one_of_none_changes_all() {
        let mut read = catalogue(&reserved()).unwrap();
        let update_of = |id: &str, reservation_count, available| v1::OfferingUpdate {
            instance_type: "t3.small".to_owned(),
            zone: "a".to_owned(),
            capacity_type: v1::CapacityType::Reserved.into(),
            reservation_id: id.to_owned(),
            reservation_count,
            available,
            ..Default::default()
        };
        for (one, expected) in [
            (update_of("cr-2", 7, true), [(1, true, 7), (7, true, 7)]),
            (update_of("cr-2", 0, false), [(1, true, 7), (0, false, 7)]),
            (update_of("", 9, true), [(1, true, 7), (0, true, 7)]),
            (update_of("", 0, false), [(1, false, 7), (0, false, 7)]),
            (update_of("cr-1", -1, true), [(1, true, 7), (0, false, 7)]),
            (update_of("cr-3", 5, true), [(1, true, 7), (0, false, 7)]),
        ] {
            update(&mut read, std::slice::from_ref(&one));
            let offerings = read.types["t3.small"].offerings.iter();
            let seen = offerings.map(|o| {
                let left = o.reservation.as_ref().unwrap().remaining;
                (left, o.available, o.price_micro_usd_per_hour)
            });
            assert_eq!(seen.collect::<Vec<_>>(), expected, "{one:?}");
        }
    }

    #[test]
    fn less_than_nothing_is_left_in_no_reservation() {
        let mut wrong = reserved();
        wrong.types[0].offerings[1].reservation_count = -1;
        let error = catalogue(&wrong).unwrap_err().to_string();
        assert!(error.contains("offerings.reservation_count: is negative"), "{error}");
    }

    #[test]
    fn a_malformed_type_is_named() {
        let mut wrong = wire();
        wrong.types[0].offerings[0].capacity_type = 0;
        let error = catalogue(&wrong).unwrap_err();
        assert!(error.to_string().starts_with("instance type t3.small: offerings"), "{error}");
    }

    #[test]
    fn prices_that_could_not_be_summed_up_are_refused() {
        let mut absurd = wire();
        absurd.types[0].offerings[0].price_micro_usd_per_hour = PRICE_MAX + 1;
        let error = catalogue(&absurd).unwrap_err().to_string();
        assert!(
            error.contains("offerings.price_micro_usd_per_hour: is over 100000000000; give"),
            "{error}"
        );
    }
}
