//! The nodes as they will be once the plan is carried out, with the pods on each.
//!
//! Invariant: a node that may still become one of several things has one form for each of them;
//! what is planned must be right for all.

mod coming;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use crate::answer::{Candidate, NewNode, Placement, Plan, Target};
use crate::check::{Findings, Part, Rule, cost};
use crate::offers::CANDIDATES_MAX;
use crate::question::{MinValuesPolicy, PlanInput};
use crate::vocabulary::catalogue::capacity_group::CapacityGroup;
use crate::vocabulary::catalogue::{InstanceType, Offering};
use crate::vocabulary::ids::PodUid;
use crate::vocabulary::labels::{self, Labels};
use crate::vocabulary::pool::{DisruptionReason, NodePool};
use crate::vocabulary::resources::Resources;
use crate::vocabulary::taint::Taint;
use crate::world::claim::NodeClaim;
use crate::world::node::Node;
use crate::world::pod::Pod;
use crate::world::shape::PodShape;

/// One thing a node may turn out to be.
#[derive(Clone, Debug)]
pub(super) struct Form {
    pub(super) labels: Labels,
    pub(super) allocatable: Resources,
}

/// A node after the plan.
#[derive(Clone, Debug)]
pub(super) struct NodeAfter<'a> {
    pub(super) target: Target,
    pub(super) name: String,
    /// Shared by claims that may still become the same: a burst has hundreds of these.
    pub(super) forms: Rc<[Form]>,
    pub(super) taints: Vec<Taint>,
    pub(super) pods: Vec<(&'a PodUid, &'a PodShape)>,
    /// Pods that the plan brings.
    pub(super) arrived: BTreeSet<&'a PodUid>,
    /// Pods that are ending.
    pub(super) ending: BTreeSet<&'a PodUid>,
    /// Pods whose room those count on that wait: they end before a node could come.
    pub(super) frees: BTreeSet<&'a PodUid>,
    /// True when the plan moves pods there by choice.
    pub(super) moved_to: bool,
    /// True for nodes that may take pods.
    pub(super) takes_pods: bool,
    /// What it is launched for, DaemonSets included; none for a node that is there or on its way.
    pub(super) requests: Option<&'a Resources>,
    /// True for launches that no pod waits for.
    pub(super) stands_by: bool,
    /// True for nodes on their way out.
    pub(super) leaves: bool,
    /// True for nodes that the plan takes out of service.
    pub(super) is_disrupted: bool,
}

/// All nodes after the plan.
pub(super) struct Nodes<'a> {
    pub(super) all: BTreeMap<Target, NodeAfter<'a>>,
    /// Shapes of DaemonSets with the names of their owners.
    pub(super) daemons: Vec<(&'a PodShape, String)>,
}

impl<'a> Nodes<'a> {
    pub(super) fn after(plan: &'a Plan, input: &'a PlanInput, findings: &mut Findings) -> Self {
        let world = input.world.as_ref();
        let sets = world.daemon_sets.values();
        let daemons = sets.filter_map(|set| {
            let shape = world.shapes.get(&set.shape)?;
            Some((shape.as_ref(), format!("DaemonSet/{}", set.key.name)))
        });
        let mut nodes = Self { all: BTreeMap::new(), daemons: daemons.collect() };
        let claim_of = world.claims_by_node();
        for node in world.nodes.values() {
            let claim = claim_of.get(&node.name).map(AsRef::as_ref);
            nodes.all.insert(Target::Node(node.name.clone()), existing(input, node, claim));
        }
        let registered: BTreeSet<_> = claim_of.values().map(|claim| &claim.name).collect();
        let coming = world.claims.values().filter(|claim| !registered.contains(&claim.name));
        nodes.all.extend(coming::all(input, coming));
        let mut sound: Option<(&NewNode, Rc<[Form]>)> = None;
        for (index, launch) in plan.launches.iter().enumerate() {
            let same = sound.as_ref().filter(|(other, _)| is_of_the_same_kind(launch, other));
            let forms = match same {
                Some((_, forms)) => Rc::clone(forms),
                None => {
                    let before = findings.0.len();
                    let forms = launched_as(input, index, launch, findings);
                    let flawless = findings.0.len() == before;
                    sound = flawless.then(|| (launch, Rc::clone(&forms)));
                    forms
                }
            };
            nodes.all.insert(Target::New(index), launched(input, index, launch, forms));
        }
        for node in plan.disruptions.iter().flat_map(|disruption| &disruption.nodes) {
            let node = nodes.all.get_mut(&Target::Node(node.clone()));
            node.into_iter().for_each(|node| node.is_disrupted = true);
        }
        let chosen = plan.disruptions.iter().filter(|d| d.reason != DisruptionReason::Interrupted);
        for moved in chosen.flat_map(|disruption| &disruption.moves) {
            let node = nodes.all.get_mut(&moved.target);
            node.into_iter().for_each(|node| node.moved_to = true);
        }
        nodes.move_pods(plan, input, findings);
        nodes
    }

    fn move_pods(&mut self, plan: &'a Plan, input: &'a PlanInput, findings: &mut Findings) {
        let moves = plan.disruptions.iter().flat_map(|disruption| &disruption.moves);
        let mut target_of: BTreeMap<&PodUid, &Target> = BTreeMap::new();
        for Placement { pod, target } in plan.placements.iter().chain(moves) {
            let before = target_of.insert(pod, target);
            let once = before.is_none_or(|before| before == target);
            findings.require(once, Rule::Complete, || {
                (vec![Part::Pod(pod.clone())], format!("pod {pod} has two targets"))
            });
        }
        for (uid, pod) in &input.world.pods {
            let Some(shape) = input.world.shapes.get(&pod.shape) else { continue };
            let bound = pod.node.clone().map(Target::Node);
            let target = target_of.remove(uid);
            let arrives = target.is_some() && target != bound.as_ref();
            let Some(place) = target.or(bound.as_ref()) else { continue };
            let Some(node) = self.all.get_mut(place) else {
                findings.require(!arrives, Rule::Target, || {
                    (vec![Part::Pod(uid.clone())], format!("pod {uid}: no {place:?}"))
                });
                continue;
            };
            if node.leaves && !arrives && is_evicted(input, place, pod, shape) {
                continue;
            }
            node.pods.push((uid, shape.as_ref()));
            if pod.deleting {
                node.ending.insert(uid);
            }
            if !arrives && leaves_room(pod, shape, input.now_ms) {
                node.frees.insert(uid);
            }
            if arrives {
                node.arrived.insert(uid);
            }
        }
        for pod in target_of.keys() {
            let detail = format!("pod {pod} is placed but unknown");
            findings.add(Rule::Complete, (vec![Part::Pod((*pod).clone())], detail));
        }
        self.check_complete(plan, input, findings);
    }

    fn check_complete(&self, plan: &Plan, input: &PlanInput, findings: &mut Findings) {
        let unplaced: BTreeSet<&PodUid> = plan.unplaced.iter().flat_map(|u| &u.pods).collect();
        let placed: BTreeSet<&PodUid> = plan.placements.iter().map(|p| &p.pod).collect();
        for pod in unplaced.intersection(&placed) {
            let detail = format!("pod {pod} is placed and unplaced");
            findings.add(Rule::Complete, (vec![Part::Pod((*pod).clone())], detail));
        }
        let waits = |pod: &Pod| {
            let shape = input.world.shapes.get(&pod.shape);
            let plain = shape.is_some_and(|s| !s.stays_with_node());
            let ours = shape.is_some_and(|shape| !shape.opts_out());
            ours && pod.node.is_none()
                && pod.unschedulable
                && !pod.deleting
                && !pod.preempting
                && plain
        };
        for (uid, pod) in input.world.pods.iter().filter(|(_, pod)| waits(pod)) {
            let known = unplaced.contains(uid) || placed.contains(uid);
            findings.require(known, Rule::Complete, || {
                (vec![Part::Pod(uid.clone())], format!("pod {} is forgotten", pod.key))
            });
        }
        for (index, launch) in plan.launches.iter().enumerate() {
            let here = self.all.get(&Target::New(index)).map(|node| &node.arrived);
            let listed: BTreeSet<&PodUid> = launch.pods.iter().collect();
            findings.require(here == Some(&listed), Rule::Complete, || {
                let detail = format!("launch {index} lists other pods than those placed on it");
                (vec![Part::Launch(index)], detail)
            });
        }
    }
}

/// True when the pod's room is free for others before a node could come.
fn leaves_room(pod: &Pod, shape: &PodShape, now_ms: i64) -> bool {
    let own = shape.stays_with_node() || shape.returns();
    !own && pod.frees_until_ms(now_ms).is_some()
}

/// True when the pod goes with its leaving node, whether or not it has another place already.
fn is_evicted(input: &PlanInput, place: &Target, pod: &Pod, shape: &PodShape) -> bool {
    let Target::Node(name) = place else { return false };
    let node = input.world.nodes.get(name);
    let taken = |node: &Arc<Node>| {
        input.interrupted_instances.iter().any(|i| node.provider_id.ends_with(i.as_str()))
    };
    let mut asked = 0;
    let mut held = pod.do_not_disrupt.in_force(input.now_ms);
    for budget in input.world.budgets.values().filter(|budget| budget.covers(shape)) {
        asked += u32::from(budget.minds(pod));
        held |= budget.fully_blocking || asked == 2;
    }
    !shape.stays_with_node()
        && (!pod.deleting || shape.returns())
        && (!held || node.is_some_and(taken))
}

fn existing<'a>(input: &PlanInput, node: &Node, claim: Option<&NodeClaim>) -> NodeAfter<'a> {
    let settling = claim.filter(|claim| input.is_settling(claim, node));
    let mut form = Form { labels: node.labels.clone(), allocatable: node.allocatable.clone() };
    let mut taints = node.taints.clone();
    form.labels.entry(labels::HOSTNAME.to_owned()).or_insert_with(|| node.name.to_string());
    if let Some(claim) = settling {
        form.labels.extend(claim.labels.clone());
        settle(&mut form);
        form.allocatable = form.allocatable.larger(&claim.allocatable).larger(&claim.requests);
        taints.extend(claim.taints.iter().cloned());
        let startup = |t: &Taint| claim.startup_taints.iter().any(|s| s.same_as(t));
        taints.retain(|taint| !taint.is_ephemeral() && !startup(taint));
    }
    let gone = claim.is_some_and(NodeClaim::is_leaving) || node.deleting;
    let interrupted = input.interrupted_instances.iter().any(|i| node.provider_id.ends_with(i));
    let ready = node.ready || settling.is_some_and(|claim| input.may_wait_for(claim, node));
    NodeAfter {
        target: Target::Node(node.name.clone()),
        name: format!("node {}", node.name),
        forms: Rc::new([form]),
        taints,
        pods: Vec::new(),
        arrived: BTreeSet::new(),
        ending: BTreeSet::new(),
        frees: BTreeSet::new(),
        moved_to: false,
        requests: None,
        stands_by: false,
        takes_pods: ready && !gone && !interrupted && !node.cordoned && !node.is_fargate(),
        leaves: gone || interrupted,
        is_disrupted: false,
    }
}

/// True for launches of which nothing can be wrong with one that is right with the other, their
/// pods apart.
fn is_of_the_same_kind(one: &NewNode, other: &NewNode) -> bool {
    one.pool == other.pool
        && one.labels == other.labels
        && one.requirements == other.requirements
        && one.candidates == other.candidates
}

/// What a launch may become, and whether it may be asked for so.
fn launched_as(
    input: &PlanInput,
    index: usize,
    launch: &NewNode,
    findings: &mut Findings,
) -> Rc<[Form]> {
    let name = format!("launch {index}");
    let count = launch.candidates.len();
    findings.require((1..=CANDIDATES_MAX).contains(&count), Rule::Target, || {
        (vec![Part::Launch(index)], format!("{name} has {count} candidates"))
    });
    findings.require(launch.candidates.is_sorted(), Rule::Target, || {
        (vec![Part::Launch(index)], format!("{name}: candidates are not in order of cost"))
    });
    let pool = input.world.pools.get(&launch.pool);
    let mut forms = Vec::new();
    for candidate in &launch.candidates {
        let Some(form) = bought(input, launch, candidate) else {
            let detail = format!("{name}: {candidate:?} is not on offer");
            findings.add(Rule::Target, (vec![Part::Launch(index)], detail));
            continue;
        };
        let allowed = pool.is_none_or(|pool| pool.requirements.allow(&form.labels));
        findings.require(allowed, Rule::Target, || {
            (vec![Part::Launch(index)], format!("{name}: {candidate:?} is not allowed"))
        });
        forms.push(form);
    }
    if let Some(pool) = pool.filter(|_| input.min_values == MinValuesPolicy::Strict) {
        flexible(index, pool, &forms, findings);
    }
    forms.into()
}

fn launched<'a>(
    input: &PlanInput,
    index: usize,
    launch: &'a NewNode,
    forms: Rc<[Form]>,
) -> NodeAfter<'a> {
    let pool = input.world.pools.get(&launch.pool);
    NodeAfter {
        target: Target::New(index),
        name: format!("launch {index}"),
        forms,
        taints: launch.taints.clone(),
        pods: Vec::new(),
        arrived: BTreeSet::new(),
        ending: BTreeSet::new(),
        frees: BTreeSet::new(),
        moved_to: false,
        requests: Some(&launch.requests),
        stands_by: launch.standing,
        takes_pods: pool.is_some_and(|pool| pool.not_ready.is_none()),
        leaves: false,
        is_disrupted: false,
    }
}

/// What a launch becomes with one of its candidates; none when that is not on offer.
fn bought(input: &PlanInput, launch: &NewNode, candidate: &Candidate) -> Option<Form> {
    let catalogue = input.catalogue_of(input.world.pools.get(&launch.pool)?)?;
    let instance = catalogue.types.get(&candidate.instance_type)?;
    let reserved = launch.requirements.get(labels::RESERVATION_ID);
    let is_it = |o: &&Offering| {
        let id = o.reservation_id();
        o.available
            && o.zone == candidate.zone
            && o.capacity_type == candidate.capacity_type
            && id == candidate.reservation.as_ref()
            && o.price_micro_usd_per_hour == candidate.price_micro_usd_per_hour
            && cost::of(input, instance, o) == candidate.cost_micro_usd_per_hour
            && reserved.is_none_or(|wanted| wanted.allows(id.map(|id| id.as_str())))
    };
    let offering = instance.offerings.iter().find(is_it)?;
    Some(form(instance, offering, &launch.labels))
}

/// As many values of each label stay open as the pool asks for.
fn flexible(index: usize, pool: &NodePool, forms: &[Form], findings: &mut Findings) {
    for (key, wanted) in pool.requirements.iter() {
        let least = wanted.min_values.unwrap_or(0);
        let values: BTreeSet<_> = forms.iter().filter_map(|form| form.labels.get(key)).collect();
        let cheaper = least < 2 || u32::try_from(values.len()).is_ok_and(|kept| kept >= least);
        findings.require(cheaper, Rule::MinValues, || {
            let detail =
                format!("launch {index} keeps {} values of {key}, not {least}", values.len());
            (vec![Part::Launch(index)], detail)
        });
    }
}

/// Labels that each node of ours has once it may take pods.
fn settle(form: &mut Form) {
    for key in [labels::REGISTERED, labels::INITIALIZED] {
        form.labels.insert(key.to_owned(), "true".to_owned());
    }
}

fn form(instance: &InstanceType, offering: &Offering, own: &Labels) -> Form {
    let zone = offering.zone.as_str();
    let mut labels = own.clone();
    labels.extend(instance.labels.clone());
    labels.insert(labels::INSTANCE_TYPE.to_owned(), instance.name.to_string());
    labels.insert(labels::ZONE.to_owned(), zone.to_owned());
    labels.insert(labels::CAPACITY_TYPE.to_owned(), offering.capacity_type.label().to_owned());
    labels.extend(CapacityGroup::of(instance.name.as_str(), zone).labels());
    if !offering.zone_id.is_empty() {
        labels.insert(labels::ZONE_ID.to_owned(), offering.zone_id.to_string());
    }
    if let Some(id) = offering.reservation_id() {
        let said = labels::OF_RESERVATIONS.map(|(key, value)| (key.to_owned(), value.to_owned()));
        labels.extend(said);
        labels.insert(labels::RESERVATION_ID.to_owned(), id.to_string());
    }
    let mut form = Form { labels, allocatable: instance.allocatable() };
    settle(&mut form);
    form
}
