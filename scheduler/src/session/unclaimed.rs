//! Living instances of the cluster that no claim stands for: it cannot be read, is gone, or never
//! was.
//!
//! Invariant: said here only; what draws on limits and what ends as an orphan are the same
//! instances.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};

use longshore_core::vocabulary::ids::{InstanceTypeName, PoolName};
use longshore_proto::capacity::v1::InstanceState;
use longshore_proto::provider_id::instance_id;
use longshore_proto::types::v1::NodeClaim;

use crate::region::RegionState;

/// Instances of a cluster by pool and type.
pub type Unclaimed = BTreeMap<PoolName, BTreeMap<InstanceTypeName, i64>>;

/// Living instances of the cluster for which no claim is to be seen.
pub fn unclaimed<'a>(
    cluster_id: &str,
    claims: &'a BTreeMap<String, NodeClaim>,
    region: &'a RegionState,
) -> impl Iterator<Item = &'a InstanceState> {
    let recorded = move || -> BTreeSet<&'a str> {
        claims.values().map(|claim| instance_id(&claim.provider_id)).collect()
    };
    let recorded = LazyCell::new(recorded);
    region.living_of(cluster_id).filter(move |instance| {
        let tagged = claims.get(&instance.claim);
        let named = tagged.is_some_and(|claim| may_stand_for(claim, instance));
        !named && !recorded.contains(instance.instance_id.as_str())
    })
}

/// True when a claim that an instance is tagged with may be its own. Beside the instance of one of
/// our launches the actuator ends what the launch led to besides; nobody does so for another
/// autoscaler's.
fn may_stand_for(claim: &NodeClaim, instance: &InstanceState) -> bool {
    let recorded = claim.provider_id.as_str();
    !is_adopted(instance) || recorded.is_empty() || instance_id(recorded) == instance.instance_id
}

/// True for an instance that we did not launch.
#[must_use]
pub const fn is_adopted(instance: &InstanceState) -> bool {
    instance.adopted || instance.launch_id.is_empty()
}

/// How many of them there are of each pool.
#[must_use]
pub fn by_pool(
    cluster_id: &str,
    claims: &BTreeMap<String, NodeClaim>,
    region: &RegionState,
) -> Unclaimed {
    let mut found = Unclaimed::new();
    for instance in unclaimed(cluster_id, claims, region) {
        if !instance.pool.is_empty() {
            let of_pool = found.entry(PoolName::new(&instance.pool)).or_default();
            *of_pool.entry(InstanceTypeName::new(&instance.instance_type)).or_default() += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use longshore_proto::capacity::v1::region_change::Change;
    use longshore_proto::capacity::v1::{InstancePhase, RegionChange};

    use super::*;

    /// An instance of the pool "small", launched by us unless changed.
    fn instance(id: &str, claim: &str) -> InstanceState {
        InstanceState {
            instance_id: id.to_owned(),
            launch_id: format!("l-{id}"),
            cluster_id: "c".to_owned(),
            claim: claim.to_owned(),
            pool: "small".to_owned(),
            instance_type: "m5.large".to_owned(),
            phase: InstancePhase::Running.into(),
            ..InstanceState::default()
        }
    }

    fn region(instances: impl IntoIterator<Item = InstanceState>) -> RegionState {
        let mut region = RegionState::default();
        for instance in instances {
            region.apply(RegionChange { change: Some(Change::Instance(instance)) });
        }
        region
    }

    fn claims<const N: usize>(claims: [(&str, &str); N]) -> BTreeMap<String, NodeClaim> {
        let claim = |provider_id: &str| NodeClaim {
            provider_id: provider_id.to_owned(),
            ..NodeClaim::default()
        };
        BTreeMap::from(claims.map(|(name, provider_id)| (name.to_owned(), claim(provider_id))))
    }

    #[test]
    fn an_instance_without_a_claim_counts_for_its_pool_while_it_lives() {
        let phase =
            |phase: InstancePhase, instance| InstanceState { phase: phase.into(), ..instance };
        let known = region([
            instance("i-1", "read"),
            instance("i-2", "hidden"),
            phase(InstancePhase::Pending, instance("i-3", "leaked")),
            phase(InstancePhase::ShuttingDown, instance("i-4", "gone")),
            InstanceState { cluster_id: "d".to_owned(), ..instance("i-5", "theirs") },
        ]);
        let found = by_pool("c", &claims([("read", "")]), &known);
        let of_pool = BTreeMap::from([("m5.large".into(), 2)]);
        assert_eq!(found, BTreeMap::from([("small".into(), of_pool)]));
    }

    #[test]
    fn a_claim_stands_for_the_instance_that_it_names_whatever_the_tags_say() {
        let known = [("a", "aws:///z/i-1"), ("b", "")];
        let adopted = |id, claim| InstanceState { launch_id: String::new(), ..instance(id, claim) };
        let table = [
            (adopted("i-1", "a"), true, "tag and claim agree"),
            (adopted("i-1", ""), true, "Karpenter writes the tag some time after the launch"),
            (adopted("i-2", "a"), false, "its claim names another"),
            (adopted("i-2", "b"), true, "its claim names none yet"),
            (adopted("i-2", ""), false, "nobody names it"),
            (instance("i-2", "a"), true, "the actuator sees to the surplus of our launches"),
            (instance("i-1", "c"), true, "its tag was changed"),
        ];
        for (instance, claimed, why) in table {
            let region = region([instance]);
            assert_eq!(unclaimed("c", &claims(known), &region).next().is_none(), claimed, "{why}");
        }
    }
}
