//! Status of node pools: how large they are, and why one can make no node.
//!
//! Invariant: `Ready` is false exactly when no pod whatever could get a node of the pool, for a
//! reason that waiting alone does not mend.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use longshore_core::reason::Obstacle;
use longshore_core::vocabulary::ids::PoolName;
use longshore_core::vocabulary::labels;
use longshore_core::vocabulary::resources::Resources;
use longshore_core::world::view::World;
use longshore_proto::cluster::v1::directive::Action;
use longshore_proto::cluster::v1::{Condition, SetNodePoolStatus};
use longshore_proto::types::v1::NodePool;
use prost::Message;

use super::outage::Outage;
use super::safety::Freeze;
use super::state::ClusterState;
use super::status::Written;
use crate::wire::resources;

/// The condition that launches depend on.
const READY: &str = "Ready";
/// The condition that repeats what the node class says.
const NODE_CLASS_READY: &str = "NodeClassReady";
/// The condition that says whether nodes may be ended by choice and on absence.
const DESTRUCTION_ALLOWED: &str = "DestructionAllowed";

/// What stands in the way of all pools alike.
#[derive(Clone, Copy, Default)]
pub struct Problems<'a> {
    /// Why nothing can be bought.
    pub outage: Option<&'a Outage>,
    /// Why nodes are not ended.
    pub freeze: Option<&'a Freeze>,
}

/// Directives that write the status of all pools; `closed` has the obstacles that a plan found.
#[must_use]
pub fn written(
    state: &ClusterState,
    closed: &BTreeMap<PoolName, Obstacle>,
    problems: Problems<'_>,
) -> Vec<Written> {
    let Problems { outage, freeze } = problems;
    let sizes = sizes(state.view().world());
    let of_pool = |(name, pool): (&String, &NodePool)| {
        let (nodes, resources) = sizes.get(name.as_str()).cloned().unwrap_or_default();
        let mut conditions = match (outage, state.unreadable_pools().get(name)) {
            (_, Some(error)) => vec![condition(READY, Some(("Invalid", &error.to_string())))],
            (Some(outage), None) => vec![condition(READY, Some((outage.reason, &outage.message)))],
            // A pool that no plan has seen yet has no status either.
            (None, None) => {
                let known = state.view().world().pools.get(name.as_str())?;
                match state.failing(name) {
                    Some(why) => {
                        let ready = condition(READY, Some(("NodesFail", &why)));
                        vec![condition(NODE_CLASS_READY, None), ready]
                    }
                    None => conditions(known.not_ready.as_deref(), closed.get(name.as_str())),
                }
            }
        };
        let frozen = freeze.map(|freeze| (freeze.reason, freeze.message.as_str()));
        conditions.push(condition(DESTRUCTION_ALLOWED, frozen));
        conditions.extend(state.rollout_condition(name));
        conditions.extend(state.registration(name));
        let resources = Some(resources::to_wire(&resources));
        let status = SetNodePoolStatus { pool: name.clone(), resources, nodes, conditions };
        let key = format!("pool-status/{name}");
        let content = digest(pool, &status, outage.is_some());
        Some(Written { key, content, action: Action::SetNodePoolStatus(status) })
    };
    state.pools().iter().filter_map(of_pool).collect()
}

fn conditions(class: Option<&str>, obstacle: Option<&Obstacle>) -> Vec<Condition> {
    let class = class.map(|why| ("NodeClassNotReady", why));
    let found = obstacle.map(|obstacle| (reason(obstacle), obstacle.to_string()));
    let ready = class.or_else(|| found.as_ref().map(|(reason, text)| (*reason, text.as_str())));
    vec![condition(NODE_CLASS_READY, class), condition(READY, ready)]
}

/// Name of an obstacle as conditions have it.
const fn reason(obstacle: &Obstacle) -> &'static str {
    match obstacle {
        Obstacle::NoCatalogue => "CatalogueUnknown",
        Obstacle::NoInstanceType { .. } => "NoInstanceType",
        Obstacle::NoOffering { .. } => "NoOffering",
        Obstacle::PlannerFails { .. } => "PlannerFails",
        Obstacle::None
        | Obstacle::NotWaiting
        | Obstacle::OptedOut
        | Obstacle::MinValues { .. }
        | Obstacle::TooManyValues { .. }
        | Obstacle::Reservations { .. }
        | Obstacle::Declared { .. }
        | Obstacle::Contradiction { .. }
        | Obstacle::NoPool
        | Obstacle::NoPoolAdmits
        | Obstacle::PoolNotReady { .. }
        | Obstacle::FixedReplicas
        | Obstacle::Taint { .. }
        | Obstacle::Requirement { .. }
        | Obstacle::TooLarge { .. }
        | Obstacle::DaemonSets { .. }
        | Obstacle::TooManyReplicas { .. }
        | Obstacle::Refused { .. }
        | Obstacle::Limit { .. }
        | Obstacle::Topology { .. } => "NotReady",
    }
}

fn condition(kind: &str, problem: Option<(&str, &str)>) -> Condition {
    let (reason, message) = problem.unwrap_or((kind, ""));
    Condition {
        r#type: kind.to_owned(),
        status: Some(problem.is_none()),
        reason: reason.to_owned(),
        message: message.to_owned(),
    }
}

/// Number and capacity of every pool's nodes.
#[must_use]
pub fn sizes(world: &World) -> BTreeMap<&str, (u32, Resources)> {
    let mut sizes: BTreeMap<&str, (u32, Resources)> = BTreeMap::new();
    for node in world.nodes.values() {
        let Some(pool) = node.labels.get(labels::NODE_POOL) else { continue };
        let known = if node.capacity.is_zero() { &node.allocatable } else { &node.capacity };
        let (count, sum) = sizes.entry(pool).or_default();
        *count += 1;
        *sum = sum.plus(known);
    }
    sizes
}

/// Digest of what is worth writing. In an outage the text follows every attempt to reach the
/// region, and counts for nothing. The pool counts: one that was mended has a status that is not
/// ours.
fn digest(pool: &NodePool, status: &SetNodePoolStatus, outage: bool) -> String {
    let mut status = status.clone();
    if outage {
        status.conditions.iter_mut().for_each(|condition| condition.message.clear());
    }
    let mut hasher = DefaultHasher::new();
    status.encode_to_vec().hash(&mut hasher);
    pool.encode_to_vec().hash(&mut hasher);
    format!("{:x}", hasher.finish())
}
