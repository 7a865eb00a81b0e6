//! From counts back to names: which pod goes where, and what exactly is launched.
//!
//! Invariant: pods of one shape are handed out in order of UID, first to the nodes and claims that
//! they are nominated to or were planned for, so that planning again does not shuffle them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::answer::{Candidate, NewNode, Placement, Target};
use crate::model::Model;
use crate::offers::candidates::candidate;
use crate::offers::market::{PoolOffers, written_labels};
use crate::offers::priced::PricedOffers;
use crate::place::Bought;
use crate::place::state::OnExisting;
use crate::vocabulary::labels::{CAPACITY_TYPE, INSTANCE_TYPE, RESERVATION_ID, ZONE};
use crate::vocabulary::requirements::requirement::Requirement;
use crate::vocabulary::resources::Resources;
use crate::world::pod::Pod;

/// Pods of each shape that wait to be handed out.
#[derive(Debug)]
pub(crate) struct Queue<'a> {
    shapes: Vec<ShapeQueue<'a>>,
}

#[derive(Debug, Default)]
struct ShapeQueue<'a> {
    pods: Vec<Option<&'a Arc<Pod>>>,
    order: Vec<usize>,
    next: usize,
    wanted: BTreeMap<&'a str, Vec<usize>>,
}

impl<'a> Queue<'a> {
    /// Queues pods by shape, each in order of UID.
    pub(crate) fn new(model: &Model<'a>, pods: &[Vec<&'a Arc<Pod>>]) -> Self {
        Self { shapes: pods.iter().map(|pods| ShapeQueue::new(model, pods)).collect() }
    }

    /// The next pods of a shape, those wanted on the node or claim `existing` first, those wanted
    /// on another one last.
    pub(crate) fn take(
        &mut self,
        shape: usize,
        count: i64,
        existing: Option<&str>,
    ) -> Vec<&'a Arc<Pod>> {
        (0..count).map_while(|_| self.shapes[shape].take(existing)).collect()
    }
}

impl<'a> ShapeQueue<'a> {
    fn new(model: &Model<'a>, pods: &[&'a Arc<Pod>]) -> Self {
        let preferences: Vec<Option<&str>> = pods.iter().map(|pod| model.preference(pod)).collect();
        let mut wanted: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (at, existing) in preferences.iter().enumerate().rev() {
            if let Some(existing) = existing {
                wanted.entry(existing).or_default().push(at);
            }
        }
        // Pods without a preference come first when somebody else's pods are handed out.
        let all = 0..pods.len();
        let (mut order, others): (Vec<usize>, _) = all.partition(|at| preferences[*at].is_none());
        order.extend::<Vec<usize>>(others);
        Self { pods: pods.iter().copied().map(Some).collect(), order, next: 0, wanted }
    }

    fn take(&mut self, existing: Option<&str>) -> Option<&'a Arc<Pod>> {
        if let Some(waiting) = existing.and_then(|existing| self.wanted.get_mut(existing)) {
            while let Some(at) = waiting.pop() {
                if let Some(pod) = self.pods[at].take() {
                    return Some(pod);
                }
            }
        }
        while self.next < self.order.len() {
            self.next += 1;
            if let Some(pod) = self.pods[self.order[self.next - 1]].take() {
                return Some(pod);
            }
        }
        None
    }
}

/// Names the pods on existing nodes.
pub(crate) fn placements(
    model: &Model<'_>,
    there: &[OnExisting],
    queue: &mut Queue<'_>,
) -> Vec<Placement> {
    let mut placements = Vec::new();
    let mut put = |pods: Vec<&Arc<Pod>>, target: &Target| {
        let placed = |pod: &Arc<Pod>| Placement { pod: pod.uid.clone(), target: target.clone() };
        placements.extend(pods.into_iter().map(placed));
    };
    for OnExisting { existing, shape, count, .. } in there {
        let target = &model.existing_nodes[*existing].target;
        put(queue.take(*shape, *count, target.name()), target);
    }
    placements
}

/// Puts placements in order of UID. What sets most UIDs apart is compared as a number: the eight
/// bytes after those that all of them begin with.
pub(crate) fn sort(placements: &mut Vec<Placement>) {
    let Some(first) = placements.first().map(|placement| placement.pod.clone()) else { return };
    let same =
        |uid: &str| first.as_str().bytes().zip(uid.bytes()).take_while(|(a, b)| a == b).count();
    let shared = placements.iter().map(|placement| same(placement.pod.as_str())).min().unwrap_or(0);
    let head = |uid: &str| {
        let bytes = uid.bytes().skip(shared).chain(std::iter::repeat(0)).take(8);
        bytes.fold(0, |number: u64, byte| number << 8 | u64::from(byte))
    };
    let numbered = placements.drain(..).map(|placement| (head(placement.pod.as_str()), placement));
    let mut numbered: Vec<(u64, Placement)> = numbered.collect();
    numbered.sort_unstable();
    placements.extend(numbered.into_iter().map(|(_, placement)| placement));
}

/// Spells out new nodes, which do not list their pods yet, and names the pods on each; indexes of
/// targets start at `first`.
pub(crate) fn launches(
    model: &Model<'_>,
    priced: &PricedOffers<'_, '_>,
    bought: &[Bought],
    queue: &mut Queue<'_>,
    first: usize,
) -> (Vec<NewNode>, Vec<Placement>) {
    let (mut nodes, mut placements) = (Vec::new(), Vec::new());
    for group in bought {
        let Some(template) = new_node(model, priced, group) else { continue };
        for _ in 0..group.copies {
            let target = Target::New(first + nodes.len());
            let place = |pod: &Arc<Pod>| Placement { pod: pod.uid.clone(), target: target.clone() };
            for (shape, count) in &group.load {
                placements.extend(queue.take(*shape, *count, None).into_iter().map(place));
            }
            nodes.push(template.clone());
        }
    }
    (nodes, placements)
}

/// Lists its pods on each new node, in the order of the placements.
pub(crate) fn list_pods(placements: &[Placement], nodes: &mut [NewNode]) {
    for placement in placements {
        if let Target::New(at) = placement.target {
            nodes[at].pods.push(placement.pod.clone());
        }
    }
}

/// A node as its launch describes it, without pods.
fn new_node(model: &Model<'_>, priced: &PricedOffers<'_, '_>, group: &Bought) -> Option<NewNode> {
    let planned = *group.offers.first()?;
    let offer = &priced.all[planned];
    let pool_offers = &model.market.pools[offer.pool_offers];
    let candidates: Vec<_> = group
        .offers
        .iter()
        .map(|at| {
            let offer = &priced.all[*at];
            candidate(&model.input.objective, pool_offers.types[offer.kind], offer.offering)
        })
        .collect();
    let requests = requests(model, priced, planned, &group.load);
    let mut node = node_of(pool_offers, offer.flavour, candidates, requests)?;
    // Types and zones apart could be combined to candidates of other groups when the list is made
    // anew.
    for key in &priced.group_keys {
        let value = priced.label(planned, key);
        let common = group.offers.iter().all(|at| priced.label(*at, key) == value);
        if let Some(value) = value.filter(|_| common) {
            node.requirements.add(key, Requirement::equals(value));
        }
    }
    let reservations = group.offers.iter().map(|at| priced.all[*at].offering.reservation.as_ref());
    if let Some(all) = reservations.collect::<Option<Vec<_>>>() {
        let ids = all.into_iter().map(|reservation| reservation.id.as_str());
        node.requirements.add(RESERVATION_ID, Requirement::one_of(ids));
    }
    Some(node)
}

/// A node of a pool, without pods, that may become any of the candidates.
pub(crate) fn node_of(
    pool_offers: &PoolOffers<'_>,
    flavour: usize,
    candidates: Vec<Candidate>,
    requests: Resources,
) -> Option<NewNode> {
    let labels = written_labels(&pool_offers.flavours[flavour]);
    let mut requirements = pool_offers.pool.requirements.clone();
    for (key, value) in &labels {
        requirements.add(key, Requirement::equals(value));
    }
    // Distinct ones first: many candidates share a type or a zone.
    let values =
        |of: fn(&Candidate) -> &str| -> BTreeSet<&str> { candidates.iter().map(of).collect() };
    requirements.add(INSTANCE_TYPE, Requirement::one_of(values(|c| c.instance_type.as_str())));
    requirements.add(ZONE, Requirement::one_of(values(|c| c.zone.as_str())));
    requirements.add(CAPACITY_TYPE, Requirement::one_of(values(|c| c.capacity_type.label())));
    let pool = pool_offers.pool;
    Some(NewNode {
        pool: pool.name.clone(),
        node_class: pool.node_class.clone(),
        requirements,
        max_price_micro_usd_per_hour: candidates
            .iter()
            .map(|c| c.price_micro_usd_per_hour)
            .max()?,
        candidates,
        requests,
        labels,
        annotations: pool.annotations.clone(),
        taints: pool.taints.clone(),
        startup_taints: pool.startup_taints.clone(),
        pods: Vec::new(),
        standing: false,
        replacement: false,
    })
}

/// What a node carries: its pods and its DaemonSets.
fn requests(
    model: &Model<'_>,
    priced: &PricedOffers<'_, '_>,
    planned: usize,
    load: &[(usize, i64)],
) -> Resources {
    let daemons = priced.facts[planned].daemons.iter().map(|shape| (*shape, 1));
    let all = load.iter().copied().chain(daemons);
    let each = all.map(|(shape, count)| model.shapes[shape].requests.times(count));
    each.fold(Resources::default(), |sum, amount| sum.plus(&amount))
}
