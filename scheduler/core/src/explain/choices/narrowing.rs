//! From everything that is sold to the one offer that is bought, constraint by constraint.
//!
//! Invariant: the chosen offer passes every step, and each step counts what is left of the step
//! before; steps that leave everything are not told.

use std::collections::BTreeSet;

use crate::answer::{Candidate, NewNode};
use crate::explain::choices::{By, Narrowing, Purchase, Teller};
use crate::offers::candidates::candidate;
use crate::offers::market::written_labels;
use crate::pack::problem::vector::{self, Vector};
use crate::vocabulary::requirements::Requirements;
use crate::vocabulary::taint::untolerated;

/// Most of the next best that are told.
const NEXT_MAX: usize = 3;

/// Offers that are left, with what has been told so far.
struct Funnel {
    chosen: usize,
    left: Vec<usize>,
    told: Vec<Narrowing>,
}

impl Teller<'_, '_, '_> {
    /// How a node to launch was found; none when its offer is not on sale in this world.
    pub(super) fn purchase(&self, node: &NewNode) -> Option<Purchase> {
        let offers = self.offers_of(node);
        let chosen = *offers.first()?;
        let mut funnel = Funnel { chosen, left: Vec::new(), told: Vec::new() };
        self.market(&mut funnel);
        self.alone(&mut funnel, &offers);
        let for_one = funnel.left.clone();
        let lonely = node.pods.len() <= 1;
        if !lonely {
            self.together(&mut funnel, node, &offers);
        }
        let cost = self.priced.cost(chosen);
        self.narrow(&mut funnel, By::Rest, |offer| self.priced.cost(offer) >= cost);
        let chosen = self.candidate(chosen);
        Some(Purchase {
            pool: node.pool.clone(),
            next: self.next(&chosen, &funnel.left),
            alone: self.sorted(&for_one).into_iter().next().filter(|_| !lonely),
            narrowings: funnel.told,
            chosen,
        })
    }

    /// The offers of a node's candidates, in their order.
    fn offers_of(&self, node: &NewNode) -> Vec<usize> {
        let all = self.priced.all.iter().enumerate();
        let same = all.filter(|(_, offer)| {
            let pool_offers = &self.model.market.pools[offer.pool_offers];
            pool_offers.pool.name == node.pool
                && written_labels(&pool_offers.flavours[offer.flavour]) == node.labels
        });
        let own: Vec<usize> = same.map(|(at, _)| at).collect();
        let find = |wanted: &Candidate| {
            own.iter().copied().find(|offer| self.candidate(*offer) == *wanted)
        };
        node.candidates.iter().filter_map(find).collect()
    }

    fn candidate(&self, offer: usize) -> Candidate {
        let offer = &self.priced.all[offer];
        let instance = self.model.market.pools[offer.pool_offers].types[offer.kind];
        candidate(&self.model.input.objective, instance, offer.offering)
    }

    /// What is sold, and what pools allow of it.
    fn market(&self, funnel: &mut Funnel) {
        let mut sold = BTreeSet::new();
        for kind in self.model.market.pools.iter().flat_map(|pool_offers| &pool_offers.all_types) {
            let available = kind.offerings.iter().filter(|offering| offering.available);
            sold.extend(available.map(|o| (&kind.name, &o.zone, o.capacity_type)));
        }
        let types: BTreeSet<_> = sold.iter().map(|(name, ..)| name).collect();
        let told =
            Narrowing { by: By::Market, types: count(types.len()), offers: count(sold.len()) };
        funnel.told.push(told);
        let open =
            self.model.market.pools.iter().filter(|pool_offers| pool_offers.closed.is_none());
        funnel.left = (0..self.priced.all.len()).collect();
        self.tell(funnel, By::Pools { pools: open.count() });
    }

    /// What one pod wants of a node.
    fn alone(&self, funnel: &mut Funnel, offers: &[usize]) {
        let kind = self.model.shapes[self.shape];
        self.narrow(funnel, By::Taints, |offer| {
            let pool = self.model.market.pools[self.priced.all[offer].pool_offers].pool;
            untolerated(&pool.taints, &kind.tolerations).is_none()
        });
        let wanted = self.alternative(funnel.chosen);
        for (key, requirement) in wanted.iter() {
            let only: Requirements = [(key.to_owned(), requirement.clone())].into_iter().collect();
            let by = By::Requirement { key: key.to_owned(), wanted: requirement.clone() };
            self.narrow(funnel, by, |offer| self.meets(&only, offer));
        }
        let request = &self.model.requests[self.shape];
        let size = By::Size { requests: kind.requests.clone() };
        self.narrow(funnel, size, |offer| vector::fits(request, self.priced.room(offer)));
        self.narrow(funnel, By::DaemonSets, |offer| {
            let start = &self.priced.starts[self.priced.facts[offer].start];
            self.model.topology.node_rules.allowance(self.shape, start, true) > 0
        });
        self.preferences(funnel);
        for (key, domain) in self.domains(self.shape, offers) {
            let by = By::Topology { key: key.clone(), domain: domain.clone() };
            self.narrow(funnel, by, |offer| self.priced.label(offer, &key) == Some(&*domain));
        }
        let pool_offers =
            |offer: usize| &self.model.market.pools[self.priced.all[offer].pool_offers];
        let (weight, tier) =
            (pool_offers(funnel.chosen).pool.weight, pool_offers(funnel.chosen).tier);
        self.narrow(funnel, By::Weight { weight }, |offer| pool_offers(offer).tier == tier);
    }

    /// What the pod would like of a node, as far as the chosen offer grants it.
    fn preferences(&self, funnel: &mut Funnel) {
        let kind = self.model.shapes[self.shape];
        let mut preferred: Vec<_> = kind.preferred_node_terms.iter().collect();
        preferred.sort_by_key(|term| std::cmp::Reverse(term.weight));
        for term in preferred.into_iter().map(|term| &term.requirements) {
            if self.meets(term, funnel.chosen) {
                let by = By::Preference { wanted: term.clone() };
                self.narrow(funnel, by, |offer| self.meets(term, offer));
            }
        }
    }

    /// What all pods on the node want of it.
    fn together(&self, funnel: &mut Funnel, node: &NewNode, offers: &[usize]) {
        let load = self.model.load(node);
        let others: Vec<usize> = load.keys().copied().filter(|s| *s != self.shape).collect();
        let answers: Vec<_> = others
            .iter()
            .map(|shape| self.priced.ask_all(*shape, &self.model.alternatives[*shape]))
            .collect();
        let domains: Vec<_> =
            others.iter().flat_map(|shape| self.domains(*shape, offers)).collect();
        let weight = self.weight(node, funnel.chosen);
        let preferred =
            others.iter().flat_map(|shape| &self.model.shapes[*shape].preferred_node_terms);
        let granted: Vec<_> =
            preferred.filter(|term| self.meets(&term.requirements, funnel.chosen)).collect();
        self.narrow(funnel, By::Neighbour { pods: node.pods.len() }, |offer| {
            vector::fits(&weight, self.priced.room(offer))
                && answers.iter().all(|answers| self.priced.admits(answers, offer))
                && domains.iter().all(|(key, domain)| self.priced.label(offer, key) == Some(domain))
                && granted.iter().all(|term| self.meets(&term.requirements, offer))
        });
    }

    /// Requests of all pods on a node, room kept for buffers included, DaemonSets not.
    fn weight(&self, node: &NewNode, chosen: usize) -> Vector {
        let mut weight = self.model.dims.vector(&node.requests);
        for daemon in self.priced.facts[chosen].daemons.iter() {
            vector::add(&mut weight, &self.model.requests[*daemon], -1);
        }
        weight
    }

    /// The pod's alternative that admits the chosen offer.
    fn alternative(&self, chosen: usize) -> Requirements {
        let all = &self.model.alternatives[self.shape];
        let admits = |wanted: &&Requirements| {
            let answers = self.priced.ask_all(self.shape, std::slice::from_ref(*wanted));
            self.priced.admits(&answers, chosen)
        };
        all.iter().find(admits).cloned().unwrap_or_default()
    }

    /// True when the node of an offer meets requirements, taints apart.
    fn meets(&self, wanted: &Requirements, offer: usize) -> bool {
        let at = &self.priced.all[offer];
        let pool_offers = &self.model.market.pools[at.pool_offers];
        pool_offers.type_admits(pool_offers.types[at.kind], wanted)
            && crate::offers::market::offering_admits(at.offering, wanted)
            && pool_offers.flavour_admits(at.flavour, wanted)
    }

    /// Topology keys that bear on a shape, by its own rules or by those of others, of which all
    /// candidates have one value, with that value.
    fn domains(&self, shape: usize, offers: &[usize]) -> Vec<(String, String)> {
        let groups = self.model.topology.groups_of(shape);
        let keys: BTreeSet<&str> = groups.map(|group| group.spec.key.as_str()).collect();
        let one = keys.into_iter().filter_map(|key| {
            let values: BTreeSet<_> = offers.iter().map(|at| self.priced.label(*at, key)).collect();
            let single = values.first().copied().flatten().filter(|_| values.len() == 1);
            single.map(|domain| (key.to_owned(), domain.to_owned()))
        });
        one.collect()
    }

    fn narrow(&self, funnel: &mut Funnel, by: By, keeps: impl Fn(usize) -> bool) {
        let (before, chosen) = (funnel.left.len(), funnel.chosen);
        funnel.left.retain(|offer| *offer == chosen || keeps(*offer));
        if funnel.left.len() < before {
            self.tell(funnel, by);
        }
    }

    /// Says what is left, unless that is as much as before: offers of several pools may be the
    /// same.
    fn tell(&self, funnel: &mut Funnel, by: By) {
        let at = |offer: &usize| {
            let offer = &self.priced.all[*offer];
            let kind = &self.model.market.pools[offer.pool_offers].types[offer.kind].name;
            (kind, &offer.offering.zone, offer.offering.capacity_type)
        };
        let offers: BTreeSet<_> = funnel.left.iter().map(at).collect();
        let types: BTreeSet<_> = offers.iter().map(|(kind, ..)| kind).collect();
        let told = Narrowing { by, types: count(types.len()), offers: count(offers.len()) };
        let last = funnel.told.last().map(|last| (last.types, last.offers));
        if last != Some((told.types, told.offers)) {
            funnel.told.push(told);
        }
    }

    /// Offers as candidates, cheapest first, each once.
    fn sorted(&self, offers: &[usize]) -> Vec<Candidate> {
        let all: BTreeSet<Candidate> = offers.iter().map(|at| self.candidate(*at)).collect();
        all.into_iter().collect()
    }

    /// The next best after the chosen one: the first whatever it is, then other types.
    fn next(&self, chosen: &Candidate, offers: &[usize]) -> Vec<Candidate> {
        let mut next: Vec<Candidate> = Vec::new();
        let kind = |one: &Candidate| (one.instance_type.clone(), one.capacity_type);
        for other in self.sorted(offers) {
            let known = next.iter().chain([chosen]).any(|one| kind(one) == kind(&other));
            if other != *chosen && next.len() < NEXT_MAX && (next.is_empty() || !known) {
                next.push(other);
            }
        }
        next
    }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
