//! Instance types and where they are offered.
//!
//! Invariant: shows the catalogue of the region, unfiltered by capacity: EC2 does not tell ahead.

use super::super::catalogue::TypeFacts;
use super::super::config::Tags;
use super::super::iam::Context;
use super::super::wire::{AwsError, Body, Result, text};
use super::super::world::{Call, World};
use super::filter::{Filters, page, paged, retain};
use super::type_xml;

/// `DescribeInstanceTypes`.
pub fn describe(world: &mut World, call: &Call<'_>) -> Result<Body> {
    world.allow(call, "*", Context::default())?;
    let params = &call.request.params;
    if params.flag("DryRun") {
        return Err(AwsError::dry_run());
    }
    let names = params.texts("InstanceType");
    let unknown: Vec<&str> =
        names.iter().map(String::as_str).filter(|name| !world.types.contains_key(*name)).collect();
    if !unknown.is_empty() {
        let message =
            format!("The following supplied instance types do not exist: [{}]", unknown.join(", "));
        return Err(AwsError::client("InvalidInstanceType", message));
    }
    let filters = Filters::of(params);
    let kept = retain(world.types.values().collect(), |facts: &&TypeFacts| {
        let named = names.is_empty() || names.iter().any(|name| name == facts.name());
        Ok(named && filters.keep(&Tags::new(), |name| attribute(facts, name))?)
    })?;
    let (kept, next) = page(params, kept, 100)?;
    Ok(Body::Xml(paged("instanceTypeSet", kept.into_iter().map(type_xml::fields), next)))
}

fn attribute(facts: &TypeFacts, name: &str) -> Option<Vec<String>> {
    let hardware = &facts.hardware;
    let value = match name {
        "instance-type" => facts.name().to_owned(),
        "processor-info.supported-architecture" => facts.architecture().to_owned(),
        "supported-virtualization-type" => "hvm".to_owned(),
        "current-generation" => hardware.current_generation.to_string(),
        "bare-metal" => hardware.bare_metal.to_string(),
        "hypervisor" => hardware.hypervisor.as_str().to_owned(),
        "burstable-performance-supported" => hardware.burstable.to_string(),
        "instance-storage-supported" => hardware.local_storage.is_some().to_string(),
        "vcpu-info.default-vcpus" => hardware.vcpus.to_string(),
        "memory-info.size-in-mib" => hardware.memory_mib.to_string(),
        "supported-usage-class" => {
            return Some(type_xml::usage_classes(facts).map(str::to_owned).collect());
        }
        _ => return None,
    };
    Some(vec![value])
}

/// `DescribeInstanceTypeOfferings`.
pub fn describe_offerings(world: &mut World, call: &Call<'_>) -> Result<Body> {
    world.allow(call, "*", Context::default())?;
    let params = &call.request.params;
    let location_type = params.text("LocationType").unwrap_or("region").to_owned();
    let filters = Filters::of(params);
    let offerings = world.types.values().flat_map(|facts| {
        let here = locations(world, facts, &location_type);
        here.into_iter().map(|location| (facts.name().to_owned(), location))
    });
    let kept = retain(offerings.collect(), |(name, location): &(String, String)| {
        filters.keep(&Tags::new(), |filter| match filter {
            "location" => Some(vec![location.clone()]),
            "instance-type" => Some(vec![name.clone()]),
            _ => None,
        })
    })?;
    let (kept, next) = page(params, kept, 1000)?;
    let items = kept.into_iter().map(|(name, location)| {
        vec![
            text("instanceType", name),
            text("locationType", &location_type),
            text("location", location),
        ]
    });
    Ok(Body::Xml(paged("instanceTypeOfferingSet", items, next)))
}

fn locations(world: &World, facts: &TypeFacts, location_type: &str) -> Vec<String> {
    match location_type {
        "availability-zone" => facts.zones.keys().cloned().collect(),
        "availability-zone-id" => facts.zones.keys().map(|zone| world.zone_id(zone)).collect(),
        _ => vec![world.config.name.clone()],
    }
}
