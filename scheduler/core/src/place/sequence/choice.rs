//! Where the next pod of a sequence goes.
//!
//! Invariant: looks and changes nothing; a place that is returned breaks no rule with one pod more.

use crate::pack::problem::vector;
use crate::place::sequence::{Arrival, Draft, Sequence, Step};
use crate::topology::binding_rules;
use crate::world::topology::{Group, GroupRule};

/// What a node is to hold, and what it has to cost less than.
#[derive(Clone, Copy)]
struct Need<'w> {
    weight: &'w [i64],
    below: i64,
}

impl Sequence<'_, '_, '_, '_> {
    /// The place that adds least; existing nodes first, those on which the pods are wanted already
    /// before others.
    pub(super) fn step(&self, arrival: &Arrival) -> Option<Step> {
        let rules = &self.model.topology.node_rules;
        let first = rules.may_begin(arrival.shape, &self.occupied);
        let takes = |existing: &&usize| self.existing_takes(**existing, arrival, first);
        let wanted =
            |existing: &&usize| self.state.wants(**existing, arrival.shape) && takes(existing);
        let existing = arrival
            .existing_nodes
            .iter()
            .find(wanted)
            .or_else(|| arrival.existing_nodes.iter().find(takes));
        if let Some(existing) = existing {
            return Some(Step::ExistingNode(*existing));
        }
        let most = if self.mode.buy { i64::MAX } else { 1 };
        let mut best: Option<(i64, usize, usize)> = None;
        for (at, draft) in self.drafts.iter().enumerate() {
            if rules.allowance(arrival.shape, &draft.state, first) <= 0 {
                continue;
            }
            let least = best.map_or(most, |(least, ..)| least);
            if let Some(offer) = self.larger(draft, arrival, least) {
                best = Some((self.priced.cost(offer) - self.priced.cost(draft.offer), at, offer));
            }
        }
        let new = || self.mode.buy.then(|| self.cheapest_new(arrival, first)).flatten();
        let Some((extra, at, offer)) = best else { return new().map(Step::New) };
        let another = new().filter(|new| extra > self.priced.cost(*new) && !self.mode.grow);
        Some(another.map_or(Step::Join(at, offer), Step::New))
    }

    fn existing_takes(&self, at: usize, arrival: &Arrival, first: bool) -> bool {
        let existing = &self.model.existing_nodes[at];
        let domain = |key: &String| match existing.label(key) {
            // It may still turn out to be in one of several.
            None if existing.possible_labels.mentions(key) => false,
            domain => self.admits(arrival.shape, key, domain),
        };
        let rules = &self.model.topology.node_rules;
        vector::fits(&self.model.requests[arrival.shape], &self.state.rooms[at])
            && rules.allowance(arrival.shape, &self.state.states[at], first) > 0
            && arrival.keys.iter().all(domain)
    }

    /// What a draft would have to be with one pod more, for less than `limit` more; of equal costs
    /// in the emptiest domain.
    fn larger(&self, draft: &Draft, arrival: &Arrival, limit: i64) -> Option<usize> {
        let mut weight = draft.weight.clone();
        vector::add(&mut weight, &self.model.requests[arrival.shape], 1);
        let limit_set = self.priced.all[draft.offer].pool_offers;
        let mut left = self.limit_sets[limit_set].left.clone();
        vector::add(&mut left, self.priced.charge(draft.offer), 1);
        let limit = limit.saturating_add(self.priced.cost(draft.offer));
        let need = Need { weight: &weight, below: limit };
        self.cheapest(&draft.offers, arrival, need, |offer| {
            vector::fits(self.priced.charge(offer), &left)
        })
    }

    fn cheapest_new(&self, arrival: &Arrival, first: bool) -> Option<usize> {
        let rules = &self.model.topology.node_rules;
        let need = Need { weight: &self.model.requests[arrival.shape], below: i64::MAX };
        self.cheapest(&self.order, arrival, need, |offer| {
            let facts = &self.priced.facts[offer];
            let left = &self.limit_sets[self.priced.all[offer].pool_offers].left;
            facts.reservation.is_none()
                && vector::fits(self.priced.charge(offer), left)
                && rules.allowance(arrival.shape, &self.priced.starts[facts.start], first) > 0
        })
    }

    /// The cheapest that meets a need.
    fn cheapest(
        &self,
        offers: &[usize],
        arrival: &Arrival,
        need: Need<'_>,
        may: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let mut known: Vec<(&str, Option<&str>, bool)> = Vec::new();
        let mut best: Option<(i64, i64, usize)> = None;
        for offer in offers.iter().copied() {
            let cost = self.priced.cost(offer);
            if cost >= need.below || best.is_some_and(|(least, ..)| cost > least) {
                break;
            }
            if !arrival.admits[offer]
                || !vector::fits(need.weight, self.priced.room(offer))
                || !may(offer)
            {
                continue;
            }
            let mut admitted = |key: &'_ String| {
                let domain = self.priced.label(offer, key);
                let found = known.iter().find(|(k, d, _)| *k == key && *d == domain);
                if let Some((.., admits)) = found {
                    return *admits;
                }
                let admits = self.admits(arrival.shape, key, domain);
                let key = arrival.keys.iter().find(|known| *known == key);
                known.extend(key.map(|key| (key.as_str(), domain, admits)));
                admits
            };
            if arrival.keys.iter().all(&mut admitted) {
                let crowd = self.crowd(arrival, offer);
                if best.is_none_or(|(_, least, _)| crowd < least) {
                    best = Some((cost, crowd, offer));
                }
            }
        }
        best.map(|(.., offer)| offer)
    }

    /// How little the pods are wanted where an offer is: emptier domains of spreads are better, and
    /// those that grant preferences.
    fn crowd(&self, arrival: &Arrival, offer: usize) -> i64 {
        let groups = self.state.topology.groups_of(arrival.shape);
        let own = groups.filter(|group| group.spec.owners.contains(arrival.shape));
        let here = |group: &Group| {
            let here = self.priced.label(offer, &group.spec.key).map(|d| group.tally(d).members);
            let (here, weight) = (here.unwrap_or(0), group.spec.preference.unwrap_or(1));
            match (group.spec.rule, group.spec.preference) {
                (GroupRule::Affinity, Some(_)) => -weight * i64::from(here > 0),
                (GroupRule::Spread { .. }, _) | (GroupRule::AntiAffinity, Some(_)) => weight * here,
                (GroupRule::Affinity | GroupRule::AntiAffinity, None) => 0,
            }
        };
        own.map(here).sum()
    }

    /// Whether one pod more of the shape may be in a domain.
    fn admits(&self, shape: usize, key: &str, domain: Option<&str>) -> bool {
        let groups = self.state.topology.groups_of(shape);
        let mut rules =
            groups.filter(|g| g.spec.key == key && binding_rules::is_live(self.model, g));
        let nobody_yet =
            || self.state.topology.required_affinities(shape).all(Group::has_no_members);
        rules.all(|group| {
            group.admits(shape, domain, nobody_yet)
                && domain.is_none_or(|domain| group.bears(shape, domain))
        })
    }
}
