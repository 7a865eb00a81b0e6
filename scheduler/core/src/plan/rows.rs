//! Rows: pods of one shape with one set of requirements, after topology has had its say.
//!
//! Invariant: every rule over wide domains is settled here, pod by pod, by narrowing requirements to a
//! domain; what is packed afterwards can no longer break one. Pods that no domain may take are refused
//! with the rule that stood in the way.

use std::collections::BTreeMap;

use super::goods::Goods;
use super::model::Model;
use crate::pack::vector;
use crate::reason::Obstacle;
use crate::vocabulary::requirement::Requirement;
use crate::vocabulary::requirements::Requirements;
use crate::world::shape::PodShape;
use crate::world::topology::{Group, GroupRule, Topology};

/// Pods of one shape that may go to the same places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowSpec {
    /// Their shape.
    pub(crate) shape: usize,
    /// Where they may go.
    pub(crate) alternatives: Vec<Requirements>,
    /// How many.
    pub(crate) count: i64,
}

/// Pods that a rule leaves no domain for.
#[derive(Clone, Debug)]
pub(crate) struct Refused {
    /// Their shape.
    pub(crate) shape: usize,
    /// How many.
    pub(crate) count: i64,
    /// The rule.
    pub(crate) obstacle: Obstacle,
}

/// Settles topology for a number of pods of each shape and counts them in `topology`.
pub(crate) struct Allotter<'g, 'm, 'a> {
    /// The world.
    pub(crate) model: &'m Model<'a>,
    /// What can be bought.
    pub(crate) goods: &'g Goods<'m, 'a>,
    /// Rules with current counts.
    pub(crate) topology: &'g mut Topology,
    /// Pods to place, by shape.
    pub(crate) wanted: &'g [i64],
    /// Whether preferred node affinity is tried.
    pub(crate) prefer: bool,
}

impl Allotter<'_, '_, '_> {
    /// All rows, and what is refused.
    pub(crate) fn allot(&mut self) -> (Vec<RowSpec>, Vec<Refused>) {
        let (mut rows, mut refused) = (Vec::new(), Vec::new());
        let (followers, leaders): (Vec<usize>, Vec<usize>) =
            (0..self.wanted.len()).filter(|s| self.wanted[*s] > 0).partition(|s| self.follows(*s));
        for shape in leaders {
            self.allot_shape(shape, &mut rows, &mut refused);
        }
        self.allot_followers(followers, &mut rows, &mut refused);
        (rows, refused)
    }

    /// Shapes that follow others wait until those have a domain; when a round settles none, the
    /// first of them begins by itself or is refused.
    fn allot_followers(
        &mut self,
        mut waiting: Vec<usize>,
        rows: &mut Vec<RowSpec>,
        refused: &mut Vec<Refused>,
    ) {
        while !waiting.is_empty() {
            let ready = waiting.iter().position(|shape| self.has_leader(*shape)).unwrap_or(0);
            let shape = waiting.remove(ready);
            self.allot_shape(shape, rows, refused);
        }
    }

    fn follows(&self, shape: usize) -> bool {
        self.groups(shape).any(|group| group.rule == GroupRule::Affinity && group.owners[shape])
    }

    fn has_leader(&self, shape: usize) -> bool {
        self.groups(shape).all(|group| {
            group.rule != GroupRule::Affinity || !group.owners[shape] || !group.is_unbegun()
        })
    }

    fn groups(&self, shape: usize) -> impl Iterator<Item = &Group> {
        self.topology.groups_of(shape).iter().map(|index| &self.topology.groups[*index])
    }

    fn allot_shape(&mut self, shape: usize, rows: &mut Vec<RowSpec>, refused: &mut Vec<Refused>) {
        let plain = self.model.shapes[shape].node_alternatives();
        let alternatives = if self.prefer { self.preferred(shape, plain) } else { plain };
        let mut pieces = vec![RowSpec { shape, alternatives, count: self.wanted[shape] }];
        let mut keys: Vec<String> = Vec::new();
        for group in self.groups(shape).filter(|group| self.is_live(group)) {
            if !keys.contains(&group.key) {
                keys.push(group.key.clone());
            }
        }
        for key in &keys {
            pieces = pieces.into_iter().flat_map(|piece| self.split(piece, key, refused)).collect();
        }
        for piece in &pieces {
            self.count(piece, &keys);
        }
        rows.extend(pieces.into_iter().filter(|piece| piece.count > 0));
    }

    /// A group matters to new pods when one of its owners is or will be somewhere.
    fn is_live(&self, group: &Group) -> bool {
        let owners =
            group.owners.iter().zip(self.wanted).any(|(owner, count)| *owner && *count > 0);
        owners || group.tallies.values().any(|tally| tally.owners > 0)
    }

    /// Adds preferred terms, heaviest first, as long as something can still be bought for them.
    fn preferred(&self, shape: usize, plain: Vec<Requirements>) -> Vec<Requirements> {
        let kind: &PodShape = self.model.shapes[shape];
        let mut terms: Vec<_> = kind.preferred_node_terms.iter().collect();
        terms.sort_by_key(|term| std::cmp::Reverse(term.weight));
        let mut wanted = plain;
        for term in terms {
            let narrowed: Vec<Requirements> = wanted
                .iter()
                .map(|alternative| alternative.and(&term.requirements))
                .filter(|alternative| !alternative.is_contradictory())
                .collect();
            if self.can_be_met(shape, &narrowed) {
                wanted = narrowed;
            }
        }
        wanted
    }

    fn can_be_met(&self, shape: usize, alternatives: &[Requirements]) -> bool {
        let answers = self.goods.ask_all(shape, alternatives);
        let request = &self.model.requests[shape];
        (0..self.goods.offers.len()).any(|offer| {
            vector::fits(request, &self.goods.facts[offer].room)
                && self.goods.admits(&answers, offer)
        })
    }

    /// Gives each pod of a piece a domain of one topology key.
    fn split(&mut self, piece: RowSpec, key: &str, refused: &mut Vec<Refused>) -> Vec<RowSpec> {
        let mut domains = self.domains(&piece, key);
        let mut rules: Vec<Group> = self
            .groups(piece.shape)
            .filter(|group| group.key == key && self.is_live(group))
            .cloned()
            .collect();
        self.remember_universe(piece.shape, key, &domains);
        let mut given: BTreeMap<String, i64> = BTreeMap::new();
        for _ in 0..piece.count {
            let Some(domain) = choose(piece.shape, &domains, &rules) else { break };
            for rule in &mut rules {
                rule.record(piece.shape, &domain, 1);
            }
            if let Some(known) = domains.get_mut(&domain) {
                known.capacity -= 1;
            }
            *given.entry(domain).or_default() += 1;
        }
        let missing = piece.count - given.values().sum::<i64>();
        if missing > 0 {
            let rule = blocking(piece.shape, &domains, &rules);
            let obstacle = Obstacle::Topology { rule, key: key.to_owned() };
            refused.push(Refused { shape: piece.shape, count: missing, obstacle });
        }
        given.into_iter().map(|(domain, count)| narrowed(&piece, key, &domain, count)).collect()
    }

    fn remember_universe(&mut self, shape: usize, key: &str, domains: &BTreeMap<String, Domain>) {
        for index in self.topology.groups_of(shape).to_vec() {
            let group = &mut self.topology.groups[index];
            if group.key == key && group.owners[shape] {
                group.universe.extend(domains.keys().cloned());
            }
        }
    }

    /// Domains where the piece could run: bought anew at a price, or on hosts with room.
    fn domains(&self, piece: &RowSpec, key: &str) -> BTreeMap<String, Domain> {
        let bought = self.goods.domains(piece.shape, &piece.alternatives, key);
        let mut domains: BTreeMap<String, Domain> = bought
            .into_iter()
            .map(|(name, price)| (name, Domain { price, capacity: i64::MAX }))
            .collect();
        let request = &self.model.requests[piece.shape];
        let shape = self.model.shapes[piece.shape];
        for host in self.model.hosts.iter().filter(|host| !host.leaving) {
            let Some(name) = host.label(key) else { continue };
            if !host.admits(shape, &piece.alternatives) {
                continue;
            }
            let free = if host.open { vector::copies(request, &host.room) } else { 0 };
            let new = Domain { price: i64::MAX, capacity: 0 };
            let domain = domains.entry(name.to_owned()).or_insert(new);
            domain.capacity = domain.capacity.saturating_add(free);
        }
        domains
    }

    fn count(&mut self, piece: &RowSpec, keys: &[String]) {
        for index in self.topology.groups_of(piece.shape).to_vec() {
            let group = &mut self.topology.groups[index];
            if !keys.contains(&group.key) {
                continue;
            }
            let pinned = piece.alternatives.first().and_then(|a| a.get(&group.key));
            if let Some(domain) = pinned.and_then(Requirement::single) {
                group.record(piece.shape, domain, piece.count);
            }
        }
    }
}

/// A place for pods, as far as a topology rule cares.
#[derive(Clone, Copy, Debug)]
struct Domain {
    /// Cheapest node there; `i64::MAX` when none can be bought.
    price: i64,
    /// How many more pods may find room.
    capacity: i64,
}

/// The domain for one more pod: emptiest for a spread, fullest for an affinity, cheapest otherwise.
fn choose(shape: usize, domains: &BTreeMap<String, Domain>, rules: &[Group]) -> Option<String> {
    let spread = rules.iter().find(|r| is_spread(r) && r.owners[shape]);
    let floors: Vec<i64> = rules.iter().map(|rule| rule.floor(domains.keys())).collect();
    let allowed = domains.iter().filter(|(name, domain)| {
        let all = rules.iter().zip(&floors);
        domain.capacity > 0
            && all.into_iter().all(|(rule, floor)| admits(rule, shape, name, *floor))
    });
    let key = |(name, domain): &(&String, &Domain)| {
        let here = rules.iter().map(|rule| rule.tally(name).members).sum::<i64>();
        let order = spread.map_or(-here, |spread| spread.tally(name).members);
        (order, domain.price, (*name).clone())
    };
    allowed.min_by_key(key).map(|(name, _)| name.clone())
}

/// Whether one more pod of the shape may join a domain.
fn admits(rule: &Group, shape: usize, domain: &str, floor: i64) -> bool {
    let (owner, member) = (rule.owners[shape], rule.members[shape]);
    let here = rule.tally(domain);
    match rule.rule {
        GroupRule::Spread { max_skew, .. } => {
            !owner || here.members + i64::from(member) - floor <= max_skew
        }
        GroupRule::Affinity => !owner || here.members > 0 || (member && rule.is_unbegun()),
        GroupRule::AntiAffinity => (!owner || here.members == 0) && (!member || here.owners == 0),
    }
}

/// The rule to name when no domain is left.
fn blocking(
    shape: usize,
    domains: &BTreeMap<String, Domain>,
    rules: &[Group],
) -> crate::reason::TopologyRule {
    let blocks = |rule: &&Group| {
        let floor = rule.floor(domains.keys());
        domains.keys().all(|name| !admits(rule, shape, name, floor))
    };
    let named = rules.iter().find(blocks).or(rules.first());
    named.map_or(crate::reason::TopologyRule::Spread, |rule| rule.rule.kind())
}

fn is_spread(rule: &Group) -> bool {
    matches!(rule.rule, GroupRule::Spread { .. })
}

/// The piece with its requirements narrowed to one domain.
fn narrowed(piece: &RowSpec, key: &str, domain: &str, count: i64) -> RowSpec {
    let alternatives = piece.alternatives.iter().map(|alternative| {
        let mut alternative = alternative.clone();
        alternative.add(key, Requirement::equals(domain));
        alternative
    });
    let alternatives = alternatives.filter(|a| !a.is_contradictory()).collect();
    RowSpec { shape: piece.shape, alternatives, count }
}

/// Node rules that have a member on some host.
pub(crate) fn begun(model: &Model<'_>) -> Vec<bool> {
    let rules = &model.topology.node_rules;
    let mut begun = vec![false; rules.len()];
    for host in &model.hosts {
        for shape in host.pods.keys() {
            rules.mark_begun(*shape, &mut begun);
        }
    }
    begun
}
