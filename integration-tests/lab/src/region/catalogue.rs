//! Instance types as this region sells them: hardware, zones, prices.
//!
//! Invariant: the only place that reads the embedded facts; they are what EC2 reports, unchanged.

use std::collections::BTreeMap;

use longshore_ec2_data::{
    Arch, DataError, Dataset, InstanceType, Offering, Region, eni_limited_pods,
};

/// One instance type with its prices here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeFacts {
    /// What EC2 says of the type in any region.
    pub hardware: InstanceType,
    /// On-demand price for Linux.
    pub price_micro_usd_per_hour: u64,
    /// Zones that sell it, by name, with the spot price there; `None` where not sold as spot.
    pub zones: BTreeMap<String, Option<u64>>,
    /// Share of spot instances interrupted in a month, in percent, where that is known.
    pub interruption_percent: Option<u32>,
}

impl TypeFacts {
    /// Type name, for example `m5.large`.
    pub fn name(&self) -> &str {
        &self.hardware.name
    }

    /// EC2's name of the architecture.
    pub fn architecture(&self) -> &'static str {
        match self.hardware.arch {
            Arch::Amd64 => "x86_64",
            Arch::Arm64 => "arm64",
        }
    }

    /// Most pods with one address each, as the VPC CNI hands them out.
    pub fn eni_max_pods(&self) -> u32 {
        u32::try_from(eni_limited_pods(&self.hardware, 0)).unwrap_or(u32::MAX)
    }

    /// True when any zone sells it as spot.
    pub fn supports_spot(&self) -> bool {
        self.zones.values().any(Option::is_some)
    }
}

/// A zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneConfig {
    /// Name in this account, for example `us-east-1a`.
    pub name: String,
    /// Id common to all accounts, for example `use1-az1`.
    pub id: String,
}

/// Zones of a region.
///
/// # Errors
/// When there is no data for the region.
pub fn zones_of(region: &str) -> Result<Vec<ZoneConfig>, DataError> {
    let zones = Dataset::embedded()?.region(region)?.zones().iter();
    Ok(zones
        .map(|zone| ZoneConfig { name: zone.name.to_string(), id: zone.id.to_string() })
        .collect())
}

/// Types sold in a region, sorted by name.
///
/// # Errors
/// When there is no data for the region.
pub fn types_of(region: &str) -> Result<Vec<TypeFacts>, DataError> {
    let dataset = Dataset::embedded()?;
    let sold_in = dataset.region(region)?;
    let catalogue = dataset.catalogue(region)?;
    Ok(catalogue.map(|(hardware, offering)| facts(sold_in, hardware, offering)).collect())
}

fn facts(region: &Region, hardware: &InstanceType, offering: &Offering) -> TypeFacts {
    let in_zone = |sold: &longshore_ec2_data::ZoneOffering| {
        let zone = region.zones().get(sold.zone)?;
        Some((zone.name.to_string(), sold.spot.map(|price| price.micro_usd_per_hour)))
    };
    TypeFacts {
        hardware: hardware.clone(),
        price_micro_usd_per_hour: offering.on_demand.micro_usd_per_hour,
        zones: offering.zones.iter().filter_map(in_zone).collect(),
        interruption_percent: offering.interruption.map(|band| band.upper_percent()),
    }
}
