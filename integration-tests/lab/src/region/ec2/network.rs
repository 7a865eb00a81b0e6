//! Subnets, security groups, zones.
//!
//! Invariant: free address counts are the world's at this moment.

use super::super::catalogue::ZoneConfig;
use super::super::config::{SecurityGroupConfig, SubnetConfig};
use super::super::iam::Context;
use super::super::wire::{AwsError, Body, Element, Result, set, text};
use super::super::world::{Call, World};
use super::filter::{Filters, page, paged, retain, tag_set};

/// `DescribeSubnets`.
pub fn describe_subnets(world: &mut World, call: &Call<'_>) -> Result<Body> {
    world.allow(call, "*", Context::default())?;
    let params = &call.request.params;
    let ids = params.texts("SubnetId");
    for id in &ids {
        if world.subnet(id).is_none() {
            let message = format!("The subnet ID '{id}' does not exist");
            return Err(AwsError::client("InvalidSubnetID.NotFound", message));
        }
    }
    let filters = Filters::of(params);
    let subnets: Vec<&SubnetConfig> = world.config.subnets.iter().collect();
    let kept = retain(subnets, |subnet| {
        let named = ids.is_empty() || ids.contains(&subnet.id);
        Ok(named && filters.keep(&subnet.tags, |name| subnet_attribute(world, subnet, name))?)
    })?;
    let (kept, next) = page(params, kept, 1000)?;
    Ok(Body::Xml(paged("subnetSet", kept.into_iter().map(|s| subnet_xml(world, s)), next)))
}

fn subnet_attribute(world: &World, subnet: &SubnetConfig, name: &str) -> Option<Vec<String>> {
    Some(vec![match name {
        "subnet-id" => subnet.id.clone(),
        "vpc-id" => world.config.vpc_id.clone(),
        "availability-zone" | "availabilityZone" => subnet.zone.clone(),
        "availability-zone-id" | "availabilityZoneId" => world.zone_id(&subnet.zone),
        "state" => "available".to_owned(),
        "owner-id" => world.config.account_id.clone(),
        "cidr-block" | "cidrBlock" | "cidr" => subnet.cidr.clone(),
        _ => return None,
    }])
}

fn subnet_xml(world: &World, subnet: &SubnetConfig) -> Vec<Element> {
    vec![
        text("subnetId", &subnet.id),
        text("subnetArn", world.ec2_arn("subnet", &subnet.id)),
        text("state", "available"),
        text("ownerId", &world.config.account_id),
        text("vpcId", &world.config.vpc_id),
        text("cidrBlock", &subnet.cidr),
        set("ipv6CidrBlockAssociationSet", []),
        text("assignIpv6AddressOnCreation", false),
        text("availableIpAddressCount", world.addresses.free(&subnet.id)),
        text("availabilityZone", &subnet.zone),
        text("availabilityZoneId", world.zone_id(&subnet.zone)),
        text("defaultForAz", false),
        text("mapPublicIpOnLaunch", false),
        tag_set(&subnet.tags),
    ]
}

/// `DescribeSecurityGroups`.
pub fn describe_security_groups(world: &mut World, call: &Call<'_>) -> Result<Body> {
    world.allow(call, "*", Context::default())?;
    let params = &call.request.params;
    let ids = params.texts("GroupId");
    let names = params.texts("GroupName");
    for id in &ids {
        if !world.config.security_groups.iter().any(|group| group.id == *id) {
            let message = format!("The security group '{id}' does not exist");
            return Err(AwsError::client("InvalidGroup.NotFound", message));
        }
    }
    let filters = Filters::of(params);
    let groups: Vec<&SecurityGroupConfig> = world.config.security_groups.iter().collect();
    let kept = retain(groups, |group| {
        let named = (ids.is_empty() || ids.contains(&group.id))
            && (names.is_empty() || names.contains(&group.name));
        Ok(named && filters.keep(&group.tags, |name| group_attribute(world, group, name))?)
    })?;
    let (kept, next) = page(params, kept, 1000)?;
    let items = kept.into_iter().map(|group| group_xml(world, group));
    Ok(Body::Xml(paged("securityGroupInfo", items, next)))
}

fn group_attribute(world: &World, group: &SecurityGroupConfig, name: &str) -> Option<Vec<String>> {
    Some(vec![match name {
        "group-id" => group.id.clone(),
        "group-name" => group.name.clone(),
        "vpc-id" => world.config.vpc_id.clone(),
        "owner-id" => world.config.account_id.clone(),
        "description" => group.name.clone(),
        _ => return None,
    }])
}

fn group_xml(world: &World, group: &SecurityGroupConfig) -> Vec<Element> {
    vec![
        text("ownerId", &world.config.account_id),
        text("groupId", &group.id),
        text("securityGroupArn", world.ec2_arn("security-group", &group.id)),
        text("groupName", &group.name),
        text("groupDescription", &group.name),
        text("vpcId", &world.config.vpc_id),
        set("ipPermissions", []),
        set("ipPermissionsEgress", []),
        tag_set(&group.tags),
    ]
}

/// `DescribeAvailabilityZones`.
pub fn describe_zones(world: &mut World, call: &Call<'_>) -> Result<Body> {
    world.allow(call, "*", Context::default())?;
    let params = &call.request.params;
    let (names, ids) = (params.texts("ZoneName"), params.texts("ZoneId"));
    let filters = Filters::of(params);
    let region = world.config.name.clone();
    let kept = retain(world.config.zones.iter().collect(), |zone: &&ZoneConfig| {
        let named = (names.is_empty() || names.contains(&zone.name))
            && (ids.is_empty() || ids.contains(&zone.id));
        Ok(named
            && filters.keep(&Default::default(), |name| zone_attribute(&region, zone, name))?)
    })?;
    let items = kept.into_iter().map(|zone| zone_xml(&region, zone));
    Ok(Body::Xml(vec![set("availabilityZoneInfo", items)]))
}

fn zone_attribute(region: &str, zone: &ZoneConfig, name: &str) -> Option<Vec<String>> {
    let value = match name {
        "zone-name" => zone.name.as_str(),
        "zone-id" => zone.id.as_str(),
        "region-name" => region,
        "state" => "available",
        "opt-in-status" => "opt-in-not-required",
        "zone-type" => "availability-zone",
        _ => return None,
    };
    Some(vec![value.to_owned()])
}

fn zone_xml(region: &str, zone: &ZoneConfig) -> Vec<Element> {
    vec![
        text("zoneName", &zone.name),
        text("zoneId", &zone.id),
        text("zoneState", "available"),
        text("regionName", region),
        text("zoneType", "availability-zone"),
        text("optInStatus", "opt-in-not-required"),
        text("groupName", region),
        text("networkBorderGroup", region),
        set("messageSet", []),
    ]
}
