//! Where the next pod of a sequence goes.
//!
//! Invariant: looks and changes nothing; a place that is returned breaks no rule with one pod more.

use crate::pack::problem::vector;
use crate::place::sequence::{Draft, Guest, Sequence, Step};
use crate::topology::binding_rules;
use crate::world::topology::{Group, GroupRule};

impl Sequence<'_, '_, '_, '_> {
    /// The place that adds least; hosts first, those on which the pods are wanted already before others.
    pub(super) fn step(&self, guest: &Guest) -> Option<Step> {
        let rules = &self.model.topology.node_rules;
        let first = rules.may_begin(guest.shape, &self.begun);
        let takes = |host: &&usize| self.host_takes(**host, guest, first);
        let wanted = |host: &&usize| self.scene.wants(**host, guest.shape) && takes(host);
        let host = guest.hosts.iter().find(wanted).or_else(|| guest.hosts.iter().find(takes));
        if let Some(host) = host {
            return Some(Step::Host(*host));
        }
        let most = if self.manner.buy { i64::MAX } else { 1 };
        let mut best: Option<(i64, usize, usize)> = None;
        for (at, draft) in self.drafts.iter().enumerate() {
            if rules.allowance(guest.shape, &draft.state, first) <= 0 {
                continue;
            }
            let least = best.map_or(most, |(least, ..)| least);
            if let Some(offer) = self.larger(draft, guest, least) {
                best = Some((self.goods.cost(offer) - self.goods.cost(draft.offer), at, offer));
            }
        }
        let new = || self.manner.buy.then(|| self.cheapest_new(guest, first)).flatten();
        let Some((extra, at, offer)) = best else { return new().map(Step::New) };
        let another = new().filter(|new| extra > self.goods.cost(*new) && !self.manner.grow);
        Some(another.map_or(Step::Join(at, offer), Step::New))
    }

    fn host_takes(&self, at: usize, guest: &Guest, first: bool) -> bool {
        let host = &self.model.hosts[at];
        let domain = |key: &String| match host.label(key) {
            // It may still turn out to be in one of several.
            None if host.outlook.mentions(key) => false,
            domain => self.admits(guest.shape, key, domain),
        };
        let rules = &self.model.topology.node_rules;
        vector::fits(&self.model.requests[guest.shape], &self.scene.rooms[at])
            && rules.allowance(guest.shape, &self.scene.states[at], first) > 0
            && guest.keys.iter().all(domain)
    }

    /// What a draft would have to be with one pod more, for less than `limit` more; of equal costs in the
    /// emptiest domain.
    fn larger(&self, draft: &Draft, guest: &Guest, limit: i64) -> Option<usize> {
        let mut weight = draft.weight.clone();
        vector::add(&mut weight, &self.model.requests[guest.shape], 1);
        let budget = self.goods.offers[draft.offer].stall;
        let mut left = self.budgets[budget].left.clone();
        vector::add(&mut left, self.goods.charge(draft.offer), 1);
        let limit = limit.saturating_add(self.goods.cost(draft.offer));
        self.cheapest(&draft.offers, guest, (&weight, limit), |offer| {
            vector::fits(self.goods.charge(offer), &left)
        })
    }

    fn cheapest_new(&self, guest: &Guest, first: bool) -> Option<usize> {
        let rules = &self.model.topology.node_rules;
        let request = (self.model.requests[guest.shape].as_slice(), i64::MAX);
        self.cheapest(&self.order, guest, request, |offer| {
            let facts = &self.goods.facts[offer];
            let left = &self.budgets[self.goods.offers[offer].stall].left;
            facts.reservation.is_none()
                && vector::fits(self.goods.charge(offer), left)
                && rules.allowance(guest.shape, &self.goods.starts[facts.start], first) > 0
        })
    }

    /// The cheapest that holds a weight, for less than a limit.
    fn cheapest(
        &self,
        offers: &[usize],
        guest: &Guest,
        (weight, limit): (&[i64], i64),
        may: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let mut known: Vec<(&str, Option<&str>, bool)> = Vec::new();
        let mut best: Option<(i64, i64, usize)> = None;
        for offer in offers.iter().copied() {
            let cost = self.goods.cost(offer);
            if cost >= limit || best.is_some_and(|(least, ..)| cost > least) {
                break;
            }
            if !guest.admits[offer] || !vector::fits(weight, self.goods.room(offer)) || !may(offer)
            {
                continue;
            }
            let mut admitted = |key: &'_ String| {
                let domain = self.goods.label(offer, key);
                let found = known.iter().find(|(k, d, _)| *k == key && *d == domain);
                if let Some((.., admits)) = found {
                    return *admits;
                }
                let admits = self.admits(guest.shape, key, domain);
                let key = guest.keys.iter().find(|known| *known == key);
                known.extend(key.map(|key| (key.as_str(), domain, admits)));
                admits
            };
            if guest.keys.iter().all(&mut admitted) {
                let crowd = self.crowd(guest, offer);
                if best.is_none_or(|(_, least, _)| crowd < least) {
                    best = Some((cost, crowd, offer));
                }
            }
        }
        best.map(|(.., offer)| offer)
    }

    /// How little the pods are wanted where an offer is: emptier domains of spreads are better, and those
    /// that grant wishes.
    fn crowd(&self, guest: &Guest, offer: usize) -> i64 {
        let groups = self.scene.topology.groups_of(guest.shape);
        let own = groups.filter(|group| group.spec.owners.contains(guest.shape));
        let here = |group: &Group| {
            let here = self.goods.label(offer, &group.spec.key).map(|d| group.tally(d).members);
            let (here, weight) = (here.unwrap_or(0), group.spec.wish.unwrap_or(1));
            match (group.spec.rule, group.spec.wish) {
                (GroupRule::Affinity, Some(_)) => -weight * i64::from(here > 0),
                (GroupRule::Spread { .. }, _) | (GroupRule::AntiAffinity, Some(_)) => weight * here,
                (GroupRule::Affinity | GroupRule::AntiAffinity, None) => 0,
            }
        };
        own.map(here).sum()
    }

    /// Whether one pod more of the shape may be in a domain.
    fn admits(&self, shape: usize, key: &str, domain: Option<&str>) -> bool {
        let groups = self.scene.topology.groups_of(shape);
        let mut rules =
            groups.filter(|g| g.spec.key == key && binding_rules::is_live(self.model, g));
        let unbegun = || self.scene.topology.companies(shape).all(Group::is_unbegun);
        rules.all(|group| {
            group.admits(shape, domain, unbegun)
                && domain.is_none_or(|domain| group.bears(shape, domain))
        })
    }
}
