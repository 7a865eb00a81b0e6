//! The catalogue of a node class from the embedded facts: what its nodes would offer, where they
//! are sold and for how much.
//!
//! Invariant: the actuator's own builder makes it. What only an account knows is taken as open:
//! every zone has a subnet, every architecture an image.

use longshore_actuator::catalogue::{MarketView, Prices, Unavailable, build};
use longshore_actuator::cloud::{Listing, Subnet, TypeInZone};
use longshore_actuator::nodeclass::{ClassImage, Conditions, Resolved};
use longshore_ec2_data::{AmiFamily, Arch, DataError, Dataset, Region};
use longshore_proto::types::v1::{Catalogue, ClusterFacts, NodeClass};

/// What a region sells.
///
/// # Errors
/// When there are no facts about the region.
pub fn market(region: &str) -> Result<MarketView, DataError> {
    let facts = Dataset::embedded()?;
    let sold = facts.region(region)?;
    let types = facts.catalogue(region)?;
    let types = types.map(|(found, _)| (found.name.to_string(), found.clone())).collect();
    let zones = sold.offerings().iter().flat_map(|offer| {
        let zones = offer.zones.iter().filter_map(|at| sold.zones().get(at.zone));
        zones.map(|zone| TypeInZone {
            instance_type: offer.instance_type.to_string(),
            zone: zone.name.to_string(),
        })
    });
    let listing = Listing { types, zones: zones.collect() };
    Ok(MarketView { listing, prices: Prices::embedded(region) })
}

/// What a region sells to a node class.
///
/// # Errors
/// When there are no facts about the region.
pub fn of_class(
    class: &NodeClass,
    region: &str,
    market: &MarketView,
) -> Result<Catalogue, DataError> {
    let resolved = resolved(class, Dataset::embedded()?.region(region)?);
    Ok(build(market, &resolved, &Unavailable::default(), 0, region))
}

/// A class as it would be resolved in an account that has everything it asks for.
fn resolved(class: &NodeClass, region: &Region) -> Resolved {
    let family = AmiFamily::from_name(&class.ami_family).unwrap_or(AmiFamily::Custom);
    let bootable = |arch: &&Arch| !(family.windows() && **arch == Arch::Arm64);
    let image = |arch: &Arch| ClassImage {
        id: String::new(),
        name: String::new(),
        arch: arch.as_str().to_owned(),
        variant: None,
        owners: Vec::new(),
    };
    let subnets = region.zones().iter().map(|zone| Subnet {
        id: String::new(),
        zone: zone.name.to_string(),
        zone_id: zone.id.to_string(),
        free_addresses: i32::MAX,
        tags: std::collections::BTreeMap::new(),
    });
    Resolved {
        cluster_id: String::new(),
        cluster: ClusterFacts::default(),
        class: class.clone(),
        family,
        subnets: subnets.collect(),
        security_groups: Vec::new(),
        images: [Arch::Amd64, Arch::Arm64].iter().filter(bootable).map(image).collect(),
        reservations: Vec::new(),
        instance_profile: String::new(),
        conditions: Conditions::default(),
    }
}

#[cfg(test)]
mod tests {
    use longshore_proto::types::v1::{CapacityType, InstanceType, Kubelet, Offering};

    use super::*;

    fn find<'a>(catalogue: &'a Catalogue, name: &str) -> Option<&'a InstanceType> {
        catalogue.types.iter().find(|kind| kind.name == name)
    }

    #[test]
    fn a_class_sees_every_type_with_its_own_settings() {
        let class = NodeClass {
            ami_family: "AL2023".to_owned(),
            kubelet: Some(Kubelet { max_pods: Some(8), ..Kubelet::default() }),
            ..NodeClass::default()
        };
        let catalogue = of_class(&class, "eu-west-1", &market("eu-west-1").unwrap()).unwrap();
        let kind = find(&catalogue, "m5.large").unwrap();
        assert_eq!(kind.capacity.as_ref().unwrap().pods, 8);
        let on_demand = |o: &&Offering| o.capacity_type() == CapacityType::OnDemand;
        assert_eq!(kind.offerings.iter().filter(on_demand).count(), 3, "one for each zone");
        assert!(kind.offerings.iter().all(|o| o.available && o.price_micro_usd_per_hour > 0));
        assert!(find(&catalogue, "m7g.large").is_some());
        assert_eq!(catalogue.price_date.len(), "2026-10-27".len());
    }

    #[test]
    fn windows_boots_on_amd64_only() {
        let class = NodeClass { ami_family: "Windows2022".to_owned(), ..NodeClass::default() };
        let catalogue = of_class(&class, "us-east-1", &market("us-east-1").unwrap()).unwrap();
        assert!(find(&catalogue, "m5.large").is_some() && find(&catalogue, "m7g.large").is_none());
    }

    #[test]
    fn an_unknown_region_is_answered_with_those_there_are() {
        let error = market("mars-1").unwrap_err().to_string();
        assert!(error.contains("\"mars-1\"") && error.contains("eu-west-1"), "{error}");
    }
}
