//! One plan: computed, and looked at a second time.
//!
//! Invariant: what the independent check refuses is never carried out, and costs only what it is
//! about.

mod figures;

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use longshore_core::answer::{Plan, Target};
use longshore_core::check::{self, Violation};
use longshore_core::explain::{NodeAnswer, explain_nodes};
use longshore_core::question::PlanInput;
use longshore_core::reason::Obstacle;
use longshore_core::vocabulary::ids::{ClaimName, NodeName, PodUid, PoolName};
use longshore_core::vocabulary::taint::DISRUPTED;
use longshore_core::world::view::World;
use longshore_runtime::{planted, propagate};
use tracing::Span;

use super::foresight::{self, Coming, Kept};
use super::quarantine::{self, LeftOut, Suspect};
use crate::counters::Figures;

/// Most refusals of one plan that are logged one by one.
const VIOLATIONS_TOLD: usize = 20;

/// A computed plan with what it was computed from.
pub struct Proposal {
    /// Number of the plan in its session.
    pub plan_id: String,
    /// The plan.
    pub plan: Arc<Plan>,
    /// Pools that can make no node, and why.
    pub closed: BTreeMap<PoolName, Obstacle>,
    /// Claims whose nodes had been told to open before it was computed.
    pub opening: BTreeSet<ClaimName>,
    /// Claims whose nodes were seen with the taint of those that are to go.
    pub tainted: BTreeSet<ClaimName>,
    /// For each launch, whether more pods like those that wait would not better it.
    pub certain: Vec<bool>,
    /// Pods that have a place and wait, and come before those of the other launches.
    pub ahead: usize,
    /// Places of pods that are still to come; none of these is named.
    pub kept: Kept,
    /// Nodes on which pods wait for others to end: kube-scheduler finds these by itself.
    pub awaited: BTreeSet<NodeName>,
    /// What nodes of each pool count as made from, which the pools it was computed with are.
    pub drift_hashes: BTreeMap<String, String>,
    /// What keeps nodes, when that was asked.
    pub holds: Option<Vec<NodeAnswer>>,
    /// What metrics show of it.
    pub figures: Figures,
    /// Its span: effects of the plan belong to the same trace.
    pub span: Span,
}

/// Makes a plan that counts on pods to come, as [`foresight::plan`] does.
pub type Planner = fn(PlanInput, &Coming) -> (PlanInput, Plan);

/// What a plan is asked for.
pub struct Asked {
    /// The question.
    pub input: PlanInput,
    /// Pods that are to come.
    pub coming: Coming,
    /// Name of the plan.
    pub plan_id: String,
    /// Whether what keeps nodes is to be said.
    pub looks: bool,
    /// Its span.
    pub span: Span,
    /// What is not in the question.
    pub left_out: LeftOut,
    /// What nodes of each pool count as made from.
    pub drift_hashes: BTreeMap<String, String>,
}

/// Plans, with pods that are to come, and asks for a second opinion.
#[must_use]
pub fn propose(asked: Asked, planner: Planner) -> Option<Proposal> {
    let Asked { input, coming, plan_id, looks, span, left_out, drift_hashes } = asked;
    let _entered = span.enter();
    let (input, plan) = planner(input, &coming);
    let (mut plan, violations) = check::cut(plan, &input);
    report(&plan_id, &violations);
    if planted::is("S16") && !violations.is_empty() {
        return None;
    }
    let certain = longshore_core::answer::certain(&plan, &input);
    let holds = looks.then(|| explain_nodes(&input, &plan));
    let kept = foresight::strip(&mut plan, &input.world);
    let ahead = ahead(&plan, &input.world, &certain);
    let awaited = foresight::awaited(&plan, &input);
    span.record("refused", violations.len());
    span.record("placed", plan.placements.len());
    span.record("launches", plan.launches.len());
    span.record("unplaced", plan.unplaced.len());
    span.record("disruptions", plan.disruptions.len());
    let mut closed = longshore_core::offers::closed_pools(&input);
    left_out.tell(&mut plan, &mut closed);
    let figures = figures::of(&input, &plan, holds.as_deref());
    let tainted = tainted(&input.world);
    Some(Proposal {
        plan_id,
        plan: Arc::new(plan),
        closed,
        opening: input.opening,
        tainted,
        certain,
        ahead,
        kept,
        awaited,
        drift_hashes,
        holds,
        figures,
        span: span.clone(),
    })
}

/// How many pods kube-scheduler comes to before those of launches that are not certain: all that
/// have a place elsewhere, unless these are of higher priority.
pub(super) fn ahead(plan: &Plan, world: &World, certain: &[bool]) -> usize {
    let shape = |pod: &PodUid| world.pods.get(pod).and_then(|pod| world.shape_of(pod));
    let priority = |pod: &PodUid| shape(pod).map(|shape| shape.priority);
    let is_held = |target: &Target| match target {
        Target::New(at) => !certain.get(*at).copied().unwrap_or_default(),
        Target::Node(_) | Target::Claim(_) => false,
    };
    let (held, others): (Vec<_>, Vec<_>) =
        plan.placements.iter().partition(|placement| is_held(&placement.target));
    let highest = held.iter().filter_map(|placement| priority(&placement.pod)).max();
    others.iter().filter(|placement| priority(&placement.pod) >= highest).count()
}

/// What the planner fails on, or whoever looks after it.
#[must_use]
pub fn at_fault(input: &PlanInput, coming: &Coming, planner: Planner) -> BTreeSet<Suspect> {
    quarantine::find(input, |tried| {
        let planned = || {
            let (input, plan) = planner(tried.clone(), coming);
            let (plan, _) = check::cut(plan, &input);
            longshore_core::answer::certain(&plan, &input)
        };
        catch_unwind(AssertUnwindSafe(planned)).is_err()
    })
}

/// The span of a plan, which belongs to the traces of all that asked for it.
pub(super) fn span(cluster: &str, plan_id: &str, traceparents: &[String]) -> Span {
    let span = tracing::info_span!(
        "scheduler.plan",
        cluster,
        plan_id,
        placed = tracing::field::Empty,
        launches = tracing::field::Empty,
        unplaced = tracing::field::Empty,
        disruptions = tracing::field::Empty,
        refused = tracing::field::Empty,
    );
    let mut traceparents = traceparents.iter();
    if let Some(first) = traceparents.next() {
        propagate::set_parent(&span, first);
    }
    traceparents.for_each(|other| propagate::add_link(&span, other));
    span
}

/// A mistake of the planner costs what it is about, and somebody has to hear of it.
fn report(plan_id: &str, violations: &[Violation]) {
    for violation in violations.iter().take(VIOLATIONS_TOLD) {
        let rule = format!("{:?}", violation.rule);
        tracing::error!(plan_id, rule, %violation, "part of a plan refused by the independent check");
    }
    if violations.len() > VIOLATIONS_TOLD {
        let untold = violations.len() - VIOLATIONS_TOLD;
        tracing::error!(plan_id, untold, "more parts of the plan were refused");
    }
}

fn tainted(world: &World) -> BTreeSet<ClaimName> {
    let tainted = |node: &NodeName| {
        let node = world.nodes.get(node);
        node.is_some_and(|node| node.taints.iter().any(|taint| taint.key == DISRUPTED))
    };
    let claims = world.claims_by_node().into_iter();
    claims.filter(|(node, _)| tainted(node)).map(|(_, claim)| claim.name.clone()).collect()
}
