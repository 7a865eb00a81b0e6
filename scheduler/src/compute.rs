//! ComputePlan as a function: a described world in, a priced plan with its proof out.
//!
//! Invariant: no effect and no session; the service, the command line and tests all ask here.

mod parts;

use std::collections::BTreeMap;
use std::sync::Arc;

use longshore_core::answer::Plan;
use longshore_core::answer::steps::Planned;
use longshore_core::catalogue::Catalogue;
use longshore_core::check;
use longshore_core::ids::CatalogueId;
use longshore_core::offers::overlaid;
use longshore_core::question::{Effort, PlanInput};
use longshore_core::world::view::{Change, ClusterView};
use longshore_proto::planning::v1 as planning;
use longshore_proto::types::v1;
use longshore_proto::types::v1::object::Kind;

pub use parts::parts;

use crate::settings::Settings;
use crate::wire::pool::Supply;
use crate::wire::{self, WireError};

/// Separates the shape of counted pods from their number in the UIDs made up for them.
const COUNTED: &str = "#";

/// A described world.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// Objects; shapes before the pods that use them.
    pub objects: Vec<v1::Object>,
    /// Pods without names.
    pub pods: Vec<v1::PodCount>,
    /// Types on offer to every pool whose node class is not in `catalogues`.
    pub catalogue: v1::Catalogue,
    /// Types on offer in a live region, when the question brought none of its own.
    pub live: Option<Arc<Catalogue>>,
    /// Types on offer by node class, when they differ.
    pub catalogues: BTreeMap<String, v1::Catalogue>,
    /// How hard to try.
    pub effort: planning::Effort,
    /// Time the plan is for, in milliseconds since 1970; 0 means no time-dependent rule.
    pub now_ms: i64,
    /// Pods to explain: UIDs, and shape ids of counted pods.
    pub explain: Vec<String>,
    /// What is minimised, and how policies of pools are taken.
    pub settings: Settings,
}

/// Plans a described world.
///
/// # Errors
/// The first object that cannot be read, by name and field.
pub fn compute(question: &Question) -> Result<planning::ComputePlanResponse, WireError> {
    let started = tokio::time::Instant::now();
    let input = input(question)?;
    let Planned { plan, steps } = longshore_core::plan_in_steps(&input);
    let plan_micros = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
    let violations = check::check(&plan, &input);
    Ok(planning::ComputePlanResponse {
        nodes: plan.launches.iter().map(wire::plan::planned_node).collect(),
        placements: grouped(wire::plan::placements(&plan)),
        unplaced: plan.unplaced.iter().map(unplaced).collect(),
        price_micro_usd_per_hour: plan.launch_price_micro_usd_per_hour,
        cost_micro_usd_per_hour: plan.launch_cost_micro_usd_per_hour,
        bound: Some(wire::plan::bound(&plan.bound)),
        violations: violations.iter().map(ToString::to_string).collect(),
        warnings: warnings(question, &plan),
        plan_micros,
        standing_price_micro_usd_per_hour: standing_price(&plan),
        gap_ppm: plan.gap_ppm,
        buffers: wire::plan::buffers(&plan),
        explanations: wire::explanation::all(&input, &plan, &question.explain),
        steps: steps.told().into_iter().map(step).collect(),
    })
}

fn step((name, outcome): (&str, String)) -> planning::PlanStep {
    planning::PlanStep { name: name.to_owned(), outcome }
}

/// What the nodes cost that no pod waits for.
fn standing_price(plan: &Plan) -> i64 {
    let standing = plan.launches.iter().filter(|node| node.standing);
    let cheapest = standing.filter_map(|node| node.candidates.first());
    cheapest.map(|candidate| candidate.price_micro_usd_per_hour).sum()
}

/// The planner's input for a question.
///
/// # Errors
/// The first object that cannot be read, by name and field.
pub fn input(question: &Question) -> Result<PlanInput, WireError> {
    let mut view = ClusterView::new();
    for object in &question.objects {
        let Some(kind) = &object.kind else { continue };
        let change = match kind {
            Kind::NodePool(pool) => Some(Change::Pool(read_pool(pool, question)?)),
            Kind::Pod(pod) => Some(Change::Pod(read_pod(pod)?)),
            Kind::PodShape(_)
            | Kind::Node(_)
            | Kind::NodeClaim(_)
            | Kind::NodeClass(_)
            | Kind::DaemonSet(_)
            | Kind::DisruptionBudget(_)
            | Kind::Namespace(_)
            | Kind::Cluster(_)
            | Kind::NodeOverlay(_)
            | Kind::CapacityBuffer(_)
            | Kind::Unreadable(_) => wire::object::change(kind)?,
        };
        if let Some(change) = change {
            view.apply(change);
        }
    }
    for group in &question.pods {
        counted(group, &mut view)?;
    }
    let catalogues = catalogues(question)?;
    Ok(question.settings.applied(PlanInput {
        overlaid: overlaid(view.world(), &catalogues).catalogues,
        world: view.snapshot(),
        catalogues,
        now_ms: question.now_ms,
        effort: effort(question.effort),
        ..PlanInput::default()
    }))
}

/// No kube-scheduler looks at a described world, so every pod without a node waits for the planner.
fn read_pod(wire: &v1::Pod) -> Result<longshore_core::world::pod::Pod, WireError> {
    let mut pod = wire::pod::pod(wire)?;
    pod.unschedulable |= pod.node.is_none();
    Ok(pod)
}

fn read_pool(
    pool: &v1::NodePool,
    question: &Question,
) -> Result<longshore_core::pool::NodePool, WireError> {
    let own = question.catalogues.get(&pool.node_class);
    let catalogue = match (own, &question.live) {
        (Some(own), _) => own.catalogue_id.clone(),
        (None, Some(live)) => live.id.to_string(),
        (None, None) => question.catalogue.catalogue_id.clone(),
    };
    let supply = Supply { catalogue, ..Supply::default() };
    wire::pool::pool(pool, &supply, question.now_ms)
}

fn catalogues(question: &Question) -> Result<BTreeMap<CatalogueId, Arc<Catalogue>>, WireError> {
    let all = question.catalogues.values().chain([&question.catalogue]);
    let read = all.map(|wire| {
        let catalogue = wire::catalogue::catalogue(wire)?;
        Ok((catalogue.id.clone(), Arc::new(catalogue)))
    });
    let live = question.live.iter().map(|live| Ok((live.id.clone(), Arc::clone(live))));
    read.chain(live).collect()
}

/// Makes up rows for counted pods, which differ in nothing but their number.
fn counted(group: &v1::PodCount, view: &mut ClusterView) -> Result<(), WireError> {
    let known = view.world().shapes.get(group.shape_id.as_str()).cloned();
    let Some(shape) = known else {
        let problem = "no shape of that id came before the count; send the shape first";
        return Err(WireError::field("shape_id", problem).of("PodCount", &group.shape_id));
    };
    // Parts of a count may come one by one, after each other.
    let counted = view.world().pending().filter(|(of, _)| **of == shape.id).map(|(_, pods)| pods);
    let known = counted.flat_map(|pods| pods.keys()).filter(|uid| is_counted(uid.as_str()));
    let first = u32::try_from(known.count()).unwrap_or(u32::MAX);
    for number in (0..group.count).map(|number| first.saturating_add(number)) {
        let name = format!("{}{COUNTED}{number:08}", group.shape_id);
        view.apply(Change::Pod(longshore_core::world::pod::Pod {
            key: longshore_core::ids::ObjectKey::new(&shape.namespace, &name),
            uid: name.into(),
            shape: shape.id.clone(),
            unschedulable: true,
            ..Default::default()
        }));
    }
    Ok(())
}

/// True for the UID of a pod that was made up.
fn is_counted(uid: &str) -> bool {
    uid.contains(COUNTED)
}

/// Joins the placements of counted pods of one shape on one target.
fn grouped(placements: Vec<v1::Placement>) -> Vec<v1::Placement> {
    let mut joined: Vec<v1::Placement> = Vec::new();
    for mut placement in placements {
        let Some((shape, _)) = placement.pod.split_once(COUNTED) else {
            joined.push(placement);
            continue;
        };
        placement.pod = shape.to_owned();
        let same = |known: &&mut v1::Placement| {
            known.pod == placement.pod && known.target == placement.target
        };
        match joined.last_mut().filter(|known| same(known)) {
            Some(known) => known.count += 1,
            None => joined.push(placement),
        }
    }
    joined
}

fn unplaced(core: &longshore_core::answer::Unplaced) -> v1::Unplaced {
    let mut wire = wire::plan::unplaced(core);
    wire.pods.retain(|pod| !is_counted(pod));
    wire
}

const fn effort(wire: planning::Effort) -> Effort {
    match wire {
        planning::Effort::Greedy => Effort::Greedy,
        planning::Effort::Default | planning::Effort::Unspecified => Effort::Default,
        planning::Effort::Max => Effort::Max,
    }
}

/// What the caller should know about its input.
fn warnings(question: &Question, plan: &Plan) -> Vec<String> {
    let mut warnings = Vec::new();
    let estimated = question.catalogue.types.iter().flat_map(|kind| &kind.offerings);
    if plan.launches.is_empty() {
        return warnings;
    }
    if estimated.filter(|offering| offering.price_estimated).count() > 0 {
        let date = &question.catalogue.price_date;
        warnings.push(format!("some prices of {date} are estimates; see the region's own prices"));
    }
    warnings
}

#[cfg(test)]
mod tests;
