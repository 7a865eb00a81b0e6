//! Existing nodes: nodes that exist and claims whose node is still coming, with the room they have.
//!
//! Invariant: an existing node's room already subtracts what runs there and the DaemonSet pods
//! still to come. Pods of existing nodes that are leaving are demand, not load; pods of all other
//! existing nodes are counted in the topology, whether or not the existing node takes new ones.
//! Pods that are about to end are there for all rules, and their room is told apart.

mod in_flight;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use in_flight::{narrow, possible, room_of, settled};

use crate::answer::Target;
use crate::model::Model;
use crate::model::possible_labels::PossibleLabels;
use crate::pack::problem::rules::NodeState;
use crate::pack::problem::vector::{self, Vector};
use crate::planted;
use crate::question::PlanInput;
use crate::vocabulary::catalogue::{CapacityType, Catalogue, InstanceType, Offering};
use crate::vocabulary::labels;
use crate::vocabulary::requirements::Requirements;
use crate::vocabulary::requirements::requirement::Requirement;
use crate::vocabulary::resources::Resources;
use crate::vocabulary::taint::{Taint, untolerated};
use crate::world::claim::NodeClaim;
use crate::world::drawn::drawn;
use crate::world::node::Node;
use crate::world::pod::Pod;
use crate::world::shape::PodShape;
use crate::world::topology::{GroupSpec, NodeFilter};

/// A place that pods may be on already.
#[derive(Clone, Debug)]
pub(crate) struct ExistingNode<'a> {
    /// How placements name it.
    pub(crate) target: Target,
    /// Its node, when there is one.
    pub(crate) node: Option<&'a Node>,
    /// Its claim, when it is ours.
    pub(crate) claim: Option<Arc<NodeClaim>>,
    /// What its labels are or may become.
    pub(crate) possible_labels: PossibleLabels<'a>,
    /// Taints that count now.
    pub(crate) taints: Vec<Taint>,
    /// True when new pods may be placed there.
    pub(crate) open: bool,
    /// True when nothing keeps pods away but what we take off ourselves: it has room now, others
    /// will.
    pub(crate) fit: bool,
    /// True when it is on its way out, so that its pods are to be placed elsewhere.
    pub(crate) leaving: bool,
    /// What is free.
    pub(crate) room: Vector,
    /// What will be before a node could come, with the room of pods that are about to end.
    pub(crate) later: Vector,
    /// Until when that may be counted on, in milliseconds since 1970; none when it is no more.
    pub(crate) frees_until_ms: Option<i64>,
    /// What it holds of the node rules.
    pub(crate) state: NodeState,
    /// What it holds of the node preferences.
    pub(crate) preference_state: NodeState,
    /// Pods that stay, by shape.
    pub(crate) pods: BTreeMap<usize, i64>,
    /// Those among them that are ending, by shape.
    ending: BTreeMap<usize, i64>,
    /// Price, when known, in micro-dollars per hour.
    pub(crate) price: Option<i64>,
    /// What it costs by the objective, when known, in micro-dollars per hour.
    pub(crate) cost: Option<i64>,
    /// What limits count: the largest it can turn out to be.
    pub(crate) capacity: Resources,
}

impl ExistingNode<'_> {
    /// The value of a label, when it is certain.
    pub(crate) fn label(&self, key: &str) -> Option<&str> {
        self.possible_labels.label(key)
    }

    /// True when it has the label, whatever its value; the name of a node to come is as good as
    /// known.
    fn has_label(&self, key: &str) -> bool {
        key == labels::HOSTNAME || self.possible_labels.has(key)
    }

    /// True while it repels all pods but those that are let in one by one.
    pub(crate) fn is_closed(&self) -> bool {
        self.node.is_none_or(Node::is_closed)
    }

    /// True when its instance is about to be taken away.
    pub(crate) fn is_interrupted(&self, input: &PlanInput) -> bool {
        let announced = |node: &Node| input.interrupted_instances.contains(node.instance_id());
        self.node.is_some_and(announced) || self.claim.as_ref().is_some_and(|c| c.interrupted)
    }

    /// True when a spread rule looks at this node.
    pub(crate) fn counts_for(&self, filter: &NodeFilter) -> bool {
        let alternatives = filter.alternatives.as_ref();
        let tolerations = filter.tolerations.as_ref();
        alternatives.is_none_or(|all| all.iter().any(|wanted| self.possible_labels.meets(wanted)))
            && tolerations.is_none_or(|t| untolerated(&self.taints, t).is_none())
            && filter.keys.iter().all(|key| self.has_label(key))
    }

    /// True when a spread rule may look at this node, as far as it is known yet.
    pub(crate) fn may_count_for(&self, filter: &NodeFilter) -> bool {
        let open = NodeFilter { alternatives: None, ..filter.clone() };
        let alternatives = filter.alternatives.as_ref();
        self.counts_for(&open)
            && alternatives
                .is_none_or(|all| all.iter().any(|wanted| self.possible_labels.may_meet(wanted)))
    }

    /// Takes the room of a pod that stays: for as long as it does.
    fn hold(&mut self, model: &Model<'_>, pod: &Pod, shape: usize) {
        let (kind, request) = (model.shapes[shape], &model.requests[shape]);
        vector::add(&mut self.room, request, -1);
        // What comes after these is their own.
        let own = kind.stays_with_node() || kind.returns();
        match pod.frees_until_ms(model.input.now_ms).filter(|_| !own) {
            Some(ms) => self.frees_until_ms = self.frees_until_ms.into_iter().chain([ms]).min(),
            None => vector::add(&mut self.later, request, -1),
        }
    }

    /// True when pods of the shape may run there as far as labels and taints say.
    pub(crate) fn admits(&self, shape: &PodShape, alternatives: &[Requirements]) -> bool {
        alternatives.iter().any(|wanted| self.possible_labels.meets(wanted))
            && untolerated(&self.taints, &shape.tolerations).is_none()
    }
}

/// All existing nodes; pods of leaving ones are added to the demand, all others are counted.
pub(crate) fn all<'a>(model: &mut Model<'a>) -> Vec<ExistingNode<'a>> {
    let input = model.input;
    let mut existing_nodes: Vec<ExistingNode<'a>> =
        input.world.nodes.values().map(|node| of_node(model, node)).collect();
    let registered: BTreeSet<_> = model.claim_of.values().map(|claim| claim.name.clone()).collect();
    let coming = input.world.claims.values().filter(|claim| !registered.contains(&claim.name));
    let coming = of_claims(model, coming);
    existing_nodes.extend(coming);
    for existing in &mut existing_nodes {
        settle_pods(model, existing);
        count(model, existing);
    }
    // Open before closed before coming; within these in service before starting, and the least room
    // first, so that nearly empty nodes stay empty.
    existing_nodes.sort_by_cached_key(|existing| {
        let settling = existing.claim.as_ref().is_some_and(|claim| claim.initialized_ms.is_none());
        let (room, target) = (existing.room.clone(), existing.target.clone());
        (!existing.fit, existing.is_closed(), settling, room, target)
    });
    existing_nodes
}

fn of_node<'a>(model: &Model<'a>, node: &'a Node) -> ExistingNode<'a> {
    let claim = model.claim_of.get(&node.name).cloned();
    let settling = claim.as_ref().filter(|claim| model.input.is_settling(claim, node));
    let mut labels = Cow::Borrowed(&node.labels);
    let mut taints = node.taints.clone();
    let mut fit = true;
    if let Some(claim) = settling {
        labels.to_mut().extend(claim.labels.clone());
        labels.to_mut().extend(settled());
        let starting = |taint: &Taint| claim.startup_taints.iter().any(|t| t.same_as(taint));
        let passing = |taint: &Taint| Taint::is_passing_key(&taint.key) || starting(taint);
        let now = node.ready && !node.taints.iter().any(passing);
        fit = now || model.input.opening.contains(&claim.name);
        taints.extend(claim.taints.iter().filter(|t| !node.taints.contains(t)).cloned());
        taints.retain(|taint| !taint.is_ephemeral() && !starting(taint));
    }
    if !labels.contains_key(labels::HOSTNAME) {
        labels.to_mut().insert(labels::HOSTNAME.to_owned(), node.name.to_string());
    }
    let leaving = node.deleting || claim.as_ref().is_some_and(|claim| claim.is_leaving());
    let awaited =
        |claim: &&Arc<NodeClaim>| model.input.may_wait_for(claim, node) || planted::is("S18");
    let usable = node.ready || settling.filter(awaited).is_some();
    // What the claim was made for comes too, though nobody but an overlay may have foreseen it.
    let foreseen = settling.map(|claim| claim.allocatable.larger(&claim.requests));
    let foreseen = foreseen.as_ref().unwrap_or(&node.allocatable);
    let mut existing = ExistingNode {
        target: Target::Node(node.name.clone()),
        node: Some(node),
        possible_labels: PossibleLabels::of(labels),
        taints,
        open: usable && !node.cordoned && !leaving && !node.is_fargate(),
        fit,
        leaving: leaving && !node.is_fargate(),
        room: model.dims.room(&node.allocatable.larger(foreseen)),
        state: NodeState::default(),
        preference_state: NodeState::default(),
        pods: BTreeMap::new(),
        ending: BTreeMap::new(),
        later: Vector::new(),
        frees_until_ms: None,
        price: None,
        cost: None,
        capacity: capacity_of(model, node, claim.as_deref()),
        claim,
    };
    if existing.is_interrupted(model.input) && !node.is_fargate() {
        (existing.open, existing.leaving) = (false, true);
    }
    (existing.cost, existing.price) = worth_of(model, &existing).unzip();
    existing
}

/// What limits count for a node of ours.
fn capacity_of(model: &Model<'_>, node: &Node, claim: Option<&NodeClaim>) -> Resources {
    if planted::is("S16b") {
        return node.allocatable.clone();
    }
    let drawn = |claim| drawn(claim, Some(node), catalogue_of(model, claim));
    claim.map(drawn).unwrap_or_default()
}

/// Claims that are not registered. Of those that may become the same only the first is worked out.
fn of_claims<'a, 'c>(
    model: &Model<'a>,
    claims: impl Iterator<Item = &'c Arc<NodeClaim>>,
) -> Vec<ExistingNode<'a>> {
    let mut existing_nodes: Vec<ExistingNode<'a>> = Vec::new();
    let mut kinds: Vec<usize> = Vec::new();
    for claim in claims {
        let same = |at: &&usize| {
            existing_nodes[**at]
                .claim
                .as_ref()
                .is_some_and(|other| claim.may_become_the_same(other))
        };
        let existing = kinds.iter().find(same).map(|at| ExistingNode {
            target: Target::Claim(claim.name.clone()),
            open: !claim.is_leaving(),
            leaving: claim.is_leaving(),
            claim: Some(Arc::clone(claim)),
            ..existing_nodes[*at].clone()
        });
        existing_nodes.push(existing.unwrap_or_else(|| {
            kinds.push(existing_nodes.len());
            of_claim(model, claim)
        }));
    }
    existing_nodes
}

fn of_claim<'a>(model: &Model<'a>, claim: &Arc<NodeClaim>) -> ExistingNode<'a> {
    let catalogue = catalogue_of(model, claim);
    let objective = &model.input.objective;
    let possible = catalogue.map(|c| possible(claim, c, objective)).unwrap_or_default();
    let worth = |(instance, offering): &(&InstanceType, &Offering)| {
        (objective.cost(instance, offering), offering.price_micro_usd_per_hour)
    };
    let (cost, price) = possible.iter().map(worth).min().unzip();
    let mut offers = claim.requirements.and(&Requirements::from_labels(&claim.labels));
    narrow(&mut offers, &possible);
    settled().iter().for_each(|(key, value)| offers.add(key, Requirement::equals(value)));
    let room = room_of(model, claim, &possible, &offers);
    ExistingNode {
        target: Target::Claim(claim.name.clone()),
        node: None,
        possible_labels: PossibleLabels::Open(offers),
        taints: claim.taints.clone(),
        open: !claim.is_leaving(),
        fit: false,
        leaving: claim.is_leaving(),
        room: model.dims.room(&room),
        state: NodeState::default(),
        preference_state: NodeState::default(),
        pods: BTreeMap::new(),
        ending: BTreeMap::new(),
        later: Vector::new(),
        frees_until_ms: None,
        price,
        cost,
        capacity: drawn(claim, None, catalogue),
        claim: Some(Arc::clone(claim)),
    }
}

fn catalogue_of<'a>(model: &Model<'a>, claim: &NodeClaim) -> Option<&'a Catalogue> {
    model.input.catalogue_of(model.input.world.pools.get(&claim.pool)?)
}

/// Cost and price of the offering that a node of ours runs on.
fn worth_of(model: &Model<'_>, existing: &ExistingNode<'_>) -> Option<(i64, i64)> {
    let claim = existing.claim.as_ref()?;
    let catalogue = catalogue_of(model, claim)?;
    let kind = claim.instance_type.as_ref().map(|name| name.as_str());
    let zone =
        claim.zone.as_ref().map(|zone| zone.as_str()).or_else(|| existing.label(labels::ZONE))?;
    let bought = existing.label(labels::CAPACITY_TYPE).and_then(CapacityType::from_label);
    let kind = kind.or_else(|| existing.label(labels::INSTANCE_TYPE))?;
    let offering = catalogue.offering(kind, zone, claim.capacity_type.or(bought)?)?;
    let cost = model.input.objective.cost(catalogue.types.get(kind)?, offering);
    Some((cost, offering.price_micro_usd_per_hour))
}

/// Subtracts what runs on the existing node, or hands it over to the demand when the existing node
/// is leaving.
fn settle_pods<'a>(model: &mut Model<'a>, existing: &mut ExistingNode<'a>) {
    existing.later.clone_from(&existing.room);
    let mut daemons_here: BTreeSet<(&str, &str)> = BTreeSet::new();
    if let Some(node) = existing.node {
        for pod in model.input.world.pods_on(&node.name) {
            let Some(shape) = model.shape_of(pod) else { continue };
            let kind = model.shapes[shape];
            if kind.is_daemon {
                daemons_here.insert((&kind.namespace, &kind.owner));
            }
            if existing.leaving && must_move(model, existing, pod, shape) {
                model.demand[shape].push(pod);
            } else {
                *existing.pods.entry(shape).or_default() += 1;
                *existing.ending.entry(shape).or_default() += i64::from(pod.deleting);
                existing.hold(model, pod, shape);
            }
        }
    }
    for daemon in &model.daemons {
        let kind = model.shapes[*daemon];
        let here = daemons_here.contains(&(kind.namespace.as_str(), kind.owner.as_str()));
        if !here && existing.admits(kind, &model.alternatives[*daemon]) {
            for room in [&mut existing.room, &mut existing.later] {
                let free = room.clone();
                vector::add(room, &model.requests[*daemon], -1);
                raise_to_zero(room, &free);
            }
        }
    }
}

/// DaemonSet pods to come never make the room negative; what already runs may have.
fn raise_to_zero(room: &mut [i64], before: &[i64]) {
    for (now, before) in room.iter_mut().zip(before) {
        *now = (*now).max((*before).min(0));
    }
}

/// Whether a pod of a leaving existing node needs another place now. One that refuses eviction
/// keeps its node for as long as the node can choose.
fn must_move(model: &Model<'_>, existing: &ExistingNode<'_>, pod: &Pod, shape: usize) -> bool {
    let kind = model.shapes[shape];
    if model.stays_with_node(shape) || (pod.deleting && !kind.returns()) {
        return false;
    }
    let blocked = || {
        let covering = model.input.world.budgets.values().filter(|budget| budget.covers(kind));
        pod.do_not_disrupt.in_force(model.input.now_ms)
            || covering.clone().any(|budget| budget.fully_blocking)
            || covering.filter(|budget| budget.minds(pod)).count() > 1
    };
    existing.is_interrupted(model.input) || !blocked()
}

/// Counts what stays in the topology.
fn count(model: &mut Model<'_>, existing: &mut ExistingNode<'_>) {
    let topology = &mut model.topology;
    for (shape, count) in &existing.pods {
        topology.node_rules.record(*shape, *count, &mut existing.state);
        topology.node_preferences.record(*shape, *count, &mut existing.preference_state);
    }
    for (shape, count) in &existing.pods {
        let place: &ExistingNode<'_> = existing;
        let ending = place.ending.get(shape).copied().unwrap_or(0);
        let group = |spec: &GroupSpec| {
            // A spread does not count pods that are ending; affinity and anti-affinity do.
            let count = if spec.rule.is_spread() { count - ending } else { *count };
            let domain = place.label(&spec.key).filter(|_| place.counts_for(&spec.filter));
            domain.map(|domain| (domain, count))
        };
        topology.record(*shape, group);
    }
}
