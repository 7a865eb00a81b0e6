//! Instance status: checks and scheduled events.
//!
//! Invariant: only running instances are shown unless all are asked for.

use jiff::Timestamp;

use super::super::clock::ec2_time;
use super::super::config::Tags;
use super::super::iam::Context;
use super::super::wire::{Body, Element, Result, group, set, text};
use super::super::world::{Call, InstanceRecord, World};
use super::filter::{Filters, page, paged, retain};
use super::{instance_xml, instances};
use crate::instance::InstanceState;

/// `DescribeInstanceStatus`.
pub fn describe(world: &mut World, call: &Call<'_>) -> Result<Body> {
    world.allow(call, "*", Context::default())?;
    let params = &call.request.params;
    let ids = params.texts("InstanceId");
    instances::visible(world, &ids, call.now)?;
    let all = params.flag("IncludeAllInstances");
    let filters = Filters::of(params);
    let listed = world.instances.values().filter(|record| {
        record.visible_at <= call.now && (all || record.seen.state == InstanceState::Running)
    });
    let kept = retain(listed.collect(), |record: &&InstanceRecord| {
        let named = ids.is_empty() || ids.contains(&record.seen.instance_id);
        Ok(named && filters.keep(&Tags::new(), |name| attribute(record, name))?)
    })?;
    let (kept, next) = page(params, kept, 1000)?;
    Ok(Body::Xml(paged("instanceStatusSet", kept.into_iter().map(status_xml), next)))
}

fn attribute(record: &InstanceRecord, name: &str) -> Option<Vec<String>> {
    let health = &record.health;
    let value = match name {
        "instance-state-name" => record.state().1.to_owned(),
        "availability-zone" => record.seen.zone.clone(),
        "instance-status.status" => word(record, health.instance_impaired_since).to_owned(),
        "system-status.status" => word(record, health.system_impaired_since).to_owned(),
        "instance-status.reachability" => passed(record, health.instance_impaired_since).to_owned(),
        "system-status.reachability" => passed(record, health.system_impaired_since).to_owned(),
        "event.code" => return Some(health.events.keys().cloned().collect()),
        _ => return None,
    };
    Some(vec![value])
}

fn word(record: &InstanceRecord, impaired_since: Option<Timestamp>) -> &'static str {
    match (record.seen.state, impaired_since) {
        (InstanceState::Running, Some(_)) => "impaired",
        (InstanceState::Running, None) => "ok",
        (InstanceState::Pending, _) => "initializing",
        (InstanceState::ShuttingDown | InstanceState::Terminated, _) => "not-applicable",
    }
}

fn passed(record: &InstanceRecord, impaired_since: Option<Timestamp>) -> &'static str {
    match word(record, impaired_since) {
        "impaired" => "failed",
        "ok" => "passed",
        other => other,
    }
}

fn status_xml(record: &InstanceRecord) -> Vec<Element> {
    let health = &record.health;
    let events = health.events.iter().zip(1..).map(|((code, (description, start)), number)| {
        vec![
            text("instanceEventId", format!("instance-event-{number:017x}")),
            text("code", code),
            text("description", description),
            text("notBefore", ec2_time(*start)),
        ]
    });
    vec![
        text("instanceId", &record.seen.instance_id),
        text("availabilityZone", &record.seen.zone),
        set("eventsSet", events),
        instance_xml::state("instanceState", record),
        check("systemStatus", record, health.system_impaired_since),
        check("instanceStatus", record, health.instance_impaired_since),
    ]
}

fn check(name: &'static str, record: &InstanceRecord, since: Option<Timestamp>) -> Element {
    let mut detail = vec![text("name", "reachability"), text("status", passed(record, since))];
    detail.extend(since.map(|since| text("impairedSince", ec2_time(since))));
    group(name, vec![text("status", word(record, since)), set("details", [detail])])
}
