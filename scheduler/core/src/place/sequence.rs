//! Sequence: pods one after the other, each to where it adds least to the cost, as a scheduler would bind
//! them. Room on hosts, domains of topology keys and nodes to buy are chosen together here, and pods of a
//! light pool's node share it with those for whom a heavier pool would buy another.
//!
//! Invariant: every rule holds after every pod. The work grows with pods times nodes: for small worlds.

mod choice;

use std::cmp::Reverse;

use crate::model::Model;
use crate::offers::priced::Goods;
use crate::pack::problem::Packed;
use crate::pack::problem::limits::Budget;
use crate::pack::problem::rules::NodeState;
use crate::pack::problem::vector::{self, Vector};
use crate::place::state::{OnHost, Scene};
use crate::place::{Bought, Counted};
use crate::topology::binding_rules;
use crate::topology::split_shapes::{Given, RowSpec};
use crate::world::topology::Group;

/// How pods are put in a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Manner {
    /// Those whom rules over single nodes touch and those with the fewest places first, instead of the largest.
    pub(super) scarce_first: bool,
    /// Grow a node rather than buy another one, even if that costs more.
    pub(super) grow: bool,
    /// Whether more may be paid than is already.
    pub(super) buy: bool,
}

impl Manner {
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
    /// Pods on hosts.
    pub(super) hosts: Vec<OnHost>,
    /// Rows of the pods on new nodes.
    pub(super) rows: Vec<RowSpec>,
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
struct Guest {
    shape: usize,
    count: i64,
    /// For each offer, whether it admits them.
    admits: Vec<bool>,
    hosts: Vec<usize>,
    /// Keys of the conditions and wishes that touch them.
    keys: Vec<String>,
}

/// A node to buy, as far as it is decided.
struct Draft {
    /// Which of the nodes that had been bought before it is, if one; its load is what it got besides.
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
    Host(usize),
    Join(usize, usize),
    New(usize),
}

/// Pods of a world being put in sequence.
pub(super) struct Sequence<'s, 'g, 'm, 'a> {
    model: &'m Model<'a>,
    goods: &'g Goods<'m, 'a>,
    scene: &'s mut Scene,
    manner: Manner,
    /// Offers by tier and cost.
    order: Vec<usize>,
    budgets: Vec<Budget>,
    begun: Vec<bool>,
    drafts: Vec<Draft>,
    hosts: Vec<OnHost>,
}

impl<'s, 'g, 'm, 'a> Sequence<'s, 'g, 'm, 'a> {
    /// Starts without nodes.
    pub(super) fn new(goods: &'g Goods<'m, 'a>, scene: &'s mut Scene, manner: Manner) -> Self {
        let model = goods.model();
        let mut order: Vec<usize> = (0..goods.offers.len()).collect();
        let tier = |at: usize| model.market.stalls[goods.offers[at].stall].tier;
        order.sort_by_key(|at| (tier(*at), goods.cost(*at), *at));
        let (budgets, begun) = (scene.budgets.clone(), scene.begun.clone());
        let (drafts, hosts) = (Vec::new(), Vec::new());
        Self { model, goods, scene, manner, order, budgets, begun, drafts, hosts }
    }

    /// Lets nodes that have been bought take more pods. What is reserved for a node stays so.
    pub(super) fn with(mut self, nodes: &[Bought]) -> Self {
        for (at, node) in nodes.iter().enumerate() {
            let Some(offer) = node.offers.first().copied() else { continue };
            let mut weight = vec![0; self.model.dims.names().len()];
            let mut state = self.goods.starts[self.goods.facts[offer].start].clone();
            for (shape, count) in &node.load {
                vector::add(&mut weight, &self.model.requests[*shape], *count);
                self.model.topology.node_rules.record(*shape, *count, &mut state);
            }
            let reserved = |offer: &usize| self.goods.facts[*offer].reservation;
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
        let mut guests: Vec<Guest> =
            shapes.into_iter().map(|shape| self.guest(shape, wanted[shape])).collect();
        let mut all = vec![0; self.model.dims.names().len()];
        guests.iter().for_each(|g| vector::add(&mut all, &self.model.requests[g.shape], g.count));
        guests.sort_by_cached_key(|guest| self.rank(guest, &all));
        loop {
            let before: i64 = guests.iter().map(|guest| guest.count).sum();
            for guest in &mut guests {
                while guest.count > 0 && self.put(guest) {
                    guest.count -= 1;
                }
            }
            let after: i64 = guests.iter().map(|guest| guest.count).sum();
            if after == 0 || after == before {
                break;
            }
        }
        self.finish(&guests, wanted.len())
    }

    fn guest(&mut self, shape: usize, count: i64) -> Guest {
        let Self { model, goods, .. } = *self;
        let mut keys: Vec<String> = Vec::new();
        let wished = |group: &Group| group.spec.wish.is_some();
        let groups = self.scene.topology.groups_of(shape);
        for group in groups.filter(|group| wished(group) || binding_rules::is_live(model, group)) {
            if !keys.contains(&group.spec.key) {
                keys.push(group.spec.key.clone());
            }
        }
        // Who buys nothing brings no domain.
        for key in keys.iter().filter(|_| self.manner.buy) {
            binding_rules::widen(model, goods, &mut self.scene.topology, shape, key);
        }
        let answers = goods.ask_all(shape, &model.alternatives[shape]);
        let admits = (0..goods.offers.len()).map(|offer| goods.admits(&answers, offer)).collect();
        let open = |host: &usize| {
            let alternatives = &model.alternatives[shape];
            self.scene.open[*host] && model.hosts[*host].admits(model.shapes[shape], alternatives)
        };
        let hosts = (0..model.hosts.len()).filter(open).collect();
        Guest { shape, count, admits, hosts, keys }
    }

    /// The highest priority comes first, and of each followers last; then the manner decides. The larger
    /// are those that request more of `all` that is wanted, every resource counted alike: what is scarce
    /// is requested most.
    fn rank(&self, guest: &Guest, all: &[i64]) -> impl Ord + use<> {
        let rules = &self.model.topology.node_rules;
        let mut companies = self.scene.topology.companies(guest.shape);
        let follows = companies.any(|group| !group.spec.members.contains(guest.shape));
        let places = guest.hosts.len() + guest.admits.iter().filter(|admits| **admits).count();
        // Room alone does not do for those that may not share a node.
        let free = rules.is_free(guest.shape);
        let scarce = if self.manner.scarce_first { (free, places) } else { (false, 0) };
        let each = self.model.requests[guest.shape].iter().zip(all);
        let shares =
            each.map(|(need, all)| i128::from(*need) * 1_000_000_000 / i128::from(*all).max(1));
        let size = shares.sum::<i128>();
        let priority = Reverse(self.model.shapes[guest.shape].priority);
        let last = (rules.needs_company(guest.shape), follows);
        (priority, last, scarce, Reverse(size), guest.shape)
    }

    fn put(&mut self, guest: &Guest) -> bool {
        let Some(step) = self.step(guest) else { return false };
        let shape = guest.shape;
        let rules = &self.model.topology.node_rules;
        let pins = match step {
            Step::Host(host) => {
                let label = |key: &String| self.model.hosts[host].label(key).map(str::to_owned);
                let pins: Pins = guest.keys.iter().map(|key| (key.clone(), label(key))).collect();
                let there = OnHost { host, shape, count: 1, given: given(&pins) };
                self.scene.put(self.model, &there, 1);
                match self.hosts.iter_mut().find(|on| (on.host, on.shape) == (host, shape)) {
                    Some(on) => on.count += 1,
                    None => self.hosts.push(there),
                }
                pins
            }
            Step::Join(at, offer) => self.join(at, offer, guest),
            Step::New(offer) => {
                let stall = self.goods.offers[offer].stall;
                let state = self.goods.starts[self.goods.facts[offer].start].clone();
                let like = |other: &usize| {
                    let facts = &self.goods.facts[*other];
                    self.goods.offers[*other].stall == stall
                        && facts.reservation.is_none()
                        && self.goods.starts[facts.start] == state
                };
                let offers = self.order.iter().copied().filter(like).collect();
                let weight = vec![0; self.model.requests[shape].len()];
                let (pins, load) = (Pins::new(), Vec::new());
                self.charge(offer, 1);
                let node = None;
                self.drafts.push(Draft { node, offer, offers, weight, state, pins, load });
                self.join(self.drafts.len() - 1, offer, guest)
            }
        };
        for (key, domain) in given(&pins) {
            self.scene.topology.record_in(shape, &key, &domain, 1);
        }
        rules.mark_begun(shape, &mut self.begun);
        true
    }

    /// Puts a pod on a draft, which becomes this offer.
    fn join(&mut self, at: usize, offer: usize, guest: &Guest) -> Pins {
        self.charge(self.drafts[at].offer, -1);
        self.charge(offer, 1);
        let (goods, shape) = (self.goods, guest.shape);
        let label = |key: &String| goods.label(offer, key).map(str::to_owned);
        let pins: Pins = guest.keys.iter().map(|key| (key.clone(), label(key))).collect();
        let draft = &mut self.drafts[at];
        draft.offer = offer;
        for (key, domain) in &pins {
            if !draft.pins.iter().any(|(known, _)| known == key) {
                draft.offers.retain(|other| goods.label(*other, key) == domain.as_deref());
                draft.pins.push((key.clone(), domain.clone()));
            }
        }
        vector::add(&mut draft.weight, &self.model.requests[shape], 1);
        let weight = &draft.weight;
        let holds = |other: usize| guest.admits[other] && vector::fits(weight, goods.room(other));
        draft.offers.retain(|other| holds(*other));
        self.model.topology.node_rules.record(shape, 1, &mut draft.state);
        match draft.load.iter_mut().find(|(known, with, _)| *known == shape && *with == pins) {
            Some((.., count)) => *count += 1,
            None => draft.load.push((shape, pins.clone(), 1)),
        }
        pins
    }

    fn charge(&mut self, offer: usize, count: i64) {
        let budget = &mut self.budgets[self.goods.offers[offer].stall];
        vector::add(&mut budget.left, self.goods.charge(offer), -count);
    }

    fn finish(self, guests: &[Guest], shapes: usize) -> Drafted {
        let mut rows: Vec<RowSpec> = Vec::new();
        let mut known: Vec<(usize, Pins)> = Vec::new();
        let (mut packed, mut grown) = (Vec::new(), Vec::new());
        for draft in self.drafts {
            if let Some(node) = draft.node {
                let load = draft.load.into_iter();
                let counted = |(shape, pins, count)| Counted { shape, given: given(&pins), count };
                let load: Vec<Counted> = load.map(counted).collect();
                if !load.is_empty() {
                    grown.push(Grown { node, offers: draft.offers, load });
                }
                continue;
            }
            let mut load = Vec::new();
            for (shape, pins, count) in draft.load {
                let row = known.iter().position(|(s, with)| *s == shape && *with == pins);
                let row = row.unwrap_or_else(|| {
                    rows.push(RowSpec::pinned(self.model, shape, &pins));
                    known.push((shape, pins));
                    rows.len() - 1
                });
                rows[row].count += count;
                load.push((row, count));
            }
            load.sort_unstable();
            packed.push(Packed { bin: draft.offer, load, copies: 1 });
        }
        let mut left = vec![0; shapes];
        guests.iter().for_each(|guest| left[guest.shape] = guest.count);
        Drafted { hosts: self.hosts, rows, packed, grown, left }
    }
}

/// The domains among pins.
fn given(pins: &Pins) -> Given {
    pins.iter().filter_map(|(key, domain)| Some((key.clone(), domain.clone()?))).collect()
}
