//! An instance type as DescribeInstanceTypes shows it.
//!
//! Invariant: pure; every value comes from the catalogue.

use longshore_ec2_data::{EbsOptimized, Hypervisor, InstanceType, Network, PlacementStrategy};

use super::super::catalogue::TypeFacts;
use super::super::wire::{Element, group, maybe, set, text};

/// The fields of one type.
pub fn fields(facts: &TypeFacts) -> Vec<Element> {
    let hardware = &facts.hardware;
    let mut fields = vec![
        text("instanceType", facts.name()),
        text("currentGeneration", hardware.current_generation),
        text("freeTierEligible", false),
        Element::texts("supportedUsageClasses", usage_classes(facts)),
        Element::texts("supportedRootDeviceTypes", ["ebs"]),
        Element::texts("supportedVirtualizationTypes", ["hvm"]),
        text("bareMetal", hardware.bare_metal),
        processor(facts),
        vcpus(hardware),
        group("memoryInfo", vec![text("sizeInMiB", hardware.memory_mib)]),
        text("instanceStorageSupported", hardware.local_storage.is_some()),
        ebs(hardware),
        network(&hardware.network),
        placement(hardware),
        text("burstablePerformanceSupported", hardware.burstable),
        text("hibernationSupported", false),
        text("dedicatedHostsSupported", !hardware.burstable),
        text("autoRecoverySupported", true),
        text("nitroEnclavesSupport", supported(hardware.nitro_enclaves)),
    ];
    if hardware.hypervisor != Hypervisor::None {
        fields.push(text("hypervisor", hardware.hypervisor.as_str()));
    }
    fields.extend(storage(hardware));
    fields.extend(gpus(hardware));
    fields.extend(inference(hardware));
    fields.extend(neurons(hardware));
    fields
}

/// Markets that sell a type.
pub fn usage_classes(facts: &TypeFacts) -> impl Iterator<Item = &'static str> {
    let spot = facts.supports_spot().then_some("spot");
    let block = facts.hardware.capacity_block.then_some("capacity-block");
    ["on-demand"].into_iter().chain(spot).chain(block)
}

fn supported(yes: bool) -> &'static str {
    if yes { "supported" } else { "unsupported" }
}

fn processor(facts: &TypeFacts) -> Element {
    let hardware = &facts.hardware;
    let mhz = hardware.cpu_clock_mhz;
    let nested = hardware.nested_virtualization.then_some("nested-virtualization");
    group(
        "processorInfo",
        vec![
            Element::texts("supportedArchitectures", [facts.architecture()]),
            text("sustainedClockSpeedInGhz", format!("{}.{:03}", mhz / 1000, mhz % 1000)),
            Element::texts("supportedFeatures", nested),
            text("manufacturer", &hardware.cpu_manufacturer),
        ],
    )
}

fn vcpus(hardware: &InstanceType) -> Element {
    let one_thread = &*hardware.cpu_manufacturer == "AWS" || hardware.vcpus == 1;
    let threads = if one_thread { 1 } else { 2 };
    group(
        "vCpuInfo",
        vec![
            text("defaultVCpus", hardware.vcpus),
            text("defaultCores", hardware.vcpus / threads),
            text("defaultThreadsPerCore", threads),
        ],
    )
}

fn ebs(hardware: &InstanceType) -> Element {
    let optimized = match hardware.ebs.optimized {
        EbsOptimized::Default => "default",
        EbsOptimized::Supported => "supported",
        EbsOptimized::Unsupported => "unsupported",
    };
    let nvme = if hardware.hypervisor == Hypervisor::Xen { "unsupported" } else { "required" };
    let bandwidth: Vec<Element> = [
        maybe("baselineBandwidthInMbps", hardware.ebs.baseline_bandwidth_mbps),
        maybe("maximumBandwidthInMbps", hardware.ebs.max_bandwidth_mbps),
    ]
    .into_iter()
    .flatten()
    .collect();
    let mut fields = vec![
        text("ebsOptimizedSupport", optimized),
        text("encryptionSupport", "supported"),
        text("nvmeSupport", nvme),
    ];
    if !bandwidth.is_empty() {
        fields.push(group("ebsOptimizedInfo", bandwidth));
    }
    group("ebsInfo", fields)
}

fn network(network: &Network) -> Element {
    let performance = performance(network);
    let interfaces: u32 = network.card_interfaces.iter().copied().map(u32::from).sum();
    let cards = network.card_interfaces.iter().zip(0u32..).map(|(interfaces, index)| {
        vec![
            text("networkCardIndex", index),
            text("networkPerformance", &performance),
            text("maximumNetworkInterfaces", interfaces),
        ]
    });
    let mut fields = vec![
        text("networkPerformance", &performance),
        text("maximumNetworkInterfaces", interfaces),
        text("maximumNetworkCards", network.card_interfaces.len()),
        text("defaultNetworkCardIndex", network.default_card),
        set("networkCards", cards),
        text("ipv4AddressesPerInterface", network.ipv4_per_interface),
        text("ipv6AddressesPerInterface", network.ipv4_per_interface),
        text("ipv6Supported", true),
        text("enaSupport", if network.ena { "required" } else { "unsupported" }),
        text("efaSupported", network.efa_interfaces > 0),
        text("encryptionInTransitSupported", network.encryption_in_transit),
    ];
    if network.efa_interfaces > 0 {
        fields.push(group("efaInfo", vec![text("maximumEfaInterfaces", network.efa_interfaces)]));
    }
    group("networkInfo", fields)
}

fn performance(network: &Network) -> String {
    match network.bandwidth_mbps {
        Some(mbps) => format!("{}.{} Gigabit", mbps / 1000, mbps % 1000 / 100),
        None => "Moderate".to_owned(),
    }
}

fn placement(hardware: &InstanceType) -> Element {
    let word = |strategy: &PlacementStrategy| match strategy {
        PlacementStrategy::Cluster => "cluster",
        PlacementStrategy::Partition => "partition",
        PlacementStrategy::Spread => "spread",
    };
    let strategies = hardware.placement_strategies.iter().map(word);
    group("placementGroupInfo", vec![Element::texts("supportedStrategies", strategies)])
}

fn storage(hardware: &InstanceType) -> Option<Element> {
    let storage = hardware.local_storage.as_ref()?;
    let each_gb = storage.total_gb / u64::from(storage.disks.max(1));
    let disk = vec![
        text("sizeInGB", each_gb),
        text("count", storage.disks),
        text("type", if storage.nvme { "ssd" } else { "hdd" }),
    ];
    let fields = vec![
        text("totalSizeInGB", storage.total_gb),
        set("disks", [disk]),
        text("nvmeSupport", if storage.nvme { "required" } else { "unsupported" }),
        text("encryptionSupport", if storage.nvme { "required" } else { "unsupported" }),
    ];
    Some(group("instanceStorageInfo", fields))
}

fn memory(mib: u64) -> Element {
    group("memoryInfo", vec![text("sizeInMiB", mib)])
}

fn gpus(hardware: &InstanceType) -> Option<Element> {
    let gpus = hardware.gpus.iter().map(|gpu| {
        vec![
            text("name", &gpu.name),
            text("manufacturer", &gpu.manufacturer),
            text("count", gpu.count),
            memory(gpu.memory_mib),
        ]
    });
    let total: u64 = hardware.gpus.iter().map(|gpu| u64::from(gpu.count) * gpu.memory_mib).sum();
    let fields = vec![set("gpus", gpus), text("totalGpuMemoryInMiB", total)];
    (!hardware.gpus.is_empty()).then(|| group("gpuInfo", fields))
}

fn inference(hardware: &InstanceType) -> Option<Element> {
    let accelerators = hardware.inference_accelerators.iter().map(|found| {
        vec![
            text("name", &found.name),
            text("manufacturer", &found.manufacturer),
            text("count", found.count),
            memory(found.memory_mib),
        ]
    });
    let fields = vec![set("accelerators", accelerators)];
    (!hardware.inference_accelerators.is_empty()).then(|| group("inferenceAcceleratorInfo", fields))
}

fn neurons(hardware: &InstanceType) -> Option<Element> {
    let devices = hardware.neuron_devices.iter().map(|device| {
        vec![
            text("name", &device.name),
            text("count", device.count),
            group("coreInfo", vec![text("count", device.cores_per_device), text("version", 2)]),
            memory(device.memory_mib),
        ]
    });
    let fields = vec![set("neuronDevices", devices)];
    (!hardware.neuron_devices.is_empty()).then(|| group("neuronInfo", fields))
}
