//! Describing and terminating instances.
//!
//! Invariant: an instance is invisible until the read-after-write delay has passed, to describe and
//! terminate alike.

use indexmap::IndexMap;
use jiff::Timestamp;

use super::super::clock::ec2_time;
use super::super::iam::Context;
use super::super::wire::{AwsError, Body, Element, Result, group, set, text};
use super::super::world::{Call, InstanceRecord, World};
use super::filter::{Filters, page, paged, retain};
use super::instance_xml;

/// `DescribeInstances`.
pub fn describe(world: &mut World, call: &Call<'_>) -> Result<Body> {
    world.allow(call, "*", Context::default())?;
    let params = &call.request.params;
    let ids = params.texts("InstanceId");
    visible(world, &ids, call.now)?;
    let filters = Filters::of(params);
    let listed = world.instances.values().filter(|record| record.visible_at <= call.now);
    let kept = retain(listed.collect(), |record: &&InstanceRecord| {
        let named = ids.is_empty() || ids.contains(&record.seen.instance_id);
        Ok(named && filters.keep(&record.seen.tags, |name| attribute(world, record, name))?)
    })?;
    let (kept, next) = page(params, kept, 1000)?;
    let mut reservations: IndexMap<&str, Vec<&InstanceRecord>> = IndexMap::new();
    for record in kept {
        reservations.entry(&record.reservation_id).or_default().push(record);
    }
    let items = reservations.iter().map(|(id, records)| reservation(world, id, records));
    Ok(Body::Xml(paged("reservationSet", items, next)))
}

/// A launch with its instances.
pub fn reservation(world: &World, id: &str, records: &[&InstanceRecord]) -> Vec<Element> {
    let instances = records.iter().map(|record| instance_xml::fields(world, record));
    vec![
        text("reservationId", id),
        text("ownerId", &world.config.account_id),
        set("groupSet", []),
        set("instancesSet", instances),
    ]
}

/// `TerminateInstances`.
pub fn terminate(world: &mut World, call: &Call<'_>) -> Result<Body> {
    let params = &call.request.params;
    let ids = params.texts("InstanceId");
    visible(world, &ids, call.now)?;
    for record in ids.iter().filter_map(|id| world.instances.get(id)) {
        let arn = world.ec2_arn("instance", &record.seen.instance_id);
        world.allow(call, &arn, instance_context(world, record))?;
    }
    if params.flag("DryRun") {
        return Err(AwsError::dry_run());
    }
    let mut changes = Vec::new();
    for id in &ids {
        let Some(before) = world.instances.get(id) else { continue };
        let previous = instance_xml::state("previousState", before);
        let reason = "Client.UserInitiatedShutdown: User initiated shutdown";
        world.terminate(id, ("Client.UserInitiatedShutdown", reason), call.now);
        let Some(after) = world.instances.get(id) else { continue };
        let current = instance_xml::state("currentState", after);
        changes.push(vec![text("instanceId", id), current, previous]);
    }
    Ok(Body::Xml(vec![set("instancesSet", changes)]))
}

/// What conditions can know of an instance.
pub fn instance_context(world: &World, record: &InstanceRecord) -> Context {
    let context = Context::default()
        .with_resource_tags(&record.seen.tags)
        .with("ec2:InstanceType", &record.seen.instance_type)
        .with("ec2:AvailabilityZone", &record.seen.zone);
    match &record.seen.instance_profile {
        Some(name) => context.with("ec2:InstanceProfile", world.profile_arn(name)),
        None => context,
    }
}

/// Fails for ids that do not exist or cannot be seen yet.
pub fn visible(world: &World, ids: &[String], now: Timestamp) -> Result<()> {
    let seen = |id: &str| world.instances.get(id).is_some_and(|record| record.visible_at <= now);
    if let Some(bad) = ids.iter().find(|id| !id.starts_with("i-")) {
        let message = format!("Invalid id: \"{bad}\"");
        return Err(AwsError::client("InvalidInstanceID.Malformed", message));
    }
    let missing: Vec<&str> = ids.iter().map(String::as_str).filter(|id| !seen(id)).collect();
    let message = match missing.as_slice() {
        [] => return Ok(()),
        [one] => format!("The instance ID '{one}' does not exist"),
        many => format!("The instance IDs '{}' do not exist", many.join(", ")),
    };
    Err(AwsError::client("InvalidInstanceID.NotFound", message))
}

/// Values of a DescribeInstances filter.
pub fn attribute(world: &World, record: &InstanceRecord, name: &str) -> Option<Vec<String>> {
    let seen = &record.seen;
    let value = match name {
        "instance-id" => seen.instance_id.clone(),
        "instance-state-name" => record.state().1.to_owned(),
        "instance-state-code" => record.state().0.to_string(),
        "instance-type" => seen.instance_type.clone(),
        "image-id" => seen.image_id.clone(),
        "availability-zone" => seen.zone.clone(),
        "availability-zone-id" => seen.zone_id.clone(),
        "subnet-id" => record.subnet_id.clone(),
        "vpc-id" => world.config.vpc_id.clone(),
        "owner-id" => world.config.account_id.clone(),
        "private-dns-name" => seen.private_dns_name.clone(),
        "private-ip-address" => seen.private_ip.clone(),
        "reservation-id" => record.reservation_id.clone(),
        "launch-time" => ec2_time(record.launched),
        "instance-lifecycle" => return Some(spot_only(record, "spot".to_owned())),
        "client-token" => return Some(record.client_token.clone().into_iter().collect()),
        "instance.group-id" | "network-interface.group-id" => {
            return Some(record.group_ids.clone());
        }
        "iam-instance-profile.arn" => {
            let arn = seen.instance_profile.as_ref().map(|name| world.profile_arn(name));
            return Some(arn.into_iter().collect());
        }
        "spot-instance-request-id" => {
            return Some(record.spot_request_id.clone().into_iter().collect());
        }
        _ => return None,
    };
    Some(vec![value])
}

fn spot_only(record: &InstanceRecord, value: String) -> Vec<String> {
    if record.seen.spot { vec![value] } else { Vec::new() }
}

/// `<return>true</return>`, the reply of calls without further content.
pub fn done() -> Body {
    Body::Xml(vec![text("return", true)])
}

/// An element around one launch template.
pub fn wrapped(name: &'static str, fields: Vec<Element>) -> Body {
    Body::Xml(vec![group(name, fields)])
}
