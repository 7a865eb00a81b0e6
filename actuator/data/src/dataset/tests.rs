//! Laws of the embedded facts: what every type, region, offering and price must hold to.

use super::*;
use crate::{Arch, Price};

fn facts() -> &'static Dataset {
    Dataset::embedded().expect("embedded facts decode")
}

fn all_regions() -> impl Iterator<Item = &'static Region> {
    facts().regions().map(|name| facts().region(name).expect(name))
}

#[test]
fn types_are_sorted_distinct_and_whole() {
    assert!(facts().instance_types().is_sorted_by(|a, b| a.name < b.name));
    for found in facts().instance_types() {
        let name = &found.name;
        assert!(!found.family().is_empty() && !found.size().is_empty(), "{name}");
        assert!(found.generation().is_some(), "{name}: generation");
        assert!(found.vcpus > 0 && found.memory_mib > 0, "{name}: size");
        assert!(found.default_card_interfaces() > 0, "{name}: interfaces");
        assert!(found.network.ipv4_per_interface > 1, "{name}: addresses");
        assert_eq!(facts().instance_type(name), Some(found));
    }
    assert_eq!(facts().instance_type("m5.enormous"), None);
}

#[test]
fn every_region_has_zones_and_decodes_once() {
    assert!(facts().regions().count() >= 30);
    assert!(facts().regions().is_sorted());
    for region in all_regions() {
        assert!(region.zones().len() >= 2, "{}", region.name());
        assert!(region.zones().is_sorted_by(|a, b| a.name < b.name), "{}", region.name());
        let mut ids: Vec<_> = region.zones().iter().map(|zone| &zone.id).collect();
        ids.sort_unstable();
        assert!(ids.is_sorted_by(|a, b| a < b), "{}: a zone id twice", region.name());
        assert!(std::ptr::eq(region, facts().region(region.name()).expect("decoded")));
    }
}

#[test]
fn every_offering_has_its_type_its_zones_and_its_prices() {
    for region in all_regions() {
        assert!(region.offerings().is_sorted_by(|a, b| a.instance_type < b.instance_type));
        for offering in region.offerings() {
            let at = format!("{} in {}", offering.instance_type, region.name());
            let found = facts().instance_type(&offering.instance_type).expect(&at);
            assert!(offering.on_demand.micro_usd_per_hour > 0, "{at}");
            assert!(!offering.zones.is_empty(), "{at}");
            assert!(offering.zones.is_sorted_by(|a, b| a.zone < b.zone), "{at}");
            for zone in &offering.zones {
                assert!(zone.zone < region.zones().len(), "{at}");
                assert_eq!(zone.spot.is_some(), found.spot, "{at}");
                assert!(zone.spot.is_none_or(|price| price.micro_usd_per_hour > 0), "{at}");
            }
        }
        let joined = facts().catalogue(region.name()).expect("a region there is").count();
        assert_eq!(joined, region.offerings().len());
    }
}

#[test]
fn spot_is_rarely_dearer_than_on_demand() {
    let (mut all, mut dearer) = (0_u32, 0_u32);
    for region in all_regions() {
        for offering in region.offerings() {
            for spot in offering.zones.iter().filter_map(|zone| zone.spot) {
                all += 1;
                dearer +=
                    u32::from(spot.micro_usd_per_hour > offering.on_demand.micro_usd_per_hour);
            }
        }
    }
    assert!(all > 50_000, "{all} spot prices");
    assert!(dearer * 1000 < all, "{dearer} of {all}");
}

#[test]
fn most_prices_of_the_large_regions_are_listed() {
    for (region, percent) in [("us-east-1", 95), ("eu-west-1", 60), ("us-gov-west-1", 100)] {
        let offerings = facts().region(region).expect(region).offerings();
        let listed = offerings.iter().filter(|offering| !offering.on_demand.estimated).count();
        assert!(listed * 100 >= offerings.len() * percent, "{region}: {listed} are listed");
    }
}

#[test]
fn known_prices() {
    let listed = |micro_usd_per_hour| Price { micro_usd_per_hour, estimated: false };
    for (region, instance_type, price) in [
        ("us-east-1", "m5.large", 96_000),
        ("us-east-1", "p5.48xlarge", 55_040_000),
        ("eu-west-1", "m5.large", 107_000),
        ("ap-northeast-2", "t4g.medium", 41_600),
    ] {
        let region = facts().region(region).expect(region);
        assert_eq!(region.on_demand(instance_type), Some(listed(price)), "{instance_type}");
    }
    let region = facts().region("us-east-1").expect("us-east-1");
    // Newer than both price lists: taken from the family before it.
    let price = region.on_demand("r9g.large").expect("r9g.large");
    assert!(price.estimated);
    assert_eq!(region.on_demand("r8g.large"), Some(listed(price.micro_usd_per_hour)));
}

/// An estimate may be wrong, not absurd: regions sell at half to two and a half times the price.
#[test]
fn estimates_stay_near_the_reference_region() {
    let reference = facts().region("us-east-1").expect("us-east-1");
    let mut compared = 0;
    for region in all_regions() {
        for offering in region.offerings().iter().filter(|found| found.on_demand.estimated) {
            let Some(there) = reference.on_demand(&offering.instance_type) else { continue };
            let (here, there) = (offering.on_demand.micro_usd_per_hour, there.micro_usd_per_hour);
            let near = here * 2 >= there && here * 10 <= there * 25;
            assert!(near, "{} in {}: {here}", offering.instance_type, region.name());
            compared += 1;
        }
    }
    assert!(compared > 5000, "{compared}");
}

#[test]
fn offerings_answer_by_type_and_zone() {
    let region = facts().region("us-east-1").expect("us-east-1");
    let m5_large = region.offering("m5.large").expect("m5.large");
    let zone = |name| region.zones().iter().position(|zone| &*zone.name == name);
    for name in ["us-east-1a", "us-east-1e", "us-east-1f"] {
        let sold = m5_large.zones.iter().find(|offering| Some(offering.zone) == zone(name));
        assert_eq!(region.offers("m5.large", name), sold.is_some(), "{name}");
        assert_eq!(region.spot("m5.large", name), sold.and_then(|z| z.spot), "{name}");
    }
    assert!(!region.offers("m5.large", "us-east-1z"));
    assert!(!region.offers("m5.enormous", "us-east-1a"));
    assert_eq!(region.zone("us-east-1z"), None);
}

/// The usual pool of benchmarks: c, m and r of generation 3 and up, amd64.
#[test]
fn the_usual_catalogue_has_its_size() {
    let sold = facts().catalogue("us-east-1").expect("us-east-1");
    let usual = sold.filter(|(found, _)| {
        found.arch == Arch::Amd64
            && ["c", "m", "r"].contains(&found.category())
            && found.generation().is_some_and(|generation| generation > 2)
    });
    let count = usual.count();
    assert!((636..800).contains(&count), "{count} types");
}

#[test]
fn the_date_is_that_of_the_newest_source() {
    let newest = facts().sources().iter().map(|source| &*source.date).max();
    assert_eq!(newest, Some(facts().date()));
}

#[test]
fn a_region_there_is_not_is_named_with_those_there_are() {
    let error = facts().region("eu-west-9").expect_err("no such region");
    let text = error.to_string();
    assert!(text.contains("\"eu-west-9\"") && text.contains("eu-west-1, eu-west-2"), "{text}");
}

#[test]
fn damage_is_an_error_that_names_the_blob() {
    let part = |result: Result<Dataset, DataError>| match result.expect_err("damaged") {
        DataError::Corrupt { part, .. } => part,
        DataError::UnknownRegion { region, .. } => panic!("unknown region {region}"),
    };
    assert_eq!(part(Dataset::decode("{}", TYPES)), "index");
    let newer = INDEX.replacen("\"format\": 1", "\"format\": 2", 1);
    assert_eq!(part(Dataset::decode(&newer, TYPES)), "index");
    let half = TYPES.split_at(TYPES.len() / 2).0;
    assert_eq!(part(Dataset::decode(INDEX, half)), "types");
    let mut flipped = TYPES.to_vec();
    flipped.iter_mut().skip(100).step_by(50).for_each(|byte| *byte = !*byte);
    assert_eq!(part(Dataset::decode(INDEX, &flipped)), "types");
}

#[test]
fn the_blobs_stay_small() {
    assert!(TYPES.len() + REGIONS.len() < 700_000);
}
