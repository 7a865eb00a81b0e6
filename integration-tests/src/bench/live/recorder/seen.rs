//! What has been seen of a run so far, with a mark for each change.
//!
//! Invariant: pure; what changes nothing leaves no mark. Marks are in order of time.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt as _;
use longshore_lab::instance::{Instance, InstanceState};
use serde::{Deserialize, Serialize};

use crate::bench::numbers::count;
use crate::stage::eyes;

/// Taint of a node that is being emptied.
const EMPTYING: &str = "karpenter.sh/disrupted";

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Mark {
    /// When, in milliseconds from the start of the recording.
    pub at_ms: u64,
    /// What.
    #[serde(flatten)]
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(tag = "of", rename_all = "kebab-case")]
pub enum What {
    /// A pod is in another state.
    Pod {
        /// Its name.
        name: String,
        /// The state.
        is: PodState,
    },
    /// A node is in another state.
    Node {
        /// Its name.
        name: String,
        /// The state.
        is: NodeState,
    },
    /// A NodeClaim is in another state.
    Claim {
        /// Its name.
        name: String,
        /// The state.
        is: ClaimState,
    },
    /// An instance was launched, or has ended.
    Instance {
        /// EC2's id.
        id: String,
        /// Type and zone.
        offering: String,
        /// Whether it is pending or running.
        is_alive: bool,
    },
    /// Instances that are pending or running, and what an hour of them costs.
    Capacity(Capacity),
    /// The contender called AWS.
    Cloud {
        /// For example `ec2:CreateFleet`.
        api: String,
        /// Whether it was refused.
        failed: bool,
    },
    /// The contender asked the API server.
    Api {
        /// For example `patch`.
        verb: String,
        /// With its subresource, for example `pods/status`.
        resource: String,
        /// Whether it was refused.
        failed: bool,
    },
}

/// What a cluster holds and costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Capacity {
    /// Instances.
    pub instances: u64,
    /// Their price.
    pub micro_usd_per_hour: u64,
}

/// State of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PodState {
    /// Not bound.
    Waiting,
    /// Bound, not running yet.
    Bound,
    /// Running.
    Running,
    /// Being deleted, or at its end.
    Ending,
    /// Deleted.
    Gone,
}

/// State of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeState {
    /// There, not Ready.
    Joined,
    /// Ready, and closed to plain pods by a taint.
    Ready,
    /// Ready, and open to them.
    Open,
    /// Being emptied.
    Emptying,
    /// Deleted.
    Gone,
}

/// State of a NodeClaim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimState {
    /// There.
    Made,
    /// Being deleted.
    Ending,
    /// Deleted.
    Gone,
}

/// Everything so far.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Every change.
    pub marks: Vec<Mark>,
    /// Pods that run.
    pub running: usize,
    /// Pods that do not run yet.
    pub waiting: usize,
    /// Why the marks cannot be relied on.
    pub fault: Option<String>,
    pods: BTreeMap<String, (PodState, Option<String>)>,
    nodes: BTreeMap<String, NodeState>,
    claims: BTreeMap<String, ClaimState>,
    instances: BTreeMap<String, bool>,
    capacity: Capacity,
}

/// What is there.
impl Seen {
    /// Names of all pods that wait or run.
    #[must_use]
    pub fn pods(&self) -> Vec<String> {
        self.live().map(|(name, _)| name.clone()).collect()
    }

    /// Whether one of these pods waits or runs.
    #[must_use]
    pub fn has_any_of(&self, pods: &[String]) -> bool {
        pods.iter().any(|name| self.pods.get(name).is_some_and(|(is, _)| is.is_live()))
    }

    /// Whether a pod runs on one of these nodes.
    #[must_use]
    pub fn runs_on_any_of(&self, nodes: &[String]) -> bool {
        self.live().any(|(_, node)| node.as_ref().is_some_and(|node| nodes.contains(node)))
    }

    /// Names of all nodes.
    #[must_use]
    pub fn nodes(&self) -> Vec<String> {
        let there = self.nodes.iter().filter(|(_, is)| **is != NodeState::Gone);
        there.map(|(name, _)| name.clone()).collect()
    }

    /// Whether one of these nodes is there.
    #[must_use]
    pub fn has_node_of(&self, nodes: &[String]) -> bool {
        let is_there =
            |name: &String| self.nodes.get(name).is_some_and(|is| *is != NodeState::Gone);
        nodes.iter().any(is_there)
    }

    fn live(&self) -> impl Iterator<Item = (&String, &Option<String>)> {
        let live = self.pods.iter().filter(|(_, (is, _))| is.is_live());
        live.map(|(name, (_, node))| (name, node))
    }
}

impl PodState {
    const fn is_live(self) -> bool {
        matches!(self, Self::Waiting | Self::Bound | Self::Running)
    }

    const fn is_early(self) -> bool {
        matches!(self, Self::Waiting | Self::Bound)
    }

    fn of(pod: &Pod) -> Self {
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        match phase {
            _ if pod.metadata.deletion_timestamp.is_some() => Self::Ending,
            Some("Succeeded" | "Failed") => Self::Ending,
            Some("Running") => Self::Running,
            _ if pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some()) => Self::Bound,
            _ => Self::Waiting,
        }
    }
}

impl NodeState {
    fn of(node: &Node) -> Self {
        let taints = || node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
        if node.metadata.deletion_timestamp.is_some() || taints().any(|it| it.key == EMPTYING) {
            return Self::Emptying;
        }
        let closed = taints().any(|it| it.effect != "PreferNoSchedule");
        match (eyes::is_ready(node), closed) {
            (false, _) => Self::Joined,
            (true, true) => Self::Ready,
            (true, false) => Self::Open,
        }
    }
}

/// What is seen anew; each says whether that was a change.
impl Seen {
    /// A pod, or its end.
    pub fn pod(&mut self, at_ms: u64, pod: &Pod, is_gone: bool) -> bool {
        let is = if is_gone { PodState::Gone } else { PodState::of(pod) };
        let (name, node) = (pod.name_any(), pod.spec.as_ref().and_then(|it| it.node_name.clone()));
        let before = self.pods.insert(name.clone(), (is, node)).map(|(before, _)| before);
        if before == Some(is) {
            return false;
        }
        self.running += usize::from(is == PodState::Running);
        self.running -= usize::from(before == Some(PodState::Running));
        self.waiting += usize::from(is.is_early());
        self.waiting -= usize::from(before.is_some_and(PodState::is_early));
        self.mark(at_ms, What::Pod { name, is })
    }

    /// A node, or its end.
    pub fn node(&mut self, at_ms: u64, node: &Node, is_gone: bool) -> bool {
        let is = if is_gone { NodeState::Gone } else { NodeState::of(node) };
        let name = node.name_any();
        let is_new = self.nodes.insert(name.clone(), is) != Some(is);
        is_new && self.mark(at_ms, What::Node { name, is })
    }

    /// A NodeClaim, or its end.
    pub fn claim(&mut self, at_ms: u64, name: &str, is: ClaimState) -> bool {
        let name = name.to_owned();
        let is_new = self.claims.insert(name.clone(), is) != Some(is);
        is_new && self.mark(at_ms, What::Claim { name, is })
    }

    /// All instances, and what those cost that live.
    pub fn instances(&mut self, at_ms: u64, all: &[Instance], micro_usd_per_hour: u64) -> bool {
        let before = self.marks.len();
        let mut alive = 0;
        for instance in all {
            let is_alive = instance.state <= InstanceState::Running;
            alive += usize::from(is_alive);
            let id = instance.instance_id.clone();
            if self.instances.insert(id.clone(), is_alive) != Some(is_alive) {
                let market = if instance.spot { "spot" } else { "on-demand" };
                let Instance { instance_type, zone, .. } = instance;
                let offering = format!("{instance_type} {market} {zone}");
                self.mark(at_ms, What::Instance { id, offering, is_alive });
            }
        }
        let capacity = Capacity { instances: count(alive), micro_usd_per_hour };
        if capacity != self.capacity {
            self.capacity = capacity;
            self.mark(at_ms, What::Capacity(capacity));
        }
        self.marks.len() > before
    }

    fn mark(&mut self, at_ms: u64, what: What) -> bool {
        self.marks.push(Mark { at_ms, what });
        true
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str, phase: &str) -> Pod {
        serde_json::from_value(json!({
            "metadata": { "name": name },
            "spec": { "containers": [], "nodeName": "n" },
            "status": { "phase": phase },
        }))
        .unwrap()
    }

    #[test]
    fn pods_are_counted_by_their_last_state() {
        let mut seen = Seen::default();
        assert!(seen.pod(1, &pod("a", "Pending"), false));
        assert!(!seen.pod(2, &pod("a", "Pending"), false), "nothing has changed");
        assert!(seen.pod(3, &pod("b", "Running"), false));
        assert_eq!((seen.waiting, seen.running), (1, 1));
        assert!(
            seen.pod(4, &pod("a", "Running"), false) && seen.pod(5, &pod("b", "Failed"), false)
        );
        assert_eq!((seen.waiting, seen.running), (0, 1));
        assert!(seen.pod(6, &pod("b", "Failed"), true));
        let names = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        assert_eq!(seen.pods(), names(&["a"]));
        assert!(seen.has_any_of(&names(&["a", "b"])) && !seen.has_any_of(&names(&["b"])));
        assert!(seen.runs_on_any_of(&names(&["n"])) && !seen.runs_on_any_of(&names(&["m"])));
        assert_eq!(seen.marks.len(), 5);
    }

    #[test]
    fn nodes_are_seen_to_be_emptied() {
        let mut node: Node = serde_json::from_value(json!({
            "metadata": { "name": "n" },
            "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
        }))
        .unwrap();
        let mut seen = Seen::default();
        assert!(seen.node(1, &node, false) && !seen.node(2, &node, false));
        node.spec = serde_json::from_value(json!({
            "taints": [{ "key": EMPTYING, "effect": "NoSchedule" }],
        }))
        .unwrap();
        assert!(seen.node(3, &node, false));
        let last = seen.marks.last().map(|mark| mark.what.clone());
        assert_eq!(last, Some(What::Node { name: "n".to_owned(), is: NodeState::Emptying }));
        let named = seen.nodes();
        assert!(seen.has_node_of(&named) && named == ["n"]);
        assert!(seen.node(4, &node, true));
        assert!(!seen.has_node_of(&named) && seen.nodes().is_empty());
    }
}
