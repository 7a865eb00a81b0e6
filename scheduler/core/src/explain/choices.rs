//! Why pods go where a plan puts them: the place, what narrowed the choice to it, and its price.
//!
//! Invariant: works from the question and the answer alone, so any plan can be explained, one that
//! was made elsewhere too; nothing here bears on what is planned.

mod narrowing;
mod one_more;
mod share;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use crate::answer::{Candidate, Plan, Target};
use crate::model::Model;
use crate::offers::priced::PricedOffers;
use crate::question::PlanInput;
use crate::reason::Reason;
use crate::vocabulary::ids::{PodUid, PoolName, ShapeId};
use crate::vocabulary::requirements::Requirements;
use crate::vocabulary::requirements::requirement::Requirement;
use crate::vocabulary::resources::Resources;

pub use one_more::one_more;

/// Which pods are asked about.
#[derive(Clone, Copy, Debug)]
pub enum Asked<'a> {
    /// One pod.
    Pod(&'a PodUid),
    /// All pods of a shape.
    Shape(&'a ShapeId),
}

/// A place for pods, and why it was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Where; the first of several equal nodes to launch.
    pub target: Target,
    /// How many equal nodes.
    pub nodes: i64,
    /// Pods asked about that go there, on all of the nodes together.
    pub pods: i64,
    /// True when they run there already.
    pub bound: bool,
    /// Nodes in service and on their way whose labels and taints admit the pods.
    pub admitting_nodes: i64,
    /// What one pod takes of each resource that it requests, the largest part first.
    pub shares: Vec<ResourceShare>,
    /// Other pods on each node.
    pub company: Vec<Neighbour>,
    /// Price of each node; none when it is not known.
    pub node_price_micro_usd_per_hour: Option<i64>,
    /// One pod's part of that, when it is split by the largest share that each pod takes.
    pub pod_price_micro_usd_per_hour: Option<i64>,
    /// How the node was found, when it is one to launch.
    pub purchase: Option<Purchase>,
}

/// What one pod takes of a resource of its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceShare {
    /// Resource name.
    pub resource: String,
    /// What the pod requests, in the unit of [`Resources`].
    pub requested: i64,
    /// What the node has for pods, DaemonSets included.
    pub allocatable: i64,
}

/// Other pods on a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Neighbour {
    /// Their namespace.
    pub namespace: String,
    /// Their owner as `Kind/name`, or their shape where nobody owns them.
    pub owner: String,
    /// How many.
    pub pods: i64,
}

/// How a node to launch was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Purchase {
    /// Its pool.
    pub pool: PoolName,
    /// What is bought: nothing that is left after all narrowings is cheaper.
    pub chosen: Candidate,
    /// What narrowed the choice, in order; what narrowed nothing is left out.
    pub narrowings: Vec<Narrowing>,
    /// The next best that would do as well, cheapest first, each type once after the first.
    pub next: Vec<Candidate>,
    /// The cheapest node for one such pod alone; none when the pods asked about have no company.
    pub alone: Option<Candidate>,
}

/// A constraint, and what it leaves to choose from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Narrowing {
    /// The constraint.
    pub by: By,
    /// Instance types that are left.
    pub types: i64,
    /// Offers that are left: types in a zone, bought in one way.
    pub offers: i64,
}

/// What narrows the choice of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum By {
    /// Nothing yet: what the region sells now.
    Market,
    /// What NodePools allow.
    Pools {
        /// How many pools sell anything.
        pools: usize,
    },
    /// Taints of pools that the pod does not tolerate.
    Taints,
    /// A requirement of the pod: node selector, affinity or volume.
    Requirement {
        /// Label key.
        key: String,
        /// What the pod wants.
        wanted: Requirement,
    },
    /// Room for the pod beside DaemonSets.
    Size {
        /// What it requests.
        requests: Resources,
    },
    /// Host ports and anti-affinity against DaemonSets.
    DaemonSets,
    /// A preference about nodes that could be met.
    Preference {
        /// The preference.
        wanted: Requirements,
    },
    /// A rule or preference about other pods: the domain it left or chose.
    Topology {
        /// Label key.
        key: String,
        /// The domain.
        domain: String,
    },
    /// The weight of pools: heavier ones come first while they can.
    Weight {
        /// The weight of those that are left.
        weight: i32,
    },
    /// All pods that share the node: room for them and what they want of nodes.
    Neighbour {
        /// How many pods.
        pods: usize,
    },
    /// What changes while a plan grows: limits, reservations, `minValues`, soft taints.
    Rest,
}

/// What a plan for one more pod does otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OneMore {
    /// What all nodes together cost more; less than nothing where more pods pack better.
    pub price_micro_usd_per_hour: i64,
    /// Node or claim that has room for it, when nothing is bought or dropped for it.
    pub existing: Option<Target>,
    /// Nodes launched besides, each as its cheapest candidate.
    pub added: Vec<Candidate>,
    /// Nodes no longer launched.
    pub dropped: Vec<Candidate>,
    /// Why it has no place, when so.
    pub refused: Option<Reason>,
}

/// The places of pods by a plan that was made from this input, those with most pods first. Pods
/// without a place have none here; see [`Plan::unplaced`].
#[must_use]
pub fn choices(input: &PlanInput, plan: &Plan, asked: Asked<'_>) -> Vec<Choice> {
    let Some(shape) = asked.shape(input) else { return Vec::new() };
    let model = Model::new(input);
    let Some(shape) = model.index_of(shape) else { return Vec::new() };
    let priced = PricedOffers::price(&model);
    let teller = Teller { model: &model, priced: &priced, plan, asked, shape };
    let mut choices: Vec<Choice> =
        teller.groups().iter().filter_map(|group| teller.choice(group)).collect();
    choices.sort_by_key(|choice| std::cmp::Reverse(choice.pods));
    choices
}

impl<'a> Asked<'a> {
    fn shape(self, input: &'a PlanInput) -> Option<&'a ShapeId> {
        match self {
            Self::Pod(uid) => input.world.pods.get(uid).map(|pod| &pod.shape),
            Self::Shape(shape) => Some(shape),
        }
    }

    fn means(self, uid: &PodUid, input: &PlanInput) -> bool {
        match self {
            Self::Pod(asked) => asked == uid,
            Self::Shape(shape) => input.world.pods.get(uid).is_some_and(|pod| pod.shape == *shape),
        }
    }
}

/// Tells about one plan.
struct Teller<'t, 'm, 'a> {
    model: &'m Model<'a>,
    priced: &'t PricedOffers<'m, 'a>,
    plan: &'t Plan,
    asked: Asked<'t>,
    shape: usize,
}

/// Pods asked about in one place, or on equal nodes to launch.
struct Group {
    target: Target,
    nodes: i64,
    pods: i64,
    bound: bool,
}

impl Teller<'_, '_, '_> {
    fn input(&self) -> &PlanInput {
        self.model.input
    }

    fn groups(&self) -> Vec<Group> {
        let mut counts: BTreeMap<(Target, bool), i64> = BTreeMap::new();
        let mut planned = BTreeSet::new();
        for placement in self.plan.places().filter(|p| self.asked.means(&p.pod, self.input())) {
            // Pods of a node that is leaving are placed, and named again as its moves.
            if planned.insert(&placement.pod) {
                *counts.entry((placement.target.clone(), false)).or_default() += 1;
            }
        }
        let pods = self.input().world.pods.values();
        for pod in pods.filter(|pod| self.asked.means(&pod.uid, self.input())) {
            if let Some(node) = pod.node.as_ref().filter(|_| !planned.contains(&pod.uid)) {
                *counts.entry((Target::Node(node.clone()), true)).or_default() += 1;
            }
        }
        let mut groups: Vec<Group> = Vec::new();
        for ((target, bound), pods) in counts {
            let same = |group: &&mut Group| group.bound == bound && self.equal(group, &target);
            match groups.iter_mut().find(same) {
                Some(group) => (group.nodes, group.pods) = (group.nodes + 1, group.pods + pods),
                None => groups.push(Group { target, nodes: 1, pods, bound }),
            }
        }
        groups
    }

    /// True for nodes to launch that differ in nothing but the names of their pods.
    fn equal(&self, group: &Group, target: &Target) -> bool {
        let (Target::New(one), Target::New(other)) = (&group.target, target) else { return false };
        let (one, other) = (&self.plan.launches[*one], &self.plan.launches[*other]);
        one.pool == other.pool
            && one.candidates == other.candidates
            && one.requests == other.requests
            && one.labels == other.labels
            && self.model.load(one) == self.model.load(other)
    }

    fn choice(&self, group: &Group) -> Option<Choice> {
        let purchase = match &group.target {
            Target::New(at) => Some(self.purchase(self.plan.launches.get(*at)?)?),
            Target::Node(_) | Target::Claim(_) => None,
        };
        let there = self.there(&group.target);
        let kind = self.model.shapes[self.shape];
        let alternatives = &self.model.alternatives[self.shape];
        let admits = |existing: &&crate::model::existing::ExistingNode<'_>| {
            existing.open && existing.admits(kind, alternatives)
        };
        let admitting = self.model.existing_nodes.iter().filter(admits).count();
        let price = there.price;
        Some(Choice {
            target: group.target.clone(),
            nodes: group.nodes,
            pods: group.pods,
            bound: group.bound,
            admitting_nodes: i64::try_from(admitting).unwrap_or(i64::MAX),
            shares: share::of_resources(&kind.requests, &there.allocatable),
            company: self.company(&there),
            node_price_micro_usd_per_hour: price,
            pod_price_micro_usd_per_hour: price.map(|price| self.part(price, &there)),
            purchase,
        })
    }
}
