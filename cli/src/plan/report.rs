//! The answer to a plan: what is printed as a table and, field by field, as JSON.
//!
//! Invariant: nothing is decided here; equal nodes are put together, and names and prices that the
//! planner does not carry are looked up.

pub mod explain;
mod groups;
mod offering;
pub mod text;
pub mod units;
pub mod why;

use std::collections::BTreeMap;

use longshore_proto::planning::v1::{ComputePlanResponse, PlanStep};
use longshore_proto::types::v1 as wire;
use longshore_proto::types::v1::object::Kind;
use longshore_proto::types::v1::{BoundKind, Candidate, Object, placement::Target};
use longshore_scheduler::compute::Question;
use serde::Serialize;

use explain::Explanation;
pub use offering::Offering;

/// A plan for people and programs. Amounts carry their unit in the name of the field.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// Region the nodes are bought in; empty for a neutral catalogue.
    pub region: String,
    /// Day the prices are from.
    pub price_date: String,
    /// Nodes to launch, equal ones together, dearest groups first.
    pub nodes: Vec<NodeGroup>,
    /// Where the pods are.
    pub pods: PodTotals,
    /// Price of all nodes to launch.
    pub price_micro_usd_per_hour: i64,
    /// What they cost by the objective; absent where that is their price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_micro_usd_per_hour: Option<i64>,
    /// Part of the cost of each node that is not its price.
    pub node_fee_micro_usd_per_hour: i64,
    /// Part of the price for nodes that stand whether pods wait or not: neither bound nor gap
    /// speaks of them.
    pub standing_price_micro_usd_per_hour: i64,
    /// What no plan can cost less than; absent when nothing is launched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lower_bound: Option<Bound>,
    /// What becomes of the capacity buffers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub buffers: Vec<BufferRoom>,
    /// Pods that cannot be placed.
    pub unplaced: Vec<UnplacedGroup>,
    /// The answer to `--explain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Explanation>,
    /// What each step of the planner came to; only with `--steps`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    /// What the independent check found wrong with the plan; empty in a sound release.
    pub violations: Vec<String>,
    /// What the author of the input would want to know.
    pub warnings: Vec<String>,
    /// Time the planner took.
    pub plan_micros: u64,
}

/// Equal nodes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NodeGroup {
    /// How many.
    pub count: u32,
    /// Their pool.
    pub pool: String,
    /// Offerings that will do, least cost first.
    pub offerings: Vec<Offering>,
    /// True when no pod waits for them: replicas of their pool, or room of a buffer.
    pub standing: bool,
    /// Pods on each.
    pub pods_each: u32,
    /// What the pods of each request, DaemonSets included.
    pub requests: Amounts,
    /// What the cheapest offering has for pods.
    pub allocatable: Amounts,
}

/// CPU and memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Amounts {
    /// CPU in thousandths of a core.
    pub cpu_millis: i64,
    /// Memory in bytes.
    pub memory_bytes: i64,
}

/// Where the pods are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PodTotals {
    /// Pods that wanted a place.
    pub asked: u32,
    /// Placed on nodes to launch.
    pub on_new_nodes: u32,
    /// Placed on nodes that there are or that are on their way.
    pub on_existing_nodes: u32,
    /// Not placed.
    pub unplaced: u32,
}

/// What no plan can cost less than.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Bound {
    /// The bound, by the objective.
    pub price_micro_usd_per_hour: i64,
    /// True when its proof was checked by integer arithmetic.
    pub checked: bool,
    /// How far the cost without standing nodes lies above it, in millionths of the bound.
    pub gap_ppm: i64,
}

/// What becomes of a capacity buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BufferRoom {
    /// Its namespace and name.
    pub buffer: String,
    /// Pods of it that fit on nodes in service.
    pub in_service: i64,
    /// Pods of it that fit on nodes that are coming.
    pub coming: i64,
    /// Pods of it without room.
    pub unplaced: i64,
    /// Why, when there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
}

/// Equal pods that cannot be placed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UnplacedGroup {
    /// Their workload or name, such as `Deployment/web`.
    pub subject: String,
    /// Their namespace.
    pub namespace: String,
    /// How many.
    pub count: u32,
    /// Why.
    pub reason: Reason,
}

/// A step of the planner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// A verb.
    pub name: String,
    /// What it came to.
    pub outcome: String,
}

impl From<&PlanStep> for Step {
    fn from(from: &PlanStep) -> Self {
        Self { name: from.name.clone(), outcome: from.outcome.clone() }
    }
}

/// Why, as a tree down to the failing constraint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// Stable name.
    pub code: String,
    /// What it speaks of.
    pub subject: String,
    /// For people.
    pub message: String,
    /// Causes.
    pub causes: Vec<Reason>,
}

impl From<&wire::BufferRoom> for BufferRoom {
    fn from(from: &wire::BufferRoom) -> Self {
        Self {
            buffer: format!("{}/{}", from.namespace, from.name),
            in_service: from.in_service,
            coming: from.coming,
            unplaced: from.unplaced,
            reason: from.reason.as_ref().map(Reason::from),
        }
    }
}

impl From<&wire::Reason> for Reason {
    fn from(from: &wire::Reason) -> Self {
        Self {
            code: from.code.clone(),
            subject: from.subject.clone(),
            message: from.message.clone(),
            causes: from.causes.iter().map(Self::from).collect(),
        }
    }
}

/// Question and answer, with what is looked up in them.
pub struct Context<'a> {
    /// The question.
    pub question: &'a Question,
    /// Its answer.
    pub answer: &'a ComputePlanResponse,
    shapes: BTreeMap<&'a str, &'a wire::PodShape>,
    pods: BTreeMap<&'a str, &'a wire::Pod>,
    classes: BTreeMap<&'a str, &'a str>,
    types: BTreeMap<&'a str, Types<'a>>,
}

/// Instance types by name.
type Types<'a> = BTreeMap<&'a str, &'a wire::InstanceType>;

/// Stands for every node class without a catalogue of its own.
const ANY_CLASS: &str = "";

impl<'a> Context<'a> {
    /// Indexes a question and its answer.
    #[must_use]
    pub fn new(question: &'a Question, answer: &'a ComputePlanResponse) -> Self {
        let own = question.catalogues.iter().map(|(class, own)| (class.as_str(), own));
        let all = own.chain([(ANY_CLASS, &question.catalogue)]);
        let by_name = |catalogue: &'a wire::Catalogue| {
            catalogue.types.iter().map(|kind| (kind.name.as_str(), kind)).collect()
        };
        let mut context = Self {
            question,
            answer,
            shapes: BTreeMap::new(),
            pods: BTreeMap::new(),
            classes: BTreeMap::new(),
            types: all.map(|(class, catalogue)| (class, by_name(catalogue))).collect(),
        };
        question.objects.iter().for_each(|object| context.note(object));
        context
    }

    fn note(&mut self, object: &'a Object) {
        if let Some(Kind::PodShape(shape)) = &object.kind {
            self.shapes.insert(&shape.shape_id, shape);
        } else if let Some(Kind::Pod(pod)) = &object.kind {
            self.pods.insert(&pod.uid, pod);
        } else if let Some(Kind::NodePool(pool)) = &object.kind {
            self.classes.insert(&pool.name, &pool.node_class);
        }
    }

    /// The report, without what the caller knows better: region, warnings, explanation.
    #[must_use]
    pub fn report(&self) -> Report {
        let (answer, objective) = (self.answer, &self.question.settings.objective);
        Report {
            price_date: self.price_date(),
            nodes: self.groups(),
            pods: self.totals(),
            price_micro_usd_per_hour: answer.price_micro_usd_per_hour,
            cost_micro_usd_per_hour: Some(answer.cost_micro_usd_per_hour)
                .filter(|cost| *cost != answer.price_micro_usd_per_hour),
            node_fee_micro_usd_per_hour: objective.node_fee_micro_usd_per_hour,
            standing_price_micro_usd_per_hour: answer.standing_price_micro_usd_per_hour,
            lower_bound: self.bound(),
            buffers: answer.buffers.iter().map(BufferRoom::from).collect(),
            unplaced: answer.unplaced.iter().map(|left| self.unplaced(left)).collect(),
            violations: answer.violations.clone(),
            plan_micros: answer.plan_micros,
            ..Report::default()
        }
    }

    fn price_date(&self) -> String {
        let own = self.question.catalogues.values().next();
        own.unwrap_or(&self.question.catalogue).price_date.clone()
    }

    fn totals(&self) -> PodTotals {
        let mut totals = PodTotals::default();
        for placement in &self.answer.placements {
            match placement.target {
                Some(Target::Planned(_)) => totals.on_new_nodes += placement.count,
                Some(Target::Node(_) | Target::Claim(_)) | None => {
                    totals.on_existing_nodes += placement.count;
                }
            }
        }
        totals.unplaced = self.answer.unplaced.iter().map(|left| left.count).sum();
        totals.asked = totals.on_new_nodes + totals.on_existing_nodes + totals.unplaced;
        totals
    }

    fn bound(&self) -> Option<Bound> {
        let bound = self.answer.bound.as_ref().filter(|b| b.kind() != BoundKind::Unspecified)?;
        Some(Bound {
            price_micro_usd_per_hour: bound.price_micro_usd_per_hour,
            checked: bound.certificate_checked,
            gap_ppm: self.answer.gap_ppm,
        })
    }

    /// An offering of a pool's catalogue.
    #[must_use]
    pub fn offering(&self, pool: &str, candidate: &Candidate) -> Offering {
        let kind = self.kind(pool, candidate);
        let sold = kind.and_then(|kind| {
            let same = |o: &&wire::Offering| {
                o.zone == candidate.zone && o.capacity_type == candidate.capacity_type
            };
            kind.offerings.iter().find(same)
        });
        let price_estimated = sold.is_some_and(|o| o.price_estimated);
        Offering { price_estimated, ..Offering::from(candidate) }
    }

    fn kind(&self, pool: &str, candidate: &Candidate) -> Option<&'a wire::InstanceType> {
        let class = self.classes.get(pool).copied().unwrap_or(ANY_CLASS);
        let types = self.types.get(class).or_else(|| self.types.get(ANY_CLASS))?;
        types.get(candidate.instance_type.as_str()).copied()
    }

    fn unplaced(&self, left: &wire::Unplaced) -> UnplacedGroup {
        let shape = self.shapes.get(left.shape_id.as_str());
        let owner = shape.map(|shape| shape.owner.clone()).filter(|owner| !owner.is_empty());
        let names = left.pods.iter().filter_map(|uid| self.pods.get(uid.as_str()));
        let name = || names.map(|pod| format!("Pod/{}", pod.name)).next().unwrap_or_default();
        UnplacedGroup {
            subject: owner.unwrap_or_else(name),
            namespace: shape.map(|shape| shape.namespace.clone()).unwrap_or_default(),
            count: left.count,
            reason: left.reason.as_ref().map(Reason::from).unwrap_or_default(),
        }
    }
}
