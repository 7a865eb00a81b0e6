//! Instance types and where they are offered.
//!
//! Invariant: shows the catalogue of the region, unfiltered by capacity: EC2 does not tell ahead.

use super::super::catalogue::TypeFacts;
use super::super::config::Tags;
use super::super::iam::Context;
use super::super::wire::{AwsError, Body, Element, Result, group, set, text};
use super::super::world::{Call, World};
use super::filter::{Filters, page, paged, retain};

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
        let named = names.is_empty() || names.contains(&facts.name);
        Ok(named && filters.keep(&Tags::new(), |name| attribute(facts, name))?)
    })?;
    let (kept, next) = page(params, kept, 100)?;
    Ok(Body::Xml(paged("instanceTypeSet", kept.into_iter().map(type_xml), next)))
}

fn attribute(facts: &TypeFacts, name: &str) -> Option<Vec<String>> {
    let value = match name {
        "instance-type" => facts.name.clone(),
        "processor-info.supported-architecture" => facts.architecture.clone(),
        "supported-virtualization-type" => "hvm".to_owned(),
        "current-generation" => facts.current_generation.to_string(),
        "bare-metal" => facts.bare_metal.to_string(),
        "hypervisor" => facts.hypervisor.clone(),
        "burstable-performance-supported" => facts.burstable.to_string(),
        "instance-storage-supported" => (facts.local_storage_gb > 0).to_string(),
        "vcpu-info.default-vcpus" => facts.vcpus.to_string(),
        "memory-info.size-in-mib" => facts.memory_mib.to_string(),
        "supported-usage-class" => return Some(usage_classes(facts)),
        _ => return None,
    };
    Some(vec![value])
}

fn usage_classes(facts: &TypeFacts) -> Vec<String> {
    let spot = facts.supports_spot().then_some("spot");
    ["on-demand"].into_iter().chain(spot).map(str::to_owned).collect()
}

fn type_xml(facts: &TypeFacts) -> Vec<Element> {
    let mut fields = vec![
        text("instanceType", &facts.name),
        text("currentGeneration", facts.current_generation),
        text("freeTierEligible", false),
        Element::texts("supportedUsageClasses", usage_classes(facts)),
        Element::texts("supportedRootDeviceTypes", ["ebs"]),
        Element::texts("supportedVirtualizationTypes", ["hvm"]),
        text("bareMetal", facts.bare_metal),
        processor_xml(facts),
        vcpu_xml(facts),
        group("memoryInfo", vec![text("sizeInMiB", facts.memory_mib)]),
        text("instanceStorageSupported", facts.local_storage_gb > 0),
        ebs_xml(facts),
        network_xml(facts),
        group(
            "placementGroupInfo",
            vec![Element::texts("supportedStrategies", ["cluster", "partition", "spread"])],
        ),
        text("burstablePerformanceSupported", facts.burstable),
        text("hibernationSupported", false),
        text("dedicatedHostsSupported", !facts.burstable),
        text("autoRecoverySupported", true),
    ];
    if !facts.bare_metal {
        fields.push(text("hypervisor", &facts.hypervisor));
    }
    fields.extend(storage_xml(facts));
    fields.extend(gpu_xml(facts));
    fields.extend(neuron_xml(facts));
    fields
}

fn processor_xml(facts: &TypeFacts) -> Element {
    group(
        "processorInfo",
        vec![
            Element::texts("supportedArchitectures", [&facts.architecture]),
            text("sustainedClockSpeedInGhz", gigahertz(facts.clock_mhz)),
            text("manufacturer", &facts.manufacturer),
        ],
    )
}

fn gigahertz(mhz: u32) -> String {
    format!("{}.{:03}", mhz / 1000, mhz % 1000)
}

fn vcpu_xml(facts: &TypeFacts) -> Element {
    let threads = if facts.architecture == "arm64" || facts.vcpus == 1 { 1 } else { 2 };
    group(
        "vCpuInfo",
        vec![
            text("defaultVCpus", facts.vcpus),
            text("defaultCores", facts.vcpus / threads),
            text("defaultThreadsPerCore", threads),
        ],
    )
}

fn ebs_xml(facts: &TypeFacts) -> Element {
    let mut fields = vec![
        text("ebsOptimizedSupport", "default"),
        text("encryptionSupport", "supported"),
        text("nvmeSupport", if facts.hypervisor == "xen" { "unsupported" } else { "required" }),
    ];
    if let Some(mbps) = facts.ebs_mbps {
        let optimized =
            vec![text("baselineBandwidthInMbps", mbps), text("maximumBandwidthInMbps", mbps)];
        fields.push(group("ebsOptimizedInfo", optimized));
    }
    group("ebsInfo", fields)
}

fn network_xml(facts: &TypeFacts) -> Element {
    let card = vec![
        text("networkCardIndex", 0),
        text("networkPerformance", performance(facts)),
        text("maximumNetworkInterfaces", facts.interfaces),
    ];
    let mut fields = vec![
        text("networkPerformance", performance(facts)),
        text("maximumNetworkInterfaces", facts.interfaces),
        text("maximumNetworkCards", 1),
        text("defaultNetworkCardIndex", 0),
        set("networkCards", [card]),
        text("ipv4AddressesPerInterface", facts.ipv4_per_interface),
        text("ipv6AddressesPerInterface", facts.ipv4_per_interface),
        text("ipv6Supported", true),
        text("enaSupport", "required"),
        text("efaSupported", facts.efa_interfaces > 0),
        text("encryptionInTransitSupported", facts.encryption_in_transit),
    ];
    if facts.efa_interfaces > 0 {
        fields.push(group("efaInfo", vec![text("maximumEfaInterfaces", facts.efa_interfaces)]));
    }
    group("networkInfo", fields)
}

fn performance(facts: &TypeFacts) -> String {
    match facts.network_mbps {
        Some(mbps) => format!("{}.{} Gigabit", mbps / 1000, mbps % 1000 / 100),
        None => "Moderate".to_owned(),
    }
}

fn storage_xml(facts: &TypeFacts) -> Option<Element> {
    let size = facts.local_storage_gb;
    let disk = vec![text("sizeInGB", size), text("count", 1), text("type", "ssd")];
    let fields = vec![
        text("totalSizeInGB", size),
        set("disks", [disk]),
        text("nvmeSupport", "required"),
        text("encryptionSupport", "required"),
    ];
    (size > 0).then(|| group("instanceStorageInfo", fields))
}

fn gpu_xml(facts: &TypeFacts) -> Option<Element> {
    let gpus = facts.gpus.iter().map(|gpu| {
        vec![
            text("name", &gpu.name),
            text("manufacturer", &gpu.manufacturer),
            text("count", gpu.count),
            group("memoryInfo", vec![text("sizeInMiB", gpu.memory_mib)]),
        ]
    });
    let total: u64 = facts.gpus.iter().map(|gpu| u64::from(gpu.count) * gpu.memory_mib).sum();
    (!facts.gpus.is_empty())
        .then(|| group("gpuInfo", vec![set("gpus", gpus), text("totalGpuMemoryInMiB", total)]))
}

fn neuron_xml(facts: &TypeFacts) -> Option<Element> {
    let devices = facts.neurons.iter().map(|device| {
        let core = vec![text("count", device.cores_per_device), text("version", 2)];
        vec![
            text("name", &device.name),
            text("count", device.count),
            group("coreInfo", core),
            group("memoryInfo", vec![text("sizeInMiB", device.memory_mib)]),
        ]
    });
    (!facts.neurons.is_empty()).then(|| group("neuronInfo", vec![set("neuronDevices", devices)]))
}

/// `DescribeInstanceTypeOfferings`.
pub fn describe_offerings(world: &mut World, call: &Call<'_>) -> Result<Body> {
    world.allow(call, "*", Context::default())?;
    let params = &call.request.params;
    let location_type = params.text("LocationType").unwrap_or("region").to_owned();
    let filters = Filters::of(params);
    let offerings = world.types.values().flat_map(|facts| {
        locations(world, facts, &location_type).into_iter().map(|at| (facts.name.clone(), at))
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
