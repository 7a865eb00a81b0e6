//! Item classes: pods of one shape with one set of requirements, after topology has had its say.
//!
//! Invariant: every rule over wide domains is settled here by narrowing requirements to a domain;
//! what is packed afterwards can no longer break one. Pods that no domain may take are refused with
//! the rule that stood in the way.

mod narrowed;

use crate::model::Model;
use crate::offers::priced::PricedOffers;
use crate::offers::priced::domains::Place;
use crate::pack::problem::vector::{self, Vector};
use crate::reason::{Obstacle, TopologyRule};
use crate::topology::binding_rules::{are_waiting, is_live, widen};
use crate::topology::preferences::Preferences;
use crate::topology::split::{Domain, Split};
use crate::vocabulary::requirements::Requirements;
use crate::vocabulary::requirements::requirement::Requirement;
use crate::world::topology::{Group, GroupRule, Topology};

/// Topology keys with domains.
pub(crate) type Assigned = Vec<(String, String)>;

/// Pods of one shape that may go to the same places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClassSpec {
    /// Their shape.
    pub(crate) shape: usize,
    /// Where they should go: conditions and preferences.
    pub(crate) alternatives: Vec<Requirements>,
    /// Where they may go: conditions only.
    pub(crate) allowed: Vec<Requirements>,
    /// Topology keys with the domains that the pods have been counted in.
    pub(crate) assigned: Assigned,
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
pub(crate) struct TopologySplitter<'g, 'm, 'a> {
    /// The world.
    pub(crate) model: &'m Model<'a>,
    /// What can be bought.
    pub(crate) priced: &'g PricedOffers<'m, 'a>,
    /// Rules with current counts.
    pub(crate) topology: &'g mut Topology,
    /// Room that nodes have left; nothing where they take no pods.
    pub(crate) rooms: Vec<Option<&'g Vector>>,
    /// Pods to place now, by shape.
    pub(crate) wanted: &'g [i64],
    /// Which preferences are tried.
    pub(crate) preferences: Preferences,
    /// Whether nodes may be bought.
    pub(crate) buy: bool,
    /// Whether nobody was anywhere whom the shape has to join when its split began.
    pub(crate) may_begin: bool,
}

/// One topology key on which pods of a shape are split.
struct Key {
    name: String,
    /// True when a condition needs the domain to be certain; false when only preferences look at
    /// it.
    hard: bool,
}

impl TopologySplitter<'_, '_, '_> {
    /// All classes, and what is refused.
    pub(crate) fn split_all(&mut self) -> (Vec<ClassSpec>, Vec<Refused>) {
        let (mut classes, mut refused) = (Vec::new(), Vec::new());
        let mut all: Vec<usize> = (0..self.wanted.len()).filter(|s| self.wanted[*s] > 0).collect();
        all.sort_by_key(|shape| (std::cmp::Reverse(self.model.shapes[*shape].priority), *shape));
        let (followers, leaders): (Vec<usize>, Vec<usize>) =
            all.into_iter().partition(|shape| self.follows(*shape));
        let (preferring, plain): (Vec<usize>, Vec<usize>) =
            leaders.into_iter().partition(|shape| self.would_follow(*shape));
        for shape in plain.into_iter().chain(preferring) {
            self.split_shape(shape, &mut classes, &mut refused);
        }
        self.split_followers(followers, &mut classes, &mut refused);
        (classes, refused)
    }

    /// Shapes that follow others wait until those have a domain; when none is left that can follow,
    /// one begins by itself, or else the first is refused.
    fn split_followers(
        &mut self,
        mut waiting: Vec<usize>,
        classes: &mut Vec<ClassSpec>,
        refused: &mut Vec<Refused>,
    ) {
        while !waiting.is_empty() {
            let (ready, rest): (Vec<usize>, Vec<usize>) =
                waiting.iter().partition(|shape| self.has_leader(**shape));
            waiting = rest;
            let next = if ready.is_empty() {
                let begins = waiting.iter().position(|shape| self.can_begin(*shape));
                vec![waiting.remove(begins.unwrap_or(0))]
            } else {
                ready
            };
            for shape in next {
                self.split_shape(shape, classes, refused);
            }
        }
    }

    fn follows(&self, shape: usize) -> bool {
        self.topology.required_affinities(shape).next().is_some()
    }

    fn would_follow(&self, shape: usize) -> bool {
        let near = |group: &Group| group.spec.rule == GroupRule::Affinity;
        let mut preferences =
            self.topology.groups_of(shape).filter(|g| g.spec.preference.is_some());
        preferences.any(|group| near(group) && group.spec.owners.contains(shape))
    }

    fn has_leader(&self, shape: usize) -> bool {
        self.topology.required_affinities(shape).all(|group| !group.has_no_members())
    }

    fn can_begin(&self, shape: usize) -> bool {
        self.topology
            .required_affinities(shape)
            .all(|group| !group.has_no_members() || group.spec.members.contains(shape))
    }

    /// Classes of a shape. Pods that conditions leave no domain for where their preferences go are
    /// split without these.
    fn split_shape(
        &mut self,
        shape: usize,
        classes: &mut Vec<ClassSpec>,
        refused: &mut Vec<Refused>,
    ) {
        let tried = self.preferences;
        let mut without = self.allot_with_preferences(shape, self.wanted[shape], classes);
        while let Some(next) = self.preferences.next() {
            let given_up = std::mem::replace(&mut self.preferences, next);
            if !without.is_empty() && given_up.any(self.model, shape) {
                let count = without.iter().map(|refused| refused.count).sum();
                without = self.allot_with_preferences(shape, count, classes);
            }
        }
        self.preferences = tried;
        refused.extend(without);
    }

    /// Classes of some pods of a shape, and those that find no domain.
    fn allot_with_preferences(
        &mut self,
        shape: usize,
        count: i64,
        classes: &mut Vec<ClassSpec>,
    ) -> Vec<Refused> {
        let allowed = self.model.alternatives[shape].clone();
        let alternatives = narrowed::narrowed(self, shape, &allowed);
        let nobody = self.topology.required_affinities(shape).all(Group::has_no_members);
        self.may_begin = nobody;
        let mut refused = Vec::new();
        let mut pieces =
            vec![ClassSpec { shape, alternatives, allowed, assigned: Vec::new(), count }];
        for key in self.keys(shape) {
            widen(self.model, self.priced, self.topology, shape, &key.name);
            pieces = pieces.into_iter().flat_map(|p| self.split(p, &key, &mut refused)).collect();
        }
        classes.extend(pieces.into_iter().filter(|piece| piece.count > 0));
        refused
    }

    /// Keys on which a shape is split: those of conditions first.
    fn keys(&self, shape: usize) -> Vec<Key> {
        let mut keys: Vec<Key> = Vec::new();
        for hard in [true, false] {
            for group in self.topology.groups_of(shape) {
                let matters = if hard { self.is_live(group) } else { self.is_wished(shape, group) };
                if matters && !keys.iter().any(|key| key.name == group.spec.key) {
                    keys.push(Key { name: group.spec.key.clone(), hard });
                }
            }
        }
        keys
    }

    fn is_live(&self, group: &Group) -> bool {
        is_live(self.model, group)
            || (group.spec.preference.is_none() && self.will_have_owners(group))
    }

    fn will_have_owners(&self, group: &Group) -> bool {
        are_waiting(self.model, group)
            || group.spec.owners.iter().any(|shape| self.wanted[shape] > 0)
    }

    /// A preference matters to those who have it, and to those who are wished for.
    fn is_wished(&self, shape: usize, group: &Group) -> bool {
        let wished = group.spec.rule == GroupRule::Affinity && self.will_have_owners(group);
        self.preferences.of_pods()
            && group.spec.preference.is_some()
            && (group.spec.owners.contains(shape) || wished)
    }

    /// Gives the pods of a piece domains of one topology key.
    fn split(&mut self, piece: ClassSpec, key: &Key, refused: &mut Vec<Refused>) -> Vec<ClassSpec> {
        let domains = self.domains(&piece, &key.name);
        let (assigned, blocking) = self.choose(&piece, key, &domains);
        let missing = piece.count - assigned.iter().sum::<i64>();
        let mut pieces = Vec::new();
        for (domain, count) in domains.iter().zip(assigned).filter(|(_, count)| *count > 0) {
            let name = domain.name.as_deref();
            if let Some(name) = name {
                self.topology.record_in(piece.shape, &key.name, name, count);
            }
            pieces.push(piece.narrowed(key, name, count));
        }
        if missing > 0 && key.hard {
            for (earlier, domain) in &piece.assigned {
                self.topology.record_in(piece.shape, earlier, domain, -missing);
            }
            let obstacle = if domains.iter().all(|domain| domain.name.is_none()) {
                let wanted = Requirement::exists();
                Obstacle::Requirement { key: key.name.clone(), wanted, offered: None }
            } else {
                let held_by = self.held_by(piece.shape, key, blocking);
                Obstacle::Topology { rule: blocking, key: key.name.clone(), held_by }
            };
            refused.push(Refused { shape: piece.shape, count: missing, obstacle });
        }
        if missing > 0 && !key.hard {
            pieces.push(ClassSpec { count: missing, ..piece });
        }
        pieces
    }

    /// The domain that keeps a spread of the shape from growing.
    fn held_by(&self, shape: usize, key: &Key, rule: TopologyRule) -> Option<String> {
        let mut groups = self.topology.groups_of(shape).filter(|group| self.is_live(group));
        let of = |group: &&Group| group.spec.key == key.name && group.spec.owners.contains(shape);
        let spread = groups.find(|group| of(group) && group.spec.rule.kind() == rule)?;
        spread.emptiest()
    }

    fn choose(&self, piece: &ClassSpec, key: &Key, domains: &[Domain]) -> (Vec<i64>, TopologyRule) {
        let here = self.topology.groups_of(piece.shape).filter(|g| g.spec.key == key.name);
        let (rules, preferences): (Vec<&Group>, Vec<&Group>) = here
            .filter(|group| self.is_live(group) || self.is_wished(piece.shape, group))
            .partition(|group| group.spec.preference.is_none());
        let split = Split {
            shape: piece.shape,
            domains,
            rules,
            preferences,
            may_begin: self.may_begin,
            premium_percent: self.model.input.preference_premium_percent,
        };
        let assigned = split.split_all(piece.count);
        let blocking = split.blocking(&assigned);
        (assigned, blocking)
    }

    /// Domains where the piece could run: bought anew at a cost, or on nodes with room.
    fn domains(&self, piece: &ClassSpec, key: &str) -> Vec<Domain> {
        let places = self.priced.places.of(self.priced, piece.shape, &piece.alternatives, key);
        let request = &self.model.requests[piece.shape];
        let cost = |place: &Place| {
            if self.buy { place.cost(self.priced, request) } else { None }
        };
        let domain = |place: &Place| Domain {
            name: place.domain.clone(),
            cost: cost(place),
            room: self.room(place, request, piece.count),
        };
        places.iter().map(domain).collect()
    }

    /// How many pods, up to `most`, the nodes of a place have room for.
    pub(super) fn room(&self, place: &Place, request: &[i64], most: i64) -> i64 {
        let mut room = 0_i64;
        for existing in &place.existing_nodes {
            let Some(free) = self.rooms[*existing] else { continue };
            room = room.saturating_add(vector::copies(request, free));
            if room >= most {
                return most;
            }
        }
        room
    }
}

impl ClassSpec {
    /// No pods of a shape yet, kept to a domain of each of these keys.
    pub(crate) fn pinned(
        model: &Model<'_>,
        shape: usize,
        pins: &[(String, Option<String>)],
    ) -> Self {
        let alternatives = model.alternatives[shape].clone();
        let allowed = alternatives.clone();
        let class = Self { shape, alternatives, allowed, assigned: Vec::new(), count: 0 };
        pins.iter().fold(class, |class, (key, domain)| {
            class.narrowed(&Key { name: key.clone(), hard: true }, domain.as_deref(), 0)
        })
    }

    /// Some of the pods, kept to one domain.
    fn narrowed(&self, key: &Key, domain: Option<&str>, count: i64) -> Self {
        let narrow = |alternatives: &[Requirements]| -> Vec<Requirements> {
            let each = alternatives.iter().map(|alternative| {
                let mut alternative = alternative.clone();
                let there = domain.map_or_else(Requirement::does_not_exist, Requirement::equals);
                alternative.add(&key.name, there);
                alternative
            });
            each.filter(|alternative| !alternative.is_contradictory()).collect()
        };
        let mut assigned = self.assigned.clone();
        assigned.extend(domain.map(|domain| (key.name.clone(), domain.to_owned())));
        Self {
            shape: self.shape,
            alternatives: narrow(&self.alternatives),
            allowed: if key.hard { narrow(&self.allowed) } else { self.allowed.clone() },
            assigned,
            count,
        }
    }
}

/// Node rules that have a member on some node.
pub(crate) fn occupied(model: &Model<'_>) -> Vec<bool> {
    let rules = &model.topology.node_rules;
    let mut occupied = vec![false; rules.len()];
    for existing in &model.existing_nodes {
        for shape in existing.pods.keys() {
            rules.mark_begun(*shape, &mut occupied);
        }
    }
    occupied
}
