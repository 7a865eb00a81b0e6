//! Sequence: pods one after the other, each to where it adds least to the cost, as a scheduler
//! would bind them. Room on existing nodes, domains of topology keys and nodes to buy are chosen
//! together here, and pods of a light pool's node share it with those for whom a heavier pool would
//! buy another.
//!
//! Invariant: every rule holds after every pod. The work grows with pods times nodes: for small
//! worlds.

mod choice;

use std::cmp::Reverse;

use crate::model::Model;
use crate::offers::priced::PricedOffers;
use crate::pack::problem::Packed;
use crate::pack::problem::limits::LimitSet;
use crate::pack::problem::rules::NodeState;
use crate::pack::problem::vector::{self, Vector};
use crate::place::state::{OnExisting, PlanState};
use crate::place::{Bought, Counted};
use crate::topology::binding_rules;
use crate::topology::split_shapes::{Assigned, ClassSpec};
use crate::world::topology::Group;

/// How pods are put in a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SequenceMode {
    /// Those whom rules over single nodes touch and those with the fewest places first, instead of
    /// the largest.
    pub(super) scarce_first: bool,
    /// Grow a node rather than buy another one, even if that costs more.
    pub(super) grow: bool,
    /// Whether more may be paid than is already.
    pub(super) buy: bool,
}

impl SequenceMode {
    /// All of them.
    pub(super) const ALL: [Self; 4] = [
        Self { scarce_first: false, grow: false, buy: true },
        Self { scarce_first: false, grow: true, buy: true },
        Self { scarce_first: true, grow: false, buy: true },
        Self { scarce_first: true, grow: true, buy: true },
    ];
}

/// What came of it.
pub(super) struct Drafted {
    /// Pods on existing nodes.
    pub(super) existing_nodes: Vec<OnExisting>,
    /// Classes of the pods on new nodes.
    pub(super) classes: Vec<ClassSpec>,
    /// The new nodes; bins are offers.
    pub(super) packed: Vec<Packed>,
    /// Nodes that had been bought before and got more.
    pub(super) grown: Vec<Grown>,
    /// Pods of each shape without a place.
    pub(super) left: Vec<i64>,
}

/// What a node that had been bought before got besides.
pub(super) struct Grown {
    /// Which of those nodes.
    pub(super) node: usize,
    /// What it may become with all its pods, cheapest first.
    pub(super) offers: Vec<usize>,
    /// The pods.
    pub(super) load: Vec<Counted>,
}

/// Topology keys with the domain that a node is in; none where it lacks the label.
type Pins = Vec<(String, Option<String>)>;

/// Pods of one shape and where they may go by themselves.
struct Arrival {
    shape: usize,
    count: i64,
    /// For each offer, whether it admits them.
    admits: Vec<bool>,
    existing_nodes: Vec<usize>,
    /// Keys of the conditions and preferences that touch them.
    keys: Vec<String>,
}

/// A node to buy, as far as it is decided.
struct Draft {
    /// Which of the nodes that had been bought before it is, if one; its load is what it got
    /// besides.
    node: Option<usize>,
    /// The cheapest offer that holds its pods.
    offer: usize,
    /// All offers that it may still become, cheapest first: those with room for what it has.
    offers: Vec<usize>,
    weight: Vector,
    state: NodeState,
    pins: Pins,
    load: Vec<(usize, Pins, i64)>,
}

/// Where a pod goes.
enum Step {
    ExistingNode(usize),
    Join(usize, usize),
    New(usize),
}

/// Pods of a world being put in sequence.
pub(super) struct Sequence<'s, 'g, 'm, 'a> {
    model: &'m Model<'a>,
    priced: &'g PricedOffers<'m, 'a>,
    state: &'s mut PlanState,
    mode: SequenceMode,
    /// Offers by tier and cost.
    order: Vec<usize>,
    limit_sets: Vec<LimitSet>,
    occupied: Vec<bool>,
    drafts: Vec<Draft>,
    existing_nodes: Vec<OnExisting>,
}

impl<'s, 'g, 'm, 'a> Sequence<'s, 'g, 'm, 'a> {
    /// Starts without nodes.
    pub(super) fn new(
        priced: &'g PricedOffers<'m, 'a>,
        state: &'s mut PlanState,
        mode: SequenceMode,
    ) -> Self {
        let model = priced.model();
        let mut order: Vec<usize> = (0..priced.all.len()).collect();
        let tier = |at: usize| model.market.pools[priced.all[at].pool_offers].tier;
        order.sort_by_key(|at| (tier(*at), priced.cost(*at), *at));
        let (limit_sets, occupied) = (state.limit_sets.clone(), state.occupied.clone());
        let (drafts, existing_nodes) = (Vec::new(), Vec::new());
        Self { model, priced, state, mode, order, limit_sets, occupied, drafts, existing_nodes }
    }

    /// Lets nodes that have been bought take more pods. What is reserved for a node stays so.
    pub(super) fn with(mut self, nodes: &[Bought]) -> Self {
        for (at, node) in nodes.iter().enumerate() {
            let Some(offer) = node.offers.first().copied() else { continue };
            let mut weight = vec![0; self.model.dims.names().len()];
            let mut state = self.priced.starts[self.priced.facts[offer].start].clone();
            for (shape, count) in &node.load {
                vector::add(&mut weight, &self.model.requests[*shape], *count);
                self.model.topology.node_rules.record(*shape, *count, &mut state);
            }
            let reserved = |offer: &usize| self.priced.facts[*offer].reservation;
            let like = |other: &usize| reserved(other) == reserved(&offer);
            let offers: Vec<usize> = node.offers.iter().copied().filter(like).collect();
            for _ in 0..node.copies {
                let (offers, weight, state) = (offers.clone(), weight.clone(), state.clone());
                let (pins, load) = (Pins::new(), Vec::new());
                let node = Some(at);
                self.drafts.push(Draft { node, offer, offers, weight, state, pins, load });
            }
        }
        self
    }

    /// Puts all that is wanted; pods that found no place are tried again after others have.
    pub(super) fn run(mut self, wanted: &[i64]) -> Drafted {
        let shapes: Vec<usize> = (0..wanted.len()).filter(|shape| wanted[*shape] > 0).collect();
        let mut guests: Vec<Arrival> =
            shapes.into_iter().map(|shape| self.arrival(shape, wanted[shape])).collect();
        let mut all = vec![0; self.model.dims.names().len()];
        guests.iter().for_each(|g| vector::add(&mut all, &self.model.requests[g.shape], g.count));
        guests.sort_by_cached_key(|arrival| self.rank(arrival, &all));
        loop {
            let before: i64 = guests.iter().map(|arrival| arrival.count).sum();
            for arrival in &mut guests {
                while arrival.count > 0 && self.put(arrival) {
                    arrival.count -= 1;
                }
            }
            let after: i64 = guests.iter().map(|arrival| arrival.count).sum();
            if after == 0 || after == before {
                break;
            }
        }
        self.finish(&guests, wanted.len())
    }

    fn arrival(&mut self, shape: usize, count: i64) -> Arrival {
        let Self { model, priced, .. } = *self;
        let mut keys: Vec<String> = Vec::new();
        let wished = |group: &Group| group.spec.preference.is_some();
        let groups = self.state.topology.groups_of(shape);
        for group in groups.filter(|group| wished(group) || binding_rules::is_live(model, group)) {
            if !keys.contains(&group.spec.key) {
                keys.push(group.spec.key.clone());
            }
        }
        // Who buys nothing brings no domain.
        for key in keys.iter().filter(|_| self.mode.buy) {
            binding_rules::widen(model, priced, &mut self.state.topology, shape, key);
        }
        let answers = priced.ask_all(shape, &model.alternatives[shape]);
        let admits = (0..priced.all.len()).map(|offer| priced.admits(&answers, offer)).collect();
        let open = |existing: &usize| {
            let alternatives = &model.alternatives[shape];
            self.state.open[*existing]
                && model.existing_nodes[*existing].admits(model.shapes[shape], alternatives)
        };
        let existing_nodes = (0..model.existing_nodes.len()).filter(open).collect();
        Arrival { shape, count, admits, existing_nodes, keys }
    }

    /// The highest priority comes first, and of each followers last; then the manner decides. The
    /// larger are those that request more of `all` that is wanted, every resource counted alike:
    /// what is scarce is requested most.
    fn rank(&self, arrival: &Arrival, all: &[i64]) -> impl Ord + use<> {
        let rules = &self.model.topology.node_rules;
        let mut required_affinities = self.state.topology.required_affinities(arrival.shape);
        let follows = required_affinities.any(|group| !group.spec.members.contains(arrival.shape));
        let places =
            arrival.existing_nodes.len() + arrival.admits.iter().filter(|admits| **admits).count();
        // Room alone does not do for those that may not share a node.
        let free = rules.is_free(arrival.shape);
        let scarce = if self.mode.scarce_first { (free, places) } else { (false, 0) };
        let each = self.model.requests[arrival.shape].iter().zip(all);
        let shares =
            each.map(|(need, all)| i128::from(*need) * 1_000_000_000 / i128::from(*all).max(1));
        let size = shares.sum::<i128>();
        let priority = Reverse(self.model.shapes[arrival.shape].priority);
        let last = (rules.needs_affinity(arrival.shape), follows);
        (priority, last, scarce, Reverse(size), arrival.shape)
    }

    fn put(&mut self, arrival: &Arrival) -> bool {
        let Some(step) = self.step(arrival) else { return false };
        let shape = arrival.shape;
        let rules = &self.model.topology.node_rules;
        let pins = match step {
            Step::ExistingNode(existing) => {
                let label = |key: &String| {
                    self.model.existing_nodes[existing].label(key).map(str::to_owned)
                };
                let pins: Pins = arrival.keys.iter().map(|key| (key.clone(), label(key))).collect();
                let there = OnExisting { existing, shape, count: 1, assigned: assigned(&pins) };
                self.state.put(self.model, &there, 1);
                match self
                    .existing_nodes
                    .iter_mut()
                    .find(|on| (on.existing, on.shape) == (existing, shape))
                {
                    Some(on) => on.count += 1,
                    None => self.existing_nodes.push(there),
                }
                pins
            }
            Step::Join(at, offer) => self.join(at, offer, arrival),
            Step::New(offer) => {
                let pool_offers = self.priced.all[offer].pool_offers;
                let state = self.priced.starts[self.priced.facts[offer].start].clone();
                let like = |other: &usize| {
                    let facts = &self.priced.facts[*other];
                    self.priced.all[*other].pool_offers == pool_offers
                        && facts.reservation.is_none()
                        && self.priced.starts[facts.start] == state
                };
                let offers = self.order.iter().copied().filter(like).collect();
                let weight = vec![0; self.model.requests[shape].len()];
                let (pins, load) = (Pins::new(), Vec::new());
                self.charge(offer, 1);
                let node = None;
                self.drafts.push(Draft { node, offer, offers, weight, state, pins, load });
                self.join(self.drafts.len() - 1, offer, arrival)
            }
        };
        for (key, domain) in assigned(&pins) {
            self.state.topology.record_in(shape, &key, &domain, 1);
        }
        rules.mark_begun(shape, &mut self.occupied);
        true
    }

    /// Puts a pod on a draft, which becomes this offer.
    fn join(&mut self, at: usize, offer: usize, arrival: &Arrival) -> Pins {
        self.charge(self.drafts[at].offer, -1);
        self.charge(offer, 1);
        let (priced, shape) = (self.priced, arrival.shape);
        let label = |key: &String| priced.label(offer, key).map(str::to_owned);
        let pins: Pins = arrival.keys.iter().map(|key| (key.clone(), label(key))).collect();
        let draft = &mut self.drafts[at];
        draft.offer = offer;
        for (key, domain) in &pins {
            if !draft.pins.iter().any(|(known, _)| known == key) {
                draft.offers.retain(|other| priced.label(*other, key) == domain.as_deref());
                draft.pins.push((key.clone(), domain.clone()));
            }
        }
        vector::add(&mut draft.weight, &self.model.requests[shape], 1);
        let weight = &draft.weight;
        let holds =
            |other: usize| arrival.admits[other] && vector::fits(weight, priced.room(other));
        draft.offers.retain(|other| holds(*other));
        self.model.topology.node_rules.record(shape, 1, &mut draft.state);
        match draft.load.iter_mut().find(|(known, with, _)| *known == shape && *with == pins) {
            Some((.., count)) => *count += 1,
            None => draft.load.push((shape, pins.clone(), 1)),
        }
        pins
    }

    fn charge(&mut self, offer: usize, count: i64) {
        let limit_set = &mut self.limit_sets[self.priced.all[offer].pool_offers];
        vector::add(&mut limit_set.left, self.priced.charge(offer), -count);
    }

    fn finish(self, guests: &[Arrival], shapes: usize) -> Drafted {
        let mut classes: Vec<ClassSpec> = Vec::new();
        let mut known: Vec<(usize, Pins)> = Vec::new();
        let (mut packed, mut grown) = (Vec::new(), Vec::new());
        for draft in self.drafts {
            if let Some(node) = draft.node {
                let load = draft.load.into_iter();
                let counted =
                    |(shape, pins, count)| Counted { shape, assigned: assigned(&pins), count };
                let load: Vec<Counted> = load.map(counted).collect();
                if !load.is_empty() {
                    grown.push(Grown { node, offers: draft.offers, load });
                }
                continue;
            }
            let mut load = Vec::new();
            for (shape, pins, count) in draft.load {
                let class = known.iter().position(|(s, with)| *s == shape && *with == pins);
                let class = class.unwrap_or_else(|| {
                    classes.push(ClassSpec::pinned(self.model, shape, &pins));
                    known.push((shape, pins));
                    classes.len() - 1
                });
                classes[class].count += count;
                load.push((class, count));
            }
            load.sort_unstable();
            packed.push(Packed { bin: draft.offer, load, copies: 1 });
        }
        let mut left = vec![0; shapes];
        guests.iter().for_each(|arrival| left[arrival.shape] = arrival.count);
        Drafted { existing_nodes: self.existing_nodes, classes, packed, grown, left }
    }
}

/// The domains among pins.
fn assigned(pins: &Pins) -> Assigned {
    pins.iter().filter_map(|(key, domain)| Some((key.clone(), domain.clone()?))).collect()
}
