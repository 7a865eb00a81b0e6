//! Limits of pools and the proof of the bound.
//!
//! Invariant: a launch counts with the largest of its candidates, a claim with what [`drawn`] says.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::answer::Plan;
use crate::bound::certificate::{self, CertificateError, PodClass, PricedRoom, SharedRoom};
use crate::bound::{BoundKind, LowerBound};
use crate::check::{Findings, Part, Rule, cost};
use crate::question::PlanInput;
use crate::vocabulary::catalogue::sold;
use crate::vocabulary::catalogue::{Catalogue, InstanceType, Offering};
use crate::vocabulary::ids::{ClaimName, ReservationId, ShapeId};
use crate::vocabulary::labels;
use crate::vocabulary::pool::NodePool;
use crate::vocabulary::requirements::Requirements;
use crate::vocabulary::resources::{Resources, total};
use crate::world::drawn::{self, drawn};
use crate::world::node::Node;
use crate::world::shape::PodShape;

pub(super) fn check(plan: &Plan, input: &PlanInput, findings: &mut Findings) {
    let claimed = input.world.claims_by_node();
    let mut nodes: BTreeMap<&ClaimName, &Node> = BTreeMap::new();
    for (node, claim) in &claimed {
        nodes.extend(input.world.nodes.get(node).map(|node| (&claim.name, node.as_ref())));
    }
    for pool in input.world.pools.values() {
        let Some(catalogue) = input.catalogue_of(pool) else { continue };
        for (resource, limit) in &pool.limits {
            let launches = plan.launches.iter().enumerate();
            let launches = launches.filter(|(_, launch)| launch.pool == pool.name);
            let each = launches.map(|(at, launch)| {
                let types = launch.candidates.iter().map(|c| &c.instance_type);
                (at, amount(types.filter_map(|name| catalogue.types.get(name)), resource))
            });
            let each: Vec<(usize, i64)> = each.collect();
            let added = total(each.iter().map(|(_, amount)| *amount));
            let claims = input.world.claims.values().filter(|claim| claim.pool == pool.name);
            let used = claims.map(|claim| match resource.as_str() {
                "nodes" => 1,
                name => drawn(claim, nodes.get(&claim.name).copied(), Some(catalogue)).get(name),
            });
            let unclaimed = input.unclaimed.get(&pool.name);
            let used = total([total(used), drawn::unclaimed(unclaimed, catalogue, resource)]);
            findings.require(added == 0 || total([used, added]) <= *limit, Rule::Limits, || {
                let detail = format!("{}: {resource} {used} + {added} exceeds {limit}", pool.name);
                (beyond(&each, limit.saturating_sub(used)), detail)
            });
        }
    }
    reservations(plan, input, findings);
    bound(plan, input, findings);
}

/// Launches for which nothing is left once those before them have had their amounts.
fn beyond(each: &[(usize, i64)], mut left: i64) -> Vec<Part> {
    let fits = |amount: i64, left: &mut i64| {
        let fits = amount <= 0 || amount <= *left;
        *left -= if fits { amount.max(0) } else { 0 };
        fits
    };
    let out = each.iter().filter(|(_, amount)| !fits(*amount, &mut left));
    out.map(|(at, _)| Part::Launch(*at)).collect()
}

/// Launches and claims that name a reservation do not draw more on it than it has left.
fn reservations(plan: &Plan, input: &PlanInput, findings: &mut Findings) {
    let mut left: BTreeMap<&ReservationId, i64> = BTreeMap::new();
    let catalogues = input.catalogues.values();
    let types = catalogues.flat_map(|catalogue| catalogue.types.values());
    for reservation in types.flat_map(|t| &t.offerings).filter_map(|o| o.reservation.as_ref()) {
        let known = left.entry(&reservation.id).or_insert(reservation.remaining);
        *known = (*known).min(reservation.remaining);
    }
    for (id, left) in left {
        let named = |wanted: &Requirements| {
            let wanted = wanted.get(labels::RESERVATION_ID);
            wanted.is_some_and(|ids| ids.allows(Some(id.as_str())))
        };
        let claims = input.world.claims.values().filter(|claim| claim.provider_id.is_empty());
        let held = claims.filter(|claim| named(&claim.requirements)).count();
        let launches = plan.launches.iter().enumerate();
        let each = launches.filter(|(_, launch)| named(&launch.requirements));
        let each: Vec<(usize, i64)> = each.map(|(at, _)| (at, 1)).collect();
        let drawn = each.len();
        let within = i64::try_from(held + drawn).is_ok_and(|all| all <= left);
        findings.require(drawn == 0 || within, Rule::Limits, || {
            let over = beyond(&each, left - i64::try_from(held).unwrap_or(i64::MAX));
            (over, format!("reservation {id}: {held} + {drawn} exceeds {left}"))
        });
    }
}

fn amount<'c>(types: impl Iterator<Item = &'c InstanceType>, resource: &str) -> i64 {
    if resource == "nodes" {
        return 1;
    }
    types.map(|instance| instance.capacity.get(resource)).max().unwrap_or(0)
}

/// The reported bound, proved again from scratch.
fn bound(plan: &Plan, input: &PlanInput, findings: &mut Findings) {
    let price: i64 = plan.launches.iter().map(|l| l.price()).sum();
    findings.require(price == plan.launch_price_micro_usd_per_hour, Rule::Bound, || {
        let told = plan.launch_price_micro_usd_per_hour;
        (vec![Part::Bound], format!("launches are priced {price}, not {told}"))
    });
    let cost: i64 = plan.launches.iter().map(|l| l.cost()).sum();
    findings.require(cost == plan.launch_cost_micro_usd_per_hour, Rule::Bound, || {
        let told = plan.launch_cost_micro_usd_per_hour;
        (vec![Part::Bound], format!("launches cost {cost}, not {told}"))
    });
    let bound = &plan.bound;
    findings.require(bound.cost_micro_usd_per_hour <= cost, Rule::Bound, || {
        let told = bound.cost_micro_usd_per_hour;
        (vec![Part::Bound], format!("bound {told} exceeds the cost {cost}"))
    });
    // What costs nothing or more needs no proof that it costs nothing or more.
    if bound.cost_micro_usd_per_hour <= 0 {
        return;
    }
    let pods = plan.launches.iter().flat_map(|launch| &launch.pods);
    let shapes = pods.filter_map(|pod| input.world.shapes.get(&input.world.pods.get(pod)?.shape));
    let mut counts: BTreeMap<&ShapeId, (&PodShape, i64)> = BTreeMap::new();
    for shape in shapes {
        counts.entry(&shape.id).or_insert((shape, 0)).1 += 1;
    }
    let proof = match bound.kind {
        BoundKind::ClassValues | BoundKind::PriceSets | BoundKind::WholeNodes => {
            by_values(bound, &counts, input)
        }
        BoundKind::ResourcePrices | BoundKind::None => {
            let all = counts.values().map(|(shape, count)| shape.requests.times(*count));
            let demand = all.fold(Resources::default(), |sum, amount| sum.plus(&amount));
            let rooms = offers(input).into_iter().map(|offer| offer.room);
            certificate::verify(bound, &demand, rooms)
        }
    };
    if let Err(error) = proof {
        findings.add(Rule::Bound, (vec![Part::Bound], error.to_string()));
    }
}

/// Proves values of pods, with everything in vectors over the resources that are requested.
fn by_values(
    bound: &LowerBound,
    counts: &BTreeMap<&ShapeId, (&PodShape, i64)>,
    input: &PlanInput,
) -> Result<(), CertificateError> {
    let names: BTreeSet<&str> = counts.values().flat_map(|(s, _)| s.requests.names()).collect();
    let requested = |amount: &Resources| names.iter().map(|name| amount.get(name)).collect();
    let available = |room: &Resources| names.iter().map(|name| room.available(name)).collect();
    let classes: Vec<PodClass> = counts
        .iter()
        .map(|(id, (shape, count))| PodClass {
            shape: (*id).clone(),
            request: requested(&shape.requests),
            count: *count,
        })
        .collect();
    // Most shapes ask the same of a node: each such question is put to each offer once.
    let mut askers: Vec<&PodShape> = Vec::new();
    let asked: Vec<usize> = counts
        .values()
        .map(|(shape, _)| {
            askers.iter().position(|other| asks_the_same(shape, other)).unwrap_or_else(|| {
                askers.push(shape);
                askers.len() - 1
            })
        })
        .collect();
    let shared = |offer: Offer<'_>| {
        let may: Vec<bool> = askers.iter().map(|shape| may_run(&offer, shape)).collect();
        SharedRoom {
            price_micro_usd_per_hour: offer.room.price_micro_usd_per_hour,
            room: available(&offer.room.room),
            admits: asked.iter().map(|asker| may[*asker]).collect(),
        }
    };
    let rooms: BTreeSet<SharedRoom> = offers(input).into_iter().map(shared).collect();
    let rooms: Vec<SharedRoom> = rooms.into_iter().collect();
    let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
    certificate::verify_values(bound, &names, &classes, &rooms)
}

/// True when two shapes look at the same of a node.
fn asks_the_same(one: &PodShape, other: &PodShape) -> bool {
    one.node_selector == other.node_selector
        && one.required_node_terms == other.required_node_terms
        && one.volume_terms == other.volume_terms
        && one.tolerations == other.tolerations
}

/// True unless a taint or a label that the node will have keeps the pod away.
fn may_run(offer: &Offer<'_>, shape: &PodShape) -> bool {
    let Offer { labels, .. } = offer;
    let pool = labels.pool;
    let tolerates = |taint| shape.tolerations.iter().any(|t| t.covers(taint));
    let possible = |wanted: &Requirements| {
        wanted.iter().all(|(key, wanted)| match (labels.get(key), pool.requirements.get(key)) {
            (Some(value), _) => wanted.allows(Some(value)),
            // What some types carry and this one does not is absent.
            (None, _) if offer.decided.contains(key) => wanted.allows_absent(),
            (None, Some(open)) => wanted.overlaps(open),
            (None, None) => wanted.allows_absent() || labels::is_well_known(key),
        })
    };
    pool.taints.iter().all(|taint| !taint.repels() || tolerates(taint))
        && shape.node_alternatives().iter().any(possible)
}

/// The labels that a node of a pool will certainly have, of some type and offering.
#[derive(Clone, Copy)]
struct Carried<'a> {
    pool: &'a NodePool,
    instance: &'a InstanceType,
    offering: &'a Offering,
}

impl<'a> Carried<'a> {
    fn get(&self, key: &str) -> Option<&'a str> {
        match key {
            labels::NODE_POOL => return Some(self.pool.name.as_str()),
            labels::REGISTERED | labels::INITIALIZED => return Some("true"),
            _ => {}
        }
        sold::label(self.instance, self.offering, key)
            .or_else(|| self.pool.requirements.get(key)?.single())
            .or_else(|| self.pool.labels.get(key).map(String::as_str))
    }
}

/// Something on offer: its room and the labels of its node.
struct Offer<'a> {
    labels: Carried<'a>,
    /// Label keys that types and offerings decide.
    decided: Rc<BTreeSet<&'a str>>,
    room: PricedRoom,
}

/// Everything on offer with the room it leaves. DaemonSets are subtracted only where they are
/// certain to run, so the room is never underestimated.
fn offers(input: &PlanInput) -> Vec<Offer<'_>> {
    let world = input.world.as_ref();
    let shapes = world.daemon_sets.values().filter_map(|set| world.shapes.get(&set.shape));
    let shapes: Vec<&PodShape> = shapes.map(AsRef::as_ref).collect();
    let mut all = Vec::new();
    for pool in world.pools.values().filter(|pool| pool.not_ready.is_none()) {
        let for_pods = |_: &&Catalogue| pool.replicas.is_none();
        let Some(catalogue) = input.catalogue_of(pool).filter(for_pods) else { continue };
        let decided = Rc::new(sold::decided(catalogue));
        let offered = pool.offered();
        if offered.is_contradictory() {
            continue;
        }
        for instance in catalogue.types.values() {
            for offering in instance.offerings.iter().filter(|offering| offering.available) {
                if !possible(pool, offering)
                    || !sold::meets((instance, offering), &decided, &offered)
                {
                    continue;
                }
                let labels = Carried { pool, instance, offering };
                let certain = |shape: &&&PodShape| runs(&labels, &offered, shape);
                let daemons = shapes.iter().filter(certain).map(|shape| &shape.requests);
                let requested = daemons.fold(Resources::default(), |sum, r| sum.plus(r));
                let allocatable = instance.allocatable();
                // A node without room for its DaemonSets is none that a pod may have.
                if !requested.fits_in(&allocatable) {
                    continue;
                }
                let room = allocatable.minus(&requested);
                let price_micro_usd_per_hour = cost::of(input, instance, offering);
                let room = PricedRoom { room, price_micro_usd_per_hour };
                all.push(Offer { labels, decided: Rc::clone(&decided), room });
            }
        }
    }
    all
}

/// True when the pool has a subnet there and the reservation, if it is one, is not used up.
fn possible(pool: &NodePool, offering: &Offering) -> bool {
    let zones = pool.zones.as_ref();
    let left = offering.reservation.as_ref().is_none_or(|reservation| reservation.remaining > 0);
    left && zones.is_none_or(|zones| zones.contains(&offering.zone))
}

/// True when the DaemonSet runs there whatever is made of the labels that the pool leaves open.
fn runs(labels: &Carried<'_>, offered: &Requirements, daemon: &PodShape) -> bool {
    let certain = |wanted: &Requirements| {
        wanted.iter().all(|(key, wanted)| match (labels.get(key), offered.get(key)) {
            (Some(value), _) => wanted.allows(Some(value)),
            (None, Some(open)) => wanted.covers(open),
            (None, None) => wanted.allows_absent(),
        })
    };
    let pool = labels.pool;
    let tolerates = |taint| daemon.tolerations.iter().any(|t| t.covers(taint));
    pool.taints.iter().all(|taint| !taint.repels() || tolerates(taint))
        && daemon.node_alternatives().iter().any(certain)
}
