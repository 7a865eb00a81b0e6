//! Pools with replicas: as many nodes as they ask for, spread over zones.
//!
//! Invariant: such a pool has its replicas, and one more for each node that must be replaced as far
//! as its budgets allow, so that pods have somewhere to go before the old node does. It never
//! exceeds its limits.

use std::collections::{BTreeMap, BTreeSet};

use crate::answer::assemble::node_of;
use crate::answer::{Candidate as Offered, Disruption, NewNode, Target};
use crate::disrupt::Disruptor;
use crate::disrupt::candidate::Candidate;
use crate::model::existing::ExistingNode;
use crate::offers::candidates::candidate;
use crate::offers::choice::Choices;
use crate::offers::market::{PoolOffers, owned_labels};
use crate::offers::priced::{self, min_values};
use crate::offers::substitutes::COST_FACTOR_MAX;
use crate::pack::problem::vector::{self, Vector};
use crate::planted;
use crate::question::MinValuesPolicy;
use crate::reason::Obstacle;
use crate::vocabulary::catalogue::{InstanceType, Offering, sold};
use crate::vocabulary::ids::Zone;
use crate::vocabulary::labels::{Labels, RESERVATION_ID, ZONE};
use crate::vocabulary::pool::{DisruptionReason, NodePool, REPLICAS_MAX};
use crate::vocabulary::resources::Resources;

/// Most replicas that one plan adds, of all pools.
const ADDED_MAX: i64 = 1_000;

impl<'a> Disruptor<'_, '_, '_, 'a> {
    /// Takes out of service what pools have beyond their replicas: what is not launched yet first,
    /// then what is empty, then what disturbs least. Asked for by the pool's owner, so no budget is
    /// looked at.
    pub(super) fn trim_replicas(&mut self, candidates: &[Candidate<'a>]) {
        for (pool, replicas) in self.pools_with_replicas() {
            let wanted = replicas.saturating_add(self.surge(pool, candidates));
            let mut staying = self.staying(pool);
            let excess = staying.len().saturating_sub(usize::try_from(wanted).unwrap_or(0));
            if excess == 0 {
                continue;
            }
            let known =
                candidates.iter().map(|candidate| (candidate.existing, candidate)).collect();
            staying.sort_by(|a, b| {
                let (a, b) = (self.order(*a, &known), self.order(*b, &known));
                a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2))
            });
            staying.retain(|existing| self.context.state.added[*existing].is_empty());
            for existing in staying.into_iter().take(excess) {
                self.drop_existing(existing);
            }
        }
    }

    /// Launches what pools lack of their replicas, each node in the zone that has fewest.
    pub(super) fn add_replicas(&mut self, candidates: &[Candidate<'a>]) {
        let mut turn = ADDED_MAX;
        for (pool, replicas) in self.pools_with_replicas() {
            let wanted = replicas.saturating_add(self.surge(pool, candidates));
            let staying = self.staying(pool);
            let model = self.context.model;
            // An instance whose claim cannot be read is there; one that leaks is gone before long.
            let unclaimed = model.input.unclaimed_of(&pool.name);
            let there = i64::try_from(staying.len()).unwrap_or(i64::MAX).saturating_add(unclaimed);
            let missing = wanted.saturating_sub(there);
            // Those beyond come with the next plans, of which each finds more nodes there.
            let missing = if planted::is("S27") { missing } else { missing.min(turn) };
            let Some(pool_offers) =
                model.market.pools.iter().find(|pool_offers| pool_offers.pool.name == pool.name)
            else {
                continue;
            };
            let mut budget = priced::limit(model, pool_offers);
            let mut zones = self.zones(pool_offers);
            for existing in staying {
                let zone =
                    model.existing_nodes[existing].label(ZONE).and_then(|zone| zones.get_mut(zone));
                zone.into_iter().for_each(|zone| zone.nodes += 1);
            }
            for _ in 0..missing {
                let within = zones.values_mut().filter(|it| {
                    vector::fits(&it.charge, &budget.left)
                        && self.has_reservations(pool_offers, &it.node)
                });
                let next = within.min_by_key(|zone| (zone.nodes, zone.cost()));
                let Some(zone) = next else { break };
                zone.nodes += 1;
                vector::add(&mut budget.left, &zone.charge, -1);
                turn -= 1;
                self.plan.launches.push(zone.node.clone());
            }
        }
    }

    /// True when something is left of each reservation that the node would name.
    fn has_reservations(&self, pool_offers: &PoolOffers<'_>, node: &NewNode) -> bool {
        let Some(wanted) = node.requirements.get(RESERVATION_ID) else { return true };
        let offerings = pool_offers.types.iter().flat_map(|kind| &kind.offerings);
        let named = offerings.filter_map(|offering| offering.reservation.as_ref());
        let mut named = named.filter(|it| wanted.allows(Some(it.id.as_str())));
        named.all(|reservation| {
            let names = |node: &&NewNode| {
                let wanted = node.requirements.get(RESERVATION_ID);
                wanted.is_some_and(|ids| ids.allows(Some(reservation.id.as_str())))
            };
            let drawn = self.plan.launches.iter().filter(names).count();
            let drawn = i64::try_from(drawn).unwrap_or(i64::MAX);
            priced::held(self.context.model, &reservation.id) + drawn < reservation.remaining
        })
    }

    fn pools_with_replicas(&self) -> Vec<(&'a NodePool, i64)> {
        let pools = self.context.model.input.world.pools.values();
        let kept = |replicas: &i64| *replicas <= REPLICAS_MAX || planted::is("S27");
        let named = pools.filter_map(|pool| Some((pool.as_ref(), pool.replicas.filter(kept)?)));
        named.collect()
    }

    /// Existing nodes of the pool that neither are on their way out nor are sent there by this
    /// plan, in order.
    fn staying(&self, pool: &NodePool) -> Vec<usize> {
        let gone: BTreeSet<_> = self.plan.disruptions.iter().flat_map(|d| &d.claims).collect();
        let stays = |existing: &ExistingNode<'_>| {
            let claim = existing.claim.as_ref().filter(|claim| claim.pool == pool.name);
            !existing.leaving && claim.is_some_and(|claim| !gone.contains(&claim.name))
        };
        let existing_nodes = self.context.model.existing_nodes.iter().enumerate();
        existing_nodes.filter(|(_, existing)| stays(existing)).map(|(at, _)| at).collect()
    }

    /// Nodes of the pool that must be replaced and may be, as many at once as its budgets allow.
    fn surge(&self, pool: &NodePool, candidates: &[Candidate<'a>]) -> i64 {
        let staying = self.staying(pool);
        let must_go = |candidate: &&Candidate<'a>| {
            candidate.must_go.is_some_and(|reason| !candidate.is_blocked(reason))
                && staying.binary_search(&candidate.existing).is_ok()
        };
        let count = candidates.iter().filter(must_go).count();
        let total = i64::try_from(staying.len()).unwrap_or(i64::MAX);
        let allowed = pool.disruption.allowed(DisruptionReason::Drifted, total);
        let canaries = pool.canary.map_or(i64::MAX, |canary| canary.nodes);
        i64::try_from(count).unwrap_or(i64::MAX).min(allowed.unwrap_or(i64::MAX)).min(canaries)
    }

    /// What goes first: not launched, empty, not held by do-not-disrupt, to be replaced anyway;
    /// then by what moving its pods costs, then by name.
    fn order(
        &self,
        existing: usize,
        known: &BTreeMap<usize, &Candidate<'a>>,
    ) -> ([bool; 4], f64, Target) {
        let known = known.get(&existing);
        let here = &self.context.model.existing_nodes[existing];
        let launched = here.claim.as_ref().is_some_and(|claim| !claim.provider_id.is_empty());
        let full = known.is_some_and(|candidate| !candidate.pods.is_empty());
        let refused = known.is_some_and(|candidate| candidate.refused);
        let lasting = known.is_some_and(|candidate| candidate.must_go.is_none());
        let cost = known.map_or(0.0, |candidate| candidate.move_cost);
        ([launched, full, refused, lasting], cost, here.target.clone())
    }

    fn drop_existing(&mut self, at: usize) {
        self.context.state.open[at] = false;
        let existing = &self.context.model.existing_nodes[at];
        let Some(claim) = &existing.claim else { return };
        self.plan.disruptions.push(Disruption {
            claims: vec![claim.name.clone()],
            nodes: existing.node.iter().map(|node| node.name.clone()).collect(),
            reason: DisruptionReason::Excess,
            replacements: Vec::new(),
            moves: Vec::new(),
            saving_micro_usd_per_hour: existing.price.unwrap_or(0),
        });
    }

    /// The node that the pool would launch in each zone that has something on offer.
    fn zones(&self, pool_offers: &PoolOffers<'_>) -> BTreeMap<Zone, InZone> {
        let mut offers: BTreeMap<Zone, Vec<Replica<'_>>> = BTreeMap::new();
        if pool_offers.closed != Some(Obstacle::FixedReplicas) {
            return BTreeMap::new();
        }
        let objective = &self.context.model.input.objective;
        for instance in &pool_offers.types {
            for offering in
                instance.offerings.iter().filter(|o| o.available && pool_offers.sells(o))
            {
                let daemons = self.daemons(pool_offers, instance, offering);
                if daemons.fits_in(&instance.allocatable()) {
                    let candidate = candidate(objective, instance, offering);
                    let replica = Replica { candidate, instance, offering, daemons };
                    offers.entry(offering.zone.clone()).or_default().push(replica);
                }
            }
        }
        let strict = self.context.model.input.min_values == MinValuesPolicy::Strict;
        let in_zone = |(zone, offers)| Some((zone, InZone::of(pool_offers, offers, strict)?));
        offers.into_iter().filter_map(in_zone).collect()
    }

    /// What DaemonSets request on a node of this type and offering.
    fn daemons(
        &self,
        pool_offers: &PoolOffers<'_>,
        instance: &InstanceType,
        offering: &Offering,
    ) -> Resources {
        let mut labels: Labels = pool_offers.pool.labels.clone();
        labels.extend(pool_offers.flavours[0].clone());
        labels.extend(owned_labels(instance, offering));
        let model = self.context.model;
        let running = model.daemons_on(&labels, &pool_offers.pool.taints);
        running.fold(Resources::default(), |sum, at| sum.plus(&model.shapes[at].requests))
    }
}

/// One zone of a pool.
struct InZone {
    /// What would be launched there.
    node: NewNode,
    /// The most that it draws on the limits of its pool.
    charge: Vector,
    /// Nodes that are there.
    nodes: i64,
}

impl InZone {
    fn of(pool_offers: &PoolOffers<'_>, offers: Vec<Replica<'_>>, strict: bool) -> Option<Self> {
        let node = node(pool_offers, offers, strict)?;
        let may_be = |kind: &&&InstanceType| {
            node.candidates.iter().any(|candidate| candidate.instance_type == kind.name)
        };
        let each =
            pool_offers.types.iter().filter(may_be).map(|kind| priced::charge(pool_offers, kind));
        let charge =
            each.reduce(|most, each| most.iter().zip(each).map(|(a, b)| *a.max(&b)).collect());
        Some(Self { charge: charge.unwrap_or_default(), node, nodes: 0 })
    }

    fn cost(&self) -> i64 {
        self.node.cost()
    }
}

/// Something that a replica may become.
struct Replica<'a> {
    candidate: Offered,
    instance: &'a InstanceType,
    offering: &'a Offering,
    /// What DaemonSets request there.
    daemons: Resources,
}

/// A replica among what one zone offers: that of least cost, or what costs not much more. A pool
/// that wants choice keeps all of it.
fn node(
    pool_offers: &PoolOffers<'_>,
    mut offers: Vec<Replica<'_>>,
    strict: bool,
) -> Option<NewNode> {
    offers.sort_by(|a, b| a.candidate.cmp(&b.candidate));
    let least = offers.first()?.candidate.cost_micro_usd_per_hour;
    let most = least.saturating_mul(COST_FACTOR_MAX);
    let choice =
        pool_offers.pool.requirements.iter().any(|(_, wanted)| wanted.min_values.is_some());
    offers.retain(|replica| choice || replica.candidate.cost_micro_usd_per_hour <= most);
    // Every candidate has to carry what is requested: what runs on the planned one.
    let requests = offers.first()?.daemons.clone();
    offers.retain(|replica| requests.fits_in(&replica.instance.allocatable()));
    let all: Vec<usize> = (0..offers.len()).collect();
    let label = |at: usize, key: &str| sold::label(offers[at].instance, offers[at].offering, key);
    let demands: Vec<_> = min_values::demands(&pool_offers.requirements).collect();
    let (chosen, met) = Choices { all: &all, label, demands: &demands }.choose(0, |_| true);
    if strict && !met && !planted::is("S16f") {
        return None;
    }
    let candidates = chosen.into_iter().map(|at| offers[at].candidate.clone());
    let node = node_of(pool_offers, 0, candidates.collect(), requests)?;
    Some(NewNode { standing: true, ..node })
}
