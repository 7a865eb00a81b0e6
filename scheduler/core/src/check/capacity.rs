//! Limits of pools and the proof of the bound.
//!
//! Invariant: a launch counts with the largest of its candidates, an unlaunched claim with the largest
//! type that its requirements still name.

use std::collections::BTreeMap;

use super::{Findings, Rule};
use crate::certificate::{self, PricedRoom};
use crate::plan::{Plan, PlanInput};
use crate::vocabulary::catalogue::{Catalogue, InstanceType, Offering};
use crate::vocabulary::labels::{self, Labels};
use crate::vocabulary::pool::NodePool;
use crate::vocabulary::resources::Resources;
use crate::world::claim::NodeClaim;
use crate::world::shape::PodShape;

pub(super) fn check(plan: &Plan, input: &PlanInput, findings: &mut Findings) {
    for pool in input.world.pools.values() {
        let Some(catalogue) = input.catalogue_of(pool) else { continue };
        for (resource, limit) in &pool.limits {
            let added: i64 = plan
                .launches
                .iter()
                .filter(|launch| launch.pool == pool.name)
                .map(|launch| {
                    let types = launch.candidates.iter().map(|c| &c.instance_type);
                    let types = types.filter_map(|name| catalogue.types.get(name));
                    amount(types, resource)
                })
                .sum();
            let used: i64 = input
                .world
                .claims
                .values()
                .filter(|claim| claim.pool == pool.name)
                .map(|claim| amount(types_of(claim, catalogue), resource))
                .sum();
            findings.require(added == 0 || used + added <= *limit, Rule::Limits, || {
                format!("{}: {resource} {used} + {added} exceeds {limit}", pool.name)
            });
        }
    }
    bound(plan, input, findings);
}

fn amount<'c>(types: impl Iterator<Item = &'c InstanceType>, resource: &str) -> i64 {
    if resource == "nodes" {
        return 1;
    }
    types.map(|instance| instance.capacity.get(resource)).max().unwrap_or(0)
}

fn types_of<'c>(
    claim: &NodeClaim,
    catalogue: &'c Catalogue,
) -> Box<dyn Iterator<Item = &'c InstanceType> + 'c> {
    if let Some(name) = &claim.instance_type {
        return Box::new(catalogue.types.get(name).into_iter());
    }
    let wanted = claim.requirements.get(labels::INSTANCE_TYPE).cloned();
    Box::new(catalogue.types.values().filter(move |instance| {
        wanted.as_ref().is_none_or(|wanted| wanted.allows(Some(instance.name.as_str())))
    }))
}

/// The reported bound, proved again from scratch.
fn bound(plan: &Plan, input: &PlanInput, findings: &mut Findings) {
    let price: i64 = plan.launches.iter().map(|l| l.candidates[0].price_micro_usd_per_hour).sum();
    findings.require(price == plan.launch_price_micro_usd_per_hour, Rule::Bound, || {
        format!("launches cost {price}, not {}", plan.launch_price_micro_usd_per_hour)
    });
    let bound = &plan.bound;
    findings.require(bound.price_micro_usd_per_hour <= price, Rule::Bound, || {
        format!("bound {} exceeds the price {price}", bound.price_micro_usd_per_hour)
    });
    let mut demand = Resources::default();
    for pod in plan.launches.iter().flat_map(|launch| &launch.pods) {
        let shape = input.world.pods.get(pod).and_then(|pod| input.world.shapes.get(&pod.shape));
        demand = shape.map_or(demand.clone(), |shape| demand.plus(&shape.requests));
    }
    if let Err(error) = certificate::verify(bound, &demand, offers(input)) {
        findings.add(Rule::Bound, error.to_string());
    }
}

/// Everything on offer with the room it leaves. DaemonSets are subtracted only where they are certain
/// to run, so the room is never underestimated.
fn offers(input: &PlanInput) -> Vec<PricedRoom> {
    let world = input.world.as_ref();
    let shapes = world.daemon_sets.values().filter_map(|set| world.shapes.get(&set.shape));
    let shapes: Vec<&PodShape> = shapes.map(AsRef::as_ref).collect();
    let mut rooms: BTreeMap<(i64, Resources), ()> = BTreeMap::new();
    for pool in world.pools.values().filter(|pool| pool.not_ready.is_none()) {
        let for_pods = |_: &&Catalogue| pool.replicas.is_none();
        let Some(catalogue) = input.catalogue_of(pool).filter(for_pods) else { continue };
        for instance in catalogue.types.values() {
            for offering in instance.offerings.iter().filter(|offering| offering.available) {
                let labels = labels_of(pool, instance, offering);
                if !possible(pool, &labels, offering) {
                    continue;
                }
                let certain = |shape: &&&PodShape| runs(pool, &labels, shape);
                let daemons = shapes.iter().filter(certain).map(|shape| &shape.requests);
                let room = daemons.fold(instance.allocatable(), |room, r| room.minus(r));
                rooms.insert((offering.price_micro_usd_per_hour, room), ());
            }
        }
    }
    let priced = |((price, room), ())| PricedRoom { room, price_micro_usd_per_hour: price };
    rooms.into_iter().map(priced).collect()
}

fn labels_of(pool: &NodePool, instance: &InstanceType, offering: &Offering) -> Labels {
    let mut all = pool.labels.clone();
    for (key, wanted) in pool.requirements.iter() {
        if let Some(value) = wanted.single() {
            all.insert(key.to_owned(), value.to_owned());
        }
    }
    all.extend(instance.labels.clone());
    all.insert(labels::NODE_POOL.to_owned(), pool.name.to_string());
    all.insert(labels::INSTANCE_TYPE.to_owned(), instance.name.to_string());
    all.insert(labels::ZONE.to_owned(), offering.zone.to_string());
    all.insert(labels::CAPACITY_TYPE.to_owned(), offering.capacity_type.label().to_owned());
    all.insert(labels::REGISTERED.to_owned(), "true".to_owned());
    all.insert(labels::INITIALIZED.to_owned(), "true".to_owned());
    all
}

fn possible(pool: &NodePool, labels: &Labels, offering: &Offering) -> bool {
    let zones = pool.zones.as_ref();
    zones.is_none_or(|zones| zones.contains(&offering.zone))
        && pool
            .requirements
            .iter()
            .all(|(key, wanted)| labels.get(key).is_none_or(|value| wanted.allows(Some(value))))
}

fn runs(pool: &NodePool, labels: &Labels, daemon: &PodShape) -> bool {
    let tolerates = |taint| daemon.tolerations.iter().any(|t| t.covers(taint));
    pool.taints.iter().all(|taint| !taint.repels() || tolerates(taint))
        && daemon.node_alternatives().iter().any(|wanted| wanted.allow(labels))
}
