//! Nodes with what is bound and nominated to them.
//!
//! Invariant: `used` of a node is the sum over its pods, whatever order events came in.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::Value;

use super::pod::PodView;
use super::quantity::Resources;
use super::shape::Taint;
use crate::cluster::object;
use crate::cluster::store::{Key, Stored};

/// One node.
#[derive(Clone, Debug)]
pub struct NodeInfo {
    /// The stored object; none while pods are bound to a node that is not there.
    pub stored: Option<Arc<Stored>>,
    /// Taints.
    pub taints: Vec<Taint>,
    /// True when cordoned.
    pub is_unschedulable: bool,
    /// What pods may use.
    pub allocatable: Resources,
    /// What pods use.
    pub used: Resources,
    /// Pods bound here that have not ended.
    pub pods: BTreeMap<Key, Arc<PodView>>,
    /// Pods nominated for this node and not bound.
    pub nominated: BTreeMap<Key, Arc<PodView>>,
}

impl NodeInfo {
    fn empty() -> Self {
        Self {
            stored: None,
            taints: Vec::new(),
            is_unschedulable: false,
            allocatable: Resources::default(),
            used: Resources::default(),
            pods: BTreeMap::new(),
            nominated: BTreeMap::new(),
        }
    }

    /// Value of one label.
    pub fn label(&self, key: &str) -> Option<&str> {
        object::label(&self.stored.as_ref()?.value, key)
    }

    fn describe(&mut self, stored: &Arc<Stored>) {
        let node = &stored.value;
        self.taints = Taint::of_node(node);
        self.is_unschedulable = node["spec"]["unschedulable"] == true;
        self.allocatable = Resources::of_json(&node["status"]["allocatable"]);
        self.stored = Some(Arc::clone(stored));
    }
}

/// All nodes, and where each pod is.
#[derive(Debug, Default)]
pub struct Nodes {
    nodes: BTreeMap<String, NodeInfo>,
    places: HashMap<Key, Place>,
    repelling: BTreeMap<Key, Arc<PodView>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Bound(String),
    Nominated(String),
}

impl Nodes {
    /// Nodes that exist, by name.
    pub fn existing(&self) -> impl Iterator<Item = (&str, &NodeInfo, &Value)> {
        let nodes = self.nodes.iter();
        nodes.filter_map(|(name, node)| Some((name.as_str(), node, &node.stored.as_ref()?.value)))
    }

    /// One node, if it exists.
    pub fn get(&self, name: &str) -> Option<(&NodeInfo, &Value)> {
        let node = self.nodes.get(name)?;
        Some((node, &node.stored.as_ref()?.value))
    }

    /// Bound pods with required anti-affinity.
    pub fn repelling(&self) -> impl Iterator<Item = &Arc<PodView>> {
        self.repelling.values()
    }

    /// Takes note of a node. True when something changed that a scheduler minds.
    pub fn apply_node(&mut self, name: &str, stored: &Arc<Stored>) -> bool {
        let node = self.nodes.entry(name.to_owned()).or_insert_with(NodeInfo::empty);
        let before = node.clone_head();
        node.describe(stored);
        before.is_none_or(|before| {
            let labels = |stored: &Arc<Stored>| stored.value["metadata"]["labels"].clone();
            before.taints != node.taints
                || before.is_unschedulable != node.is_unschedulable
                || before.allocatable != node.allocatable
                || before.stored.as_ref().map(labels) != node.stored.as_ref().map(labels)
        })
    }

    /// Takes note of a node's end.
    pub fn delete_node(&mut self, name: &str) {
        if let Some(node) = self.nodes.get_mut(name) {
            node.stored = None;
            if node.pods.is_empty() && node.nominated.is_empty() {
                self.nodes.remove(name);
            }
        }
    }

    /// Takes note of a pod. True when room or a nomination was given back.
    pub fn apply_pod(&mut self, pod: &Arc<PodView>) -> bool {
        let place = match (pod.is_terminal(), pod.node.as_str(), pod.nominated.as_str()) {
            (true, _, _) | (false, "", "") => None,
            (false, "", nominated) => Some(Place::Nominated(nominated.to_owned())),
            (false, node, _) => Some(Place::Bound(node.to_owned())),
        };
        let before = self.places.get(&pod.key).cloned();
        self.forget(&pod.key);
        if let Some(place) = place.clone() {
            self.settle(pod, place);
        }
        before.is_some_and(|before| place.as_ref() != Some(&before))
            && !matches!(place, Some(Place::Bound(_)))
    }

    /// Takes note of a pod's end. True when room or a nomination was given back.
    pub fn delete_pod(&mut self, key: &Key) -> bool {
        self.forget(key)
    }

    fn settle(&mut self, pod: &Arc<PodView>, place: Place) {
        match &place {
            Place::Bound(name) => {
                let node = self.nodes.entry(name.clone()).or_insert_with(NodeInfo::empty);
                node.used.add(&pod.shape.requests);
                node.pods.insert(pod.key.clone(), Arc::clone(pod));
                if !pod.shape.anti_affinity.is_empty() {
                    self.repelling.insert(pod.key.clone(), Arc::clone(pod));
                }
            }
            Place::Nominated(name) => {
                let node = self.nodes.entry(name.clone()).or_insert_with(NodeInfo::empty);
                node.nominated.insert(pod.key.clone(), Arc::clone(pod));
            }
        }
        self.places.insert(pod.key.clone(), place);
    }

    fn forget(&mut self, key: &Key) -> bool {
        let Some(place) = self.places.remove(key) else { return false };
        self.repelling.remove(key);
        let (Place::Bound(name) | Place::Nominated(name)) = &place;
        let Some(node) = self.nodes.get_mut(name) else { return true };
        if let Some(pod) = node.pods.remove(key) {
            node.used.subtract(&pod.shape.requests);
        }
        node.nominated.remove(key);
        if node.stored.is_none() && node.pods.is_empty() && node.nominated.is_empty() {
            self.nodes.remove(name);
        }
        true
    }
}

impl NodeInfo {
    /// The part that comes from the Node object; none when there is none.
    fn clone_head(&self) -> Option<Self> {
        let stored = self.stored.clone()?;
        Some(Self {
            stored: Some(stored),
            taints: self.taints.clone(),
            is_unschedulable: self.is_unschedulable,
            allocatable: self.allocatable.clone(),
            ..Self::empty()
        })
    }
}
