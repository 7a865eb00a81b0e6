//! An instance as describe calls and RunInstances show it.
//!
//! Invariant: pure; every field comes from the record or the region's settings.

use jiff::Timestamp;

use super::super::clock::ec2_time;
use super::super::wire::{Element, group, maybe, set, text};
use super::super::world::{InstanceRecord, World};
use super::filter::tag_set;

/// The fields of one instance.
pub fn fields(world: &World, record: &InstanceRecord) -> Vec<Element> {
    let seen = &record.seen;
    let architecture = if seen.arch == "arm64" { "arm64" } else { "x86_64" };
    let mut fields = vec![
        text("instanceId", &seen.instance_id),
        text("imageId", &seen.image_id),
        state("instanceState", record),
        text("privateDnsName", &seen.private_dns_name),
        text("privateIpAddress", &seen.private_ip),
        text("instanceType", &seen.instance_type),
        text("launchTime", ec2_time(record.launched)),
        placement(record),
        text("vpcId", &world.config.vpc_id),
        text("subnetId", &record.subnet_id),
        text("architecture", architecture),
        text("rootDeviceType", "ebs"),
        text("rootDeviceName", "/dev/xvda"),
        text("virtualizationType", "hvm"),
        text("hypervisor", "xen"),
        text("ebsOptimized", true),
        text("enaSupport", true),
        text("sourceDestCheck", true),
        group("monitoring", vec![text("state", "disabled")]),
        groups(world, record),
        interface(world, record),
        volumes(record),
        group("metadataOptions", metadata(record)),
        tag_set(&seen.tags),
    ];
    fields.extend(profile(world, record));
    fields.extend(seen.spot.then(|| text("instanceLifecycle", "spot")));
    fields.extend(maybe("spotInstanceRequestId", record.spot_request_id.as_ref()));
    fields.extend(maybe("capacityReservationId", record.capacity_reservation.as_ref()));
    let preference = maybe("capacityReservationPreference", record.reservation_preference.as_ref());
    fields.push(group("capacityReservationSpecification", preference.into_iter().collect()));
    fields.extend(maybe("clientToken", record.client_token.as_ref()));
    fields.extend(reason(record));
    fields
}

/// A state element: code and name.
pub fn state(name: &'static str, record: &InstanceRecord) -> Element {
    let (code, state) = record.state();
    group(name, vec![text("code", code), text("name", state)])
}

fn placement(record: &InstanceRecord) -> Element {
    let mut fields = vec![
        text("availabilityZone", &record.seen.zone),
        text("availabilityZoneId", &record.seen.zone_id),
        text("tenancy", "default"),
    ];
    fields.push(text("groupName", record.placement_group.as_deref().unwrap_or_default()));
    group("placement", fields)
}

fn groups(world: &World, record: &InstanceRecord) -> Element {
    let name_of = |id: &str| {
        let found = world.config.security_groups.iter().find(|group| group.id == id);
        found.map_or(id, |group| &group.name).to_owned()
    };
    let ids = record.group_ids.iter();
    set("groupSet", ids.map(|id| vec![text("groupId", id), text("groupName", name_of(id))]))
}

fn interface(world: &World, record: &InstanceRecord) -> Element {
    let id = record.seen.instance_id.replacen("i-", "eni-", 1);
    let attachment = vec![
        text("attachmentId", id.replacen("eni-", "eni-attach-", 1)),
        text("deviceIndex", 0),
        text("networkCardIndex", 0),
        text("status", "attached"),
        text("deleteOnTermination", true),
    ];
    let fields = vec![
        text("networkInterfaceId", id),
        text("subnetId", &record.subnet_id),
        text("vpcId", &world.config.vpc_id),
        text("status", "in-use"),
        text("interfaceType", "interface"),
        text("privateIpAddress", &record.seen.private_ip),
        text("privateDnsName", &record.seen.private_dns_name),
        groups(world, record),
        group("attachment", attachment),
    ];
    set("networkInterfaceSet", [fields])
}

fn volumes(record: &InstanceRecord) -> Element {
    let volume = |device: &str, id: &str, at: Timestamp| {
        let ebs = vec![
            text("volumeId", id),
            text("status", "attached"),
            text("attachTime", ec2_time(at)),
            text("deleteOnTermination", true),
        ];
        vec![text("deviceName", device), group("ebs", ebs)]
    };
    let volumes = record.volumes.iter();
    set("blockDeviceMapping", volumes.map(|(device, id, _)| volume(device, id, record.launched)))
}

fn metadata(record: &InstanceRecord) -> Vec<Element> {
    vec![
        text("state", "applied"),
        text("httpTokens", &record.http_tokens),
        text("httpPutResponseHopLimit", 1),
        text("httpEndpoint", "enabled"),
    ]
}

fn profile(world: &World, record: &InstanceRecord) -> Option<Element> {
    let name = record.seen.instance_profile.as_ref()?;
    let arn = world.profile_arn(name);
    let id = super::super::world::unique_id("AIPA", name);
    Some(group("iamInstanceProfile", vec![text("arn", arn), text("id", id)]))
}

fn reason(record: &InstanceRecord) -> Option<Element> {
    let (code, message) = record.reason.as_ref()?;
    Some(group("stateReason", vec![text("code", code), text("message", message)]))
}
