//! Near misses: what comes closest to something that cannot be had.
//!
//! Invariant: what is named exists, in the catalogue or in the pod, so that somebody can go and
//! change it.

use crate::offers::market::{PoolOffers, type_label};
use crate::reason::{ClosestOffering, ClosestType, Obstacle, RuledOut};
use crate::vocabulary::catalogue::{InstanceType, Offering};
use crate::vocabulary::labels::{CAPACITY_TYPE, ZONE};
use crate::vocabulary::requirements::Requirements;
use crate::vocabulary::requirements::requirement::Requirement;
use crate::world::shape::PodShape;

/// The requirement that rules out every type of the pool, or most of them, and the type that misses
/// fewest.
pub(crate) fn no_type(pool_offers: &PoolOffers<'_>, wanted: &Requirements) -> Obstacle {
    let both = pool_offers.requirements.and(wanted);
    let each: Vec<(&str, &Requirement, Requirements)> = both
        .iter()
        .map(|(key, wanted)| {
            (key, wanted, [(key.to_owned(), wanted.clone())].into_iter().collect())
        })
        .collect();
    let rules_out = |(_, _, only): &&(&str, &Requirement, Requirements)| {
        pool_offers
            .all_types
            .iter()
            .filter(|instance| !pool_offers.type_admits(instance, only))
            .count()
    };
    let worst = each.iter().max_by_key(rules_out);
    let (key, wanted) = worst.map_or_else(
        || (String::new(), Requirement::exists()),
        |(key, wanted, _)| ((*key).to_owned(), (*wanted).clone()),
    );
    let closest = pool_offers.all_types.iter().filter_map(|instance| {
        let mut missed = each.iter().filter(|(.., only)| !pool_offers.type_admits(instance, only));
        let (key, ..) = missed.next()?;
        Some(ClosestType {
            instance_type: instance.name.clone(),
            key: (*key).to_owned(),
            value: type_label(instance, key).map(str::to_owned),
            misses: 1 + missed.count(),
        })
    });
    Obstacle::NoInstanceType { key, wanted, closest: closest.min_by_key(|type_| type_.misses) }
}

/// Nothing of `types` types can be bought for whoever wants that; `large` are those among them that
/// would hold the pod.
pub(crate) fn no_offering<'a>(
    pool_offers: &PoolOffers<'_>,
    wanted: &Requirements,
    types: usize,
    large: impl Iterator<Item = &'a InstanceType>,
) -> Obstacle {
    let wanted = pool_offers.requirements.and(wanted);
    let sold = large.flat_map(|kind| {
        let available = kind.offerings.iter().filter(|offering| offering.available);
        available.map(move |offering| (&kind.name, offering))
    });
    let missing = sold.map(|(name, it)| (ruled_out_by(pool_offers, &wanted, it), name, it));
    let closest = missing.min_by_key(|(missed, name, it)| {
        let kind = (*name, &it.zone, it.capacity_type);
        (missed.len(), missed.contains(&RuledOut::Subnet), it.price_micro_usd_per_hour, kind)
    });
    let closest = closest.map(|(ruled_out_by, name, offering)| ClosestOffering {
        instance_type: name.clone(),
        capacity_type: offering.capacity_type,
        zone: offering.zone.clone(),
        ruled_out_by,
    });
    Obstacle::NoOffering { types, closest }
}

fn ruled_out_by(
    pool_offers: &PoolOffers<'_>,
    wanted: &Requirements,
    offering: &Offering,
) -> Vec<RuledOut> {
    let allows = |key: &str, value: &str| wanted.get(key).is_none_or(|r| r.allows(Some(value)));
    let subnets = pool_offers.pool.zones.as_ref();
    let has_subnet = subnets.is_none_or(|zones| zones.contains(&offering.zone));
    let by = [
        (RuledOut::Zone, !allows(ZONE, offering.zone.as_str())),
        (RuledOut::CapacityType, !allows(CAPACITY_TYPE, offering.capacity_type.label())),
        (RuledOut::Subnet, !has_subnet),
    ];
    by.into_iter().filter_map(|(what, rules)| rules.then_some(what)).collect()
}

/// The label key on which a pod contradicts itself, and what it wants of it.
pub(super) fn contradiction(kind: &PodShape) -> Obstacle {
    let selector = Requirements::from_labels(&kind.node_selector);
    let none = Requirements::new();
    let terms = kind.required_node_terms.iter().chain([&none]);
    for term in terms {
        for volume in kind.volume_terms.iter().chain([&none]) {
            let parts = [&selector, term, volume];
            let all = parts.iter().fold(Requirements::new(), |all, part| all.and(part));
            let Some((key, _)) = all.iter().find(|(_, wanted)| wanted.is_empty()) else { continue };
            let mut wanted: Vec<Requirement> =
                parts.iter().filter_map(|part| part.get(key)).cloned().collect();
            wanted.dedup();
            if wanted.iter().any(Requirement::is_empty) {
                wanted.clear();
            }
            return Obstacle::Contradiction { key: key.to_owned(), wanted };
        }
    }
    Obstacle::NoPoolAdmits
}
