//! Capacity reservations and placement groups.
//!
//! Invariant: what is available in a reservation is its total less the instances that run in it.

use super::super::config::{PlacementGroupConfig, ReservationConfig, Tags};
use super::super::iam::Context;
use super::super::wire::{AwsError, Body, Element, Result, maybe, set, text};
use super::super::world::{Call, World};
use super::filter::{Filters, page, paged, retain, tag_set};

impl World {
    /// Instances a reservation still has room for.
    pub fn reservation_room(&self, reservation: &ReservationConfig) -> u32 {
        let inside = self.instances.values().filter(|record| {
            record.holds_capacity()
                && record.capacity_reservation.as_deref() == Some(&*reservation.id)
        });
        reservation.total.saturating_sub(u32::try_from(inside.count()).unwrap_or(u32::MAX))
    }
}

/// `DescribeCapacityReservations`.
pub fn describe_reservations(world: &mut World, call: &Call<'_>) -> Result<Body> {
    world.allow(call, "*", Context::default())?;
    let params = &call.request.params;
    let ids = params.texts("CapacityReservationId");
    for id in &ids {
        if !world.config.reservations.iter().any(|found| found.id == *id) {
            let message = format!("The capacity reservation '{id}' does not exist");
            return Err(AwsError::client("InvalidCapacityReservationId.NotFound", message));
        }
    }
    let filters = Filters::of(params);
    let kept = retain(world.config.reservations.iter().collect(), |found: &&ReservationConfig| {
        let named = ids.is_empty() || ids.contains(&found.id);
        Ok(named && filters.keep(&found.tags, |name| attribute(world, found, name))?)
    })?;
    let (kept, next) = page(params, kept, 1000)?;
    let items = kept.into_iter().map(|found| reservation_xml(world, found));
    Ok(Body::Xml(paged("capacityReservationSet", items, next)))
}

fn attribute(world: &World, found: &ReservationConfig, name: &str) -> Option<Vec<String>> {
    let value = match name {
        "instance-type" => found.instance_type.as_str(),
        "availability-zone" => found.zone.as_str(),
        "owner-id" => world.config.account_id.as_str(),
        "state" => "active",
        "instance-match-criteria" => "targeted",
        _ => return None,
    };
    Some(vec![value.to_owned()])
}

fn reservation_xml(world: &World, found: &ReservationConfig) -> Vec<Element> {
    vec![
        text("capacityReservationId", &found.id),
        text("capacityReservationArn", world.ec2_arn("capacity-reservation", &found.id)),
        text("ownerId", &world.config.account_id),
        text("instanceType", &found.instance_type),
        text("instancePlatform", "Linux/UNIX"),
        text("availabilityZone", &found.zone),
        text("availabilityZoneId", world.zone_id(&found.zone)),
        text("tenancy", "default"),
        text("totalInstanceCount", found.total),
        text("availableInstanceCount", world.reservation_room(found)),
        text("state", "active"),
        text("endDateType", "unlimited"),
        text("instanceMatchCriteria", "targeted"),
        text("reservationType", "default"),
        tag_set(&found.tags),
    ]
}

/// `DescribePlacementGroups`.
pub fn describe_placement_groups(world: &mut World, call: &Call<'_>) -> Result<Body> {
    world.allow(call, "*", Context::default())?;
    let params = &call.request.params;
    let (names, ids) = (params.texts("GroupName"), params.texts("GroupId"));
    let known = |wanted: &String| {
        let groups = &world.config.placement_groups;
        groups.iter().any(|group| group.name == *wanted || group.id == *wanted)
    };
    if let Some(unknown) = names.iter().chain(&ids).find(|wanted| !known(wanted)) {
        let message = format!("The Placement Group '{unknown}' is unknown.");
        return Err(AwsError::client("InvalidPlacementGroup.Unknown", message));
    }
    let filters = Filters::of(params);
    let groups = world.config.placement_groups.iter().collect();
    let kept = retain(groups, |group: &&PlacementGroupConfig| {
        let named = (names.is_empty() || names.contains(&group.name))
            && (ids.is_empty() || ids.contains(&group.id));
        Ok(named && filters.keep(&Tags::new(), |name| group_attribute(group, name))?)
    })?;
    let items = kept.into_iter().map(|group| group_xml(world, group));
    Ok(Body::Xml(vec![set("placementGroupSet", items)]))
}

fn group_attribute(group: &PlacementGroupConfig, name: &str) -> Option<Vec<String>> {
    let value = match name {
        "group-name" => group.name.as_str(),
        "strategy" => group.strategy.as_str(),
        "state" => "available",
        _ => return None,
    };
    Some(vec![value.to_owned()])
}

fn group_xml(world: &World, group: &PlacementGroupConfig) -> Vec<Element> {
    let mut fields = vec![
        text("groupName", &group.name),
        text("groupId", &group.id),
        text("groupArn", world.ec2_arn("placement-group", &group.name)),
        text("strategy", &group.strategy),
        text("state", "available"),
    ];
    fields.extend(maybe("partitionCount", group.partitions));
    fields
}
