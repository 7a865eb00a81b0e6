//! Why a shape cannot be placed on a new node: each pool's first obstacle, with the closest miss.
//!
//! Invariant: the steps are those of placing, in the same order, so an explanation never names
//! something that placing would have allowed.

use std::collections::BTreeSet;

use crate::explain::near_miss::{contradiction, no_offering, no_type};
use crate::model::Model;
use crate::offers::market::FLAVOURS_MAX;
use crate::offers::priced::min_values;
use crate::offers::priced::{PricedOffers, Sizes, used};
use crate::pack::problem::vector;
use crate::place::state::PlanState;
use crate::reason::{Obstacle, Reason};
use crate::vocabulary::ids::InstanceTypeName;
use crate::vocabulary::requirements::Requirements;
use crate::vocabulary::resources::Resources;
use crate::vocabulary::taint::untolerated;

/// Explains for one plan.
pub(crate) struct Explainer<'g, 'm, 'a> {
    /// The world.
    pub(crate) model: &'m Model<'a>,
    /// What can be bought.
    pub(crate) priced: &'g PricedOffers<'m, 'a>,
    /// What is left.
    pub(crate) state: &'g PlanState,
}

/// A shape and where its placing ended.
#[derive(Clone, Copy)]
struct Case<'c> {
    shape: usize,
    last: &'c Obstacle,
}

impl Explainer<'_, '_, '_> {
    /// The tree for a shape whose placing ended at `last`.
    pub(crate) fn reason(&self, shape: usize, last: &Obstacle) -> Reason {
        let kind = self.model.shapes[shape];
        let subject = kind.subject();
        if let Some(why) = &kind.unschedulable {
            return Reason::leaf(subject, Obstacle::Declared { why: why.clone() });
        }
        let alternatives = kind.node_alternatives();
        if alternatives.is_empty() {
            return Reason::leaf(subject, contradiction(kind));
        }
        if self.model.market.pools.is_empty() {
            return Reason::leaf(subject, Obstacle::NoPool);
        }
        let mut causes: Vec<(u8, Reason)> = (0..self.model.market.pools.len())
            .map(|pool_offers| self.pool_reason(pool_offers, Case { shape, last }, &alternatives))
            .collect();
        // The pool that comes closest is the one to change first.
        causes.sort_by_key(|(depth, _)| std::cmp::Reverse(*depth));
        let causes = causes.into_iter().map(|(_, reason)| reason).collect();
        Reason { subject, obstacle: Obstacle::NoPoolAdmits, causes }
    }

    fn pool_reason(
        &self,
        pool_offers: usize,
        case: Case<'_>,
        alternatives: &[Requirements],
    ) -> (u8, Reason) {
        let pool = self.model.market.pools[pool_offers].pool;
        // The alternative that comes furthest is the one worth telling.
        let each = alternatives.iter().map(|wanted| self.obstacle(pool_offers, case, wanted));
        let furthest = each.max_by_key(|(depth, _)| *depth);
        let (depth, obstacle) = furthest.unwrap_or((0, Obstacle::NoPoolAdmits));
        (depth, Reason::leaf(format!("NodePool/{}", pool.name), obstacle))
    }

    /// How far one alternative comes and what stops it there.
    fn obstacle(&self, at: usize, case: Case<'_>, wanted: &Requirements) -> (u8, Obstacle) {
        let pool_offers = &self.model.market.pools[at];
        let kind = self.model.shapes[case.shape];
        if let Some(closed) = &pool_offers.closed {
            return (0, closed.clone());
        }
        if let Some(taint) = untolerated(&pool_offers.pool.taints, &kind.tolerations) {
            return (1, Obstacle::Taint { taint: taint.clone() });
        }
        if let Some(conflict) = wanted.conflict_with_offer(&pool_offers.requirements) {
            let (key, wanted, offered) = (conflict.key, conflict.wanted, conflict.offered);
            return (2, Obstacle::Requirement { key, wanted, offered });
        }
        if let Some((key, wanted)) = pool_offers.undefined(wanted) {
            let (key, wanted) = (key.to_owned(), wanted.clone());
            return (2, Obstacle::Requirement { key, wanted, offered: None });
        }
        let sizes = self.priced.sizes(at, wanted);
        if sizes.types.is_empty() {
            return (3, no_type(pool_offers, wanted));
        }
        if let Some(large) = larger_than_all(&sizes, &kind.requests) {
            return (4, large);
        }
        self.offer_obstacle(at, case, wanted, &sizes)
    }

    /// What stops a shape that some type of the pool would hold.
    fn offer_obstacle(
        &self,
        at: usize,
        Case { shape, last }: Case<'_>,
        wanted: &Requirements,
        sizes: &Sizes<'_>,
    ) -> (u8, Obstacle) {
        let answers = self.priced.ask_all(shape, std::slice::from_ref(wanted));
        let request = &self.model.requests[shape];
        let admitted = |offer: &usize| {
            self.priced.all[*offer].pool_offers == at && self.priced.admits(&answers, *offer)
        };
        let offers: Vec<usize> = (0..self.priced.all.len()).filter(admitted).collect();
        let holds = |offer: &&usize| vector::fits(request, &self.priced.facts[**offer].room);
        let holding: Vec<usize> = offers.iter().filter(holds).copied().collect();
        if holding.is_empty() {
            let full = self.model.market.pools[at].overflows && offers.is_empty();
            let none = if full {
                Obstacle::TooManyValues { most: FLAVOURS_MAX }
            } else {
                let requests = &self.model.shapes[shape].requests;
                let large = sizes.types.iter().filter(|(_, room)| requests.fits_in(room));
                let pool_offers = &self.model.market.pools[at];
                no_offering(pool_offers, wanted, sizes.types.len(), large.map(|(kind, _)| *kind))
            };
            return (5, self.daemons_in_the_way(&offers, shape).unwrap_or(none));
        }
        if let Some(inflexible) = min_values::obstacle(self.priced, at, holding.iter().copied()) {
            return (6, inflexible);
        }
        match self.limit(at, &holding).or_else(|| self.reservations(&holding)) {
            Some(limit) => (7, limit),
            None => (8, last.clone()),
        }
    }

    /// What stops a shape that only reservations would serve, when these are used up.
    fn reservations(&self, holding: &[usize]) -> Option<Obstacle> {
        let budgets = holding.iter().map(|offer| self.priced.facts[*offer].reservation);
        let budgets: BTreeSet<usize> = budgets.collect::<Option<_>>()?;
        let used_up = budgets.iter().all(|at| self.state.limit_sets[*at].left[0] <= 0);
        used_up.then_some(Obstacle::Reservations { reservations: budgets.len() })
    }

    fn daemons_in_the_way(&self, offers: &[usize], shape: usize) -> Option<Obstacle> {
        if !offers.is_empty() && offers.iter().all(|at| !self.priced.facts[*at].daemons_fit) {
            return self.daemons_too_large(offers);
        }
        let requests = &self.model.shapes[shape].requests;
        let names = self.model.dims.names();
        let largest = offers.iter().max_by_key(|offer| self.priced.facts[**offer].room.clone())?;
        let facts = &self.priced.facts[*largest];
        let request = &self.model.requests[shape];
        let dim = (0..names.len()).find(|d| request[*d] > 0 && request[*d] > facts.room[*d])?;
        let mut left = Resources::default();
        left.set(&names[dim], facts.room[dim]);
        let offer = &self.priced.all[*largest];
        let instance = self.model.market.pools[offer.pool_offers].types[offer.kind];
        Some(too_large(&names[dim], requests, &left, &instance.name))
    }

    /// What stops everybody on types that do not even hold their DaemonSets.
    fn daemons_too_large(&self, offers: &[usize]) -> Option<Obstacle> {
        let of = |at: &usize| {
            let offer = &self.priced.all[*at];
            let kind = self.model.market.pools[offer.pool_offers].types[offer.kind];
            (kind.allocatable(), kind)
        };
        let at = offers.iter().max_by_key(|at| {
            let (room, kind) = of(at);
            (room.memory_bytes, room.cpu_millis, &kind.name)
        })?;
        let (room, kind) = of(at);
        let each = self.priced.facts[*at].daemons.iter().map(|at| &self.model.shapes[*at].requests);
        let all = each.fold(Resources::default(), |sum, requests| sum.plus(requests));
        let resource = all.first_misfit(&room)?;
        Some(Obstacle::DaemonSets {
            resource: resource.to_owned(),
            requested: all.get(resource),
            largest: room.get(resource),
            instance_type: kind.name.clone(),
        })
    }

    fn limit(&self, at: usize, holding: &[usize]) -> Option<Obstacle> {
        let pool_offers = &self.model.market.pools[at];
        let left = &self.state.limit_sets[at].left;
        let fits = |offer: &usize| vector::fits(self.priced.charge(*offer), left);
        if holding.iter().any(fits) {
            return None;
        }
        let mut limits = pool_offers.pool.limits.iter().enumerate();
        limits.find_map(|(index, (name, limit))| {
            let needed = holding.iter().map(|o| self.priced.charge(*o)[index]).min()?;
            let used = limit.saturating_sub(left[index]).max(used(self.model, pool_offers, name));
            (needed > left[index]).then(|| Obstacle::Limit {
                resource: name.clone(),
                limit: *limit,
                used,
                needed,
            })
        })
    }
}

/// The resource that even the best type lacks, or else the one that is short on the largest type.
fn larger_than_all(sizes: &Sizes<'_>, requests: &Resources) -> Option<Obstacle> {
    let without_offer = requests.names().find(|name| sizes.most.get(name) < requests.get(name));
    if let Some(resource) = without_offer {
        let (best, room) = sizes.types.iter().max_by_key(|(_, room)| room.get(resource))?;
        return Some(too_large(resource, requests, room, &best.name));
    }
    if sizes.types.iter().any(|(_, room)| requests.first_misfit(room).is_none()) {
        return None;
    }
    let largest = sizes.types.iter().max_by_key(|(kind, room)| (room.cpu_millis, &kind.name))?;
    let (kind, room) = largest;
    Some(too_large(requests.first_misfit(room)?, requests, room, &kind.name))
}

fn too_large(
    resource: &str,
    requests: &Resources,
    room: &Resources,
    name: &InstanceTypeName,
) -> Obstacle {
    Obstacle::TooLarge {
        resource: resource.to_owned(),
        requested: requests.get(resource),
        largest: room.get(resource),
        instance_type: name.clone(),
    }
}
