//! Worlds for the cases that files of bare numbers cannot describe.
//!
//! Invariant: a seed and a size make one world. Nodes are r5.4xlarge in three zones, as large as a
//! node with tens of pods usually is.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow};
use longshore_core::ids::ObjectKey;
use longshore_core::labels;
use longshore_core::question::PlanInput;
use longshore_core::resources::Resources;
use longshore_core::world::claim::NodeClaim;
use longshore_core::world::node::Node;
use longshore_core::world::pod::{Pod, PodPhase};
use longshore_core::world::shape::PodShape;
use longshore_core::world::view::{Change, ClusterView};
use longshore_manifests::neutral::{self, Demand, POOL, ZONES};
use longshore_scheduler::compute::{self, Question};

use super::catalogues::Pool;
use super::objective::least_price;
use super::workloads::classes;

const NODES: u32 = 10_000;
const NODE_TYPE: &str = "r5.4xlarge";
/// What such a node has for pods.
const NODE_CPU_MILLIS: i64 = 15_890;
const NODE_MEMORY_BYTES: i64 = 118 << 30;
const NODE_PODS: i64 = 234;
/// What already runs on each node of [`large`].
const BOUND_CPU_MILLIS: i64 = 8_000;
const BOUND_MEMORY_BYTES: i64 = 60 << 30;

/// A thousand pods in 200 classes, and an empty cluster.
///
/// # Errors
/// When the embedded facts cannot be read.
pub fn small(seed: u64) -> Result<PlanInput> {
    asked(&classes(200, 5, seed))
}

/// A hundred thousand pods in 500 classes, and 10,000 nodes, each half full. No pool owns the
/// nodes, so the plan is about the pods only.
///
/// # Errors
/// When the embedded facts cannot be read.
pub fn large() -> Result<PlanInput> {
    let mut input = asked(&classes(500, 200, 0))?;
    let mut view = ClusterView::default();
    let pools = input.world.pools.values().map(|pool| Change::Pool((**pool).clone()));
    let shapes = input.world.shapes.values().map(|shape| Change::Shape((**shape).clone()));
    let pods = input.world.pods.values().map(|pod| Change::Pod((**pod).clone()));
    for change in pools.chain(shapes).chain(pods) {
        view.apply(change);
    }
    let requests = Resources::pod(BOUND_CPU_MILLIS, BOUND_MEMORY_BYTES);
    view.apply(Change::Shape(PodShape { id: "bound".into(), requests, ..PodShape::default() }));
    for number in 0..NODES {
        let node = node(number);
        view.apply(Change::Pod(bound(&format!("bound-{number:06}"), "bound", &node)));
        view.apply(Change::Node(node));
    }
    input.world = view.snapshot();
    Ok(input)
}

/// A hundred thousand pods in 500 classes on 10,000 nodes with their claims.
#[must_use]
pub fn resident() -> ClusterView {
    let mut view = ClusterView::default();
    for (number, row) in classes(500, 200, 0).into_iter().enumerate() {
        let id = format!("shape-{number:06}");
        let requests = Resources::pod(row.cpu_millis, row.memory_mib << 20);
        let owner = format!("Deployment/{id}");
        view.apply(Change::Shape(PodShape {
            id: id.as_str().into(),
            namespace: "default".to_owned(),
            owner,
            requests,
            ..PodShape::default()
        }));
    }
    for number in 0..NODES {
        let node = node(number);
        view.apply(Change::Claim(claim(number, &node)));
        for place in 0..10 {
            let pod = number * 10 + place;
            let shape = format!("shape-{:06}", pod % 500);
            view.apply(Change::Pod(bound(&format!("pod-{pod:08}"), &shape, &node)));
        }
        view.apply(Change::Node(node));
    }
    view
}

fn asked(rows: &[Demand]) -> Result<PlanInput> {
    let (objects, pods) = neutral::objects(rows);
    let catalogue = neutral::from_rows(&Pool::Cmr.rows()?).map_err(|error| anyhow!(error))?;
    let settings = least_price();
    let question = Question { objects, pods, catalogue, settings, ..Question::default() };
    Ok(compute::input(&question)?)
}

fn node(number: u32) -> Node {
    let name = format!("node-{number:06}");
    let zone = ZONES[number as usize % ZONES.len()];
    let mut allocatable = Resources::pod(NODE_CPU_MILLIS, NODE_MEMORY_BYTES);
    allocatable.pods = NODE_PODS;
    Node {
        name: name.as_str().into(),
        provider_id: format!("aws:///{zone}/i-{number:017}"),
        labels: node_labels(&name, zone, NODE_TYPE, POOL),
        capacity: allocatable.clone(),
        allocatable,
        ready: true,
        ..Node::default()
    }
}

/// Labels of a node on demand.
pub(crate) fn node_labels(
    name: &str,
    zone: &str,
    instance_type: &str,
    pool: &str,
) -> BTreeMap<String, String> {
    let all = [
        (labels::HOSTNAME, name),
        (labels::ZONE, zone),
        (labels::ARCH, "amd64"),
        (labels::OS, "linux"),
        (labels::INSTANCE_TYPE, instance_type),
        (labels::CAPACITY_TYPE, "on-demand"),
        (labels::NODE_POOL, pool),
    ];
    all.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

fn claim(number: u32, node: &Node) -> NodeClaim {
    NodeClaim {
        name: format!("claim-{number:06}").into(),
        pool: POOL.into(),
        labels: node.labels.clone(),
        provider_id: node.provider_id.clone(),
        node: Some(node.name.clone()),
        instance_type: Some(NODE_TYPE.into()),
        zone: node.labels.get(labels::ZONE).map(|zone| zone.as_str().into()),
        allocatable: node.allocatable.clone(),
        registered_ms: Some(0),
        initialized_ms: Some(0),
        ..NodeClaim::default()
    }
}

fn bound(name: &str, shape: &str, node: &Node) -> Pod {
    Pod {
        key: ObjectKey::new("default", name),
        uid: name.into(),
        shape: shape.into(),
        node: Some(node.name.clone()),
        phase: PodPhase::Running,
        ..Pod::default()
    }
}
