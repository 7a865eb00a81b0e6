//! A few dozen well-known types with us-east-1 prices, for regions without further data.
//!
//! Invariant: rows are facts from EC2's pages; a size differs from the next by a factor of two.

use std::collections::BTreeMap;

use super::catalogue::TypeFacts;
use super::config::ZoneConfig;

/// A family by its `large` size.
struct Family {
    name: &'static str,
    architecture: &'static str,
    manufacturer: &'static str,
    clock_mhz: u32,
    /// Memory of `large` in MiB.
    large_memory_mib: u64,
    /// Price of `large`.
    large_micro_usd: u64,
    /// Spot price in percent of on-demand.
    spot_percent: u64,
}

/// A size: name, vCPUs, memory and price as a multiple of `large` in quarters, network limits.
struct Size {
    name: &'static str,
    vcpus: u32,
    quarters: u64,
    interfaces: u32,
    ipv4: u32,
}

const fn family(
    name: &'static str,
    hardware: (&'static str, &'static str, u32),
    large_memory_mib: u64,
    large_micro_usd: u64,
    spot_percent: u64,
) -> Family {
    let (architecture, manufacturer, clock_mhz) = hardware;
    Family {
        name,
        architecture,
        manufacturer,
        clock_mhz,
        large_memory_mib,
        large_micro_usd,
        spot_percent,
    }
}

const INTEL: (&str, &str, u32) = ("x86_64", "Intel", 3100);
const GRAVITON: (&str, &str, u32) = ("arm64", "AWS", 2500);

const FAMILIES: [Family; 7] = [
    family("t3", INTEL, 8192, 83_200, 31),
    family("t4g", GRAVITON, 8192, 67_200, 33),
    family("m5", INTEL, 8192, 96_000, 38),
    family("m6g", GRAVITON, 8192, 77_000, 40),
    family("c5", INTEL, 4096, 85_000, 41),
    family("c6g", GRAVITON, 4096, 68_000, 43),
    family("r5", INTEL, 16_384, 126_000, 36),
];

const SIZES: [Size; 5] = [
    Size { name: "small", vcpus: 2, quarters: 1, interfaces: 3, ipv4: 4 },
    Size { name: "medium", vcpus: 2, quarters: 2, interfaces: 3, ipv4: 6 },
    Size { name: "large", vcpus: 2, quarters: 4, interfaces: 3, ipv4: 10 },
    Size { name: "xlarge", vcpus: 4, quarters: 8, interfaces: 4, ipv4: 15 },
    Size { name: "2xlarge", vcpus: 8, quarters: 16, interfaces: 4, ipv4: 15 },
];

/// The table, in every zone of the region.
pub fn types_of(_region: &str, zones: &[ZoneConfig]) -> Vec<TypeFacts> {
    let mut types: Vec<TypeFacts> = FAMILIES
        .iter()
        .flat_map(|family| SIZES.iter().filter_map(|size| facts(family, size, zones)))
        .collect();
    types.sort_by(|a, b| a.name.cmp(&b.name));
    types
}

fn facts(family: &Family, size: &Size, zones: &[ZoneConfig]) -> Option<TypeFacts> {
    let burstable = family.name.starts_with('t');
    if !burstable && matches!(size.name, "small" | "medium") {
        return None;
    }
    let price = family.large_micro_usd * size.quarters / 4;
    Some(TypeFacts {
        name: format!("{}.{}", family.name, size.name),
        vcpus: size.vcpus,
        memory_mib: family.large_memory_mib * size.quarters / 4,
        architecture: family.architecture.to_owned(),
        manufacturer: family.manufacturer.to_owned(),
        clock_mhz: family.clock_mhz,
        hypervisor: "nitro".to_owned(),
        bare_metal: false,
        burstable,
        current_generation: true,
        interfaces: size.interfaces,
        ipv4_per_interface: size.ipv4,
        network_mbps: Some(750),
        encryption_in_transit: false,
        efa_interfaces: 0,
        ebs_mbps: Some(4750),
        local_storage_gb: 0,
        gpus: Vec::new(),
        neurons: Vec::new(),
        price_micro_usd_per_hour: price,
        zones: spot_prices(price * family.spot_percent / 100, zones),
    })
}

/// Zones differ by three percent, the first being the dearest.
fn spot_prices(base: u64, zones: &[ZoneConfig]) -> BTreeMap<String, Option<u64>> {
    zones
        .iter()
        .zip(0u64..)
        .map(|(zone, index)| (zone.name.clone(), Some(base * (100 - 3 * index) / 100)))
        .collect()
}
