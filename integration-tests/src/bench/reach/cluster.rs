//! Clusters that stand in memory only, as their watchers would show them.
//!
//! Invariant: a number and a size make one cluster. Its nodes have room for the pods that wait.

use longshore_manifests::neutral::{POOL, ZONES, pod_requests};
use longshore_proto::capacity::v1::{InstancePhase, InstanceState};
use longshore_proto::types::v1::object::Kind;
use longshore_proto::types::v1::{
    CapacityType, ClusterFacts, ConsolidationPolicy, Disruption, Node, NodeClaim, NodeClass,
    NodePool, Object, Pod, PodPhase, PodShape,
};
use prost_types::Timestamp;

use crate::bench::worlds::node_labels;

/// Name of the region.
pub const REGION: &str = "reach-1";
/// The node class of all clusters.
pub const CLASS: &str = "default";
/// Type of every node.
const NODE_TYPE: &str = "r5.4xlarge";
const NODE_CPU_MILLIS: i64 = 15_890;
const NODE_MEMORY_MIB: i64 = 118 << 10;
const NODE_PODS: i64 = 234;
/// When all of it was made, in seconds since 1970.
const MADE: i64 = 1_700_000_000;

/// How large each cluster is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Nodes of each.
    pub nodes: u32,
    /// Pods that run on each node.
    pub pods_each: u32,
}

/// One cluster.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// Its name.
    pub name: String,
    size: Size,
}

impl Cluster {
    /// The cluster of this number.
    #[must_use]
    pub fn new(number: u32, size: Size) -> Self {
        Self { name: format!("reach-{number:04}"), size }
    }

    /// Everything in it, what others refer to first.
    #[must_use]
    pub fn objects(&self) -> Vec<Object> {
        let mut all = vec![self.facts(), class(), pool()];
        all.extend([("runs", 1_000, 8 << 10), ("small", 500, 1 << 10)].map(shape));
        for number in 0..self.size.nodes {
            let (node, claim) = self.node(number);
            let pods = (0..self.size.pods_each).map(|place| pod("runs", number, place, &node.name));
            all.extend(pods.map(Kind::Pod));
            all.extend([Kind::NodeClaim(claim), Kind::Node(node)]);
        }
        all.into_iter().map(|kind| Object { kind: Some(kind) }).collect()
    }

    /// Its instances, as an actuator shows them.
    pub fn instances(&self) -> impl Iterator<Item = InstanceState> {
        (0..self.size.nodes).map(|number| InstanceState {
            instance_id: self.instance_id(number),
            launch_id: format!("l-{}-{number}", self.name),
            cluster_id: self.name.clone(),
            claim: claim_name(number),
            pool: POOL.to_owned(),
            instance_type: NODE_TYPE.to_owned(),
            zone: zone(number).to_owned(),
            capacity_type: CapacityType::OnDemand.into(),
            phase: InstancePhase::Running.into(),
            launch_time: Some(made()),
            ..InstanceState::default()
        })
    }

    /// A pod of this number that has no node yet.
    #[must_use]
    pub fn waiting(&self, number: u64) -> Pod {
        Pod {
            uid: format!("{}-waiting-{number:08}", self.name),
            namespace: "default".to_owned(),
            name: format!("waiting-{number}"),
            shape_id: "small".to_owned(),
            phase: PodPhase::Pending.into(),
            unschedulable: true,
            create_time: Some(made()),
            ..Pod::default()
        }
    }

    fn facts(&self) -> Kind {
        Kind::Cluster(ClusterFacts {
            name: self.name.clone(),
            region: REGION.to_owned(),
            ..ClusterFacts::default()
        })
    }

    fn instance_id(&self, number: u32) -> String {
        format!("i-{}-{number:05}", self.name)
    }

    fn node(&self, number: u32) -> (Node, NodeClaim) {
        let name = format!("node-{number:05}");
        let zone = zone(number);
        let mut allocatable = pod_requests(NODE_CPU_MILLIS, NODE_MEMORY_MIB);
        allocatable.pods = NODE_PODS;
        let node = Node {
            name: name.clone(),
            provider_id: format!("aws:///{zone}/{}", self.instance_id(number)),
            labels: node_labels(&name, zone, NODE_TYPE, POOL),
            allocatable: Some(allocatable.clone()),
            ready: true,
            create_time: Some(made()),
            ..Node::default()
        };
        let claim = NodeClaim {
            name: claim_name(number),
            pool: POOL.to_owned(),
            node_class: CLASS.to_owned(),
            labels: node.labels.clone(),
            launch_id: format!("l-{}-{number}", self.name),
            provider_id: node.provider_id.clone(),
            node_name: name,
            instance_type: NODE_TYPE.to_owned(),
            zone: zone.to_owned(),
            capacity_type: CapacityType::OnDemand.into(),
            allocatable: Some(allocatable),
            create_time: Some(made()),
            register_time: Some(made()),
            initialize_time: Some(made()),
            ..NodeClaim::default()
        };
        (node, claim)
    }
}

fn class() -> Kind {
    Kind::NodeClass(NodeClass { name: CLASS.to_owned(), ..NodeClass::default() })
}

/// Nothing of it ends by choice: what is measured is how pods find their places.
fn pool() -> Kind {
    let disruption =
        Disruption { policy: ConsolidationPolicy::WhenEmpty.into(), ..Disruption::default() };
    Kind::NodePool(NodePool {
        name: POOL.to_owned(),
        node_class: CLASS.to_owned(),
        disruption: Some(disruption),
        ..NodePool::default()
    })
}

fn shape((id, cpu_millis, memory_mib): (&str, i64, i64)) -> Kind {
    Kind::PodShape(PodShape {
        shape_id: id.to_owned(),
        namespace: "default".to_owned(),
        owner: format!("Deployment/{id}"),
        requests: Some(pod_requests(cpu_millis, memory_mib)),
        ..PodShape::default()
    })
}

fn pod(shape: &str, node: u32, place: u32, node_name: &str) -> Pod {
    Pod {
        uid: format!("00000000-0000-0000-0000-{node:05}{place:07}"),
        namespace: "default".to_owned(),
        name: format!("{shape}-{node}-{place}"),
        shape_id: shape.to_owned(),
        node_name: node_name.to_owned(),
        phase: PodPhase::Running.into(),
        create_time: Some(made()),
        ..Pod::default()
    }
}

fn claim_name(number: u32) -> String {
    format!("claim-{number:05}")
}

fn zone(number: u32) -> &'static str {
    ZONES[number as usize % ZONES.len()]
}

const fn made() -> Timestamp {
    Timestamp { seconds: MADE, nanos: 0 }
}
