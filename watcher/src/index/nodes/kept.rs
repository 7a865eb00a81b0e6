//! Nodes as the index keeps them: as text, without what nobody here asks for, and labels apart.
//!
//! Invariant: what is kept of a node says the same to whoever projects it, compares it or edits it
//! as the whole one. Most labels are those of many nodes, and are kept once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, NodeCondition, NodeStatus};
use kube::ResourceExt as _;

use crate::names;

/// A node.
#[derive(Debug)]
struct Kept {
    /// As JSON, without its labels.
    text: Box<str>,
    /// By key.
    labels: Box<[Arc<Label>]>,
    /// Empty when it has none.
    provider_id: Arc<str>,
    /// True when it was deleted and waits for its claim to let it go.
    is_held: bool,
}

/// All nodes.
#[derive(Debug, Default)]
pub(in crate::index) struct Nodes {
    by_name: BTreeMap<Arc<str>, Kept>,
    /// Names by provider id.
    by_provider: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    /// Labels of all of them, once each.
    labels: Labels,
}

/// A label.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Label {
    key: Box<str>,
    value: Box<str>,
}

impl Nodes {
    /// Keeps a node.
    pub(super) fn put(&mut self, mut node: Node) {
        let name: Arc<str> = node.name_any().into();
        self.remove(&name);
        let id = node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref());
        let provider_id: Arc<str> = id.unwrap_or_default().into();
        if !provider_id.is_empty() {
            let names = self.by_provider.entry(Arc::clone(&provider_id)).or_default();
            names.insert(Arc::clone(&name));
        }
        let held = node.finalizers().iter().any(|it| it == names::TERMINATION);
        let is_held = node.metadata.deletion_timestamp.is_some() && held;
        let labels = node.metadata.labels.take().into_iter().flatten();
        let labels = labels.map(|label| self.labels.share(label)).collect();
        // It was read from such a text.
        let text = serde_json::to_string(&stripped(node)).unwrap_or_default().into();
        self.by_name.insert(name, Kept { text, labels, provider_id, is_held });
    }

    /// Forgets a node.
    pub(super) fn remove(&mut self, name: &str) {
        let Some(kept) = self.by_name.remove(name) else { return };
        if let Some(names) = self.by_provider.get_mut(&kept.provider_id) {
            names.remove(name);
            if names.is_empty() {
                self.by_provider.remove(&kept.provider_id);
            }
        }
        for label in kept.labels {
            self.labels.give_back(label);
        }
    }

    /// True when there is a node of that name.
    pub(in crate::index) fn contains(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// Names, in order.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(AsRef::as_ref)
    }

    /// A node by its name.
    pub(super) fn get(&self, name: &str) -> Option<Node> {
        Some(self.by_name.get(name)?.node())
    }

    /// Provider id of a node, empty when it has none.
    pub(super) fn provider_id(&self, name: &str) -> Option<&str> {
        Some(&*self.by_name.get(name)?.provider_id)
    }

    /// Names of the nodes with a provider id.
    pub(super) fn with_provider_id(&self, id: &str) -> impl Iterator<Item = &Arc<str>> {
        self.by_provider.get(id).into_iter().flatten()
    }

    /// Nodes that were deleted and wait for their claims to let them go, by name.
    pub(super) fn held(&self) -> impl Iterator<Item = Node> {
        self.by_name.values().filter(|kept| kept.is_held).map(Kept::node)
    }

    /// The value of a label on each node that has it, by name of the node.
    pub(super) fn label(&self, key: &str) -> impl Iterator<Item = (&Arc<str>, &str)> {
        let nodes = self.by_name.iter();
        nodes.filter_map(move |(name, kept)| Some((name, kept.label(key)?)))
    }
}

impl Kept {
    fn node(&self) -> Node {
        // It was written here.
        let mut node: Node = serde_json::from_str(&self.text).unwrap_or_default();
        let label = |label: &Arc<Label>| (label.key.to_string(), label.value.to_string());
        let labels = self.labels.iter().map(label);
        node.metadata.labels =
            Some(labels.collect()).filter(|labels: &BTreeMap<_, _>| !labels.is_empty());
        node
    }

    fn label(&self, key: &str) -> Option<&str> {
        let place = self.labels.binary_search_by(|label| (*label.key).cmp(key)).ok()?;
        Some(&self.labels[place].value)
    }
}

/// Labels that many have, once each.
#[derive(Debug, Default)]
struct Labels(BTreeSet<Arc<Label>>);

impl Labels {
    fn share(&mut self, (key, value): (String, String)) -> Arc<Label> {
        let label = Label { key: key.into(), value: value.into() };
        if let Some(known) = self.0.get(&label) {
            return Arc::clone(known);
        }
        let label = Arc::new(label);
        self.0.insert(Arc::clone(&label));
        label
    }

    /// A label is not kept once no node has it.
    fn give_back(&mut self, label: Arc<Label>) {
        if Arc::strong_count(&label) <= 2 {
            self.0.remove(&label);
        }
    }
}

/// A node without what only its kubelet and people look at. Conditions stay where they are: writes
/// know them by their place.
fn stripped(mut node: Node) -> Node {
    node.metadata.managed_fields = None;
    let told = |condition: NodeCondition| NodeCondition {
        type_: condition.type_,
        status: condition.status,
        last_transition_time: condition.last_transition_time,
        ..NodeCondition::default()
    };
    node.status = node.status.map(|status| NodeStatus {
        allocatable: status.allocatable,
        capacity: status.capacity,
        conditions: status.conditions.map(|all| all.into_iter().map(told).collect()),
        ..NodeStatus::default()
    });
    node
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use serde_json::json;

    use super::*;
    use crate::project;

    fn node(name: &str, id: &str) -> Node {
        serde_json::from_value(json!({
            "metadata": {
                "name": name, "uid": format!("uid-{name}"), "resourceVersion": "7",
                "labels": { "zone": format!("zone-of-{name}"), "other": "x" },
                "managedFields": [{ "manager": "kubelet" }],
            },
            "spec": {
                "providerID": id,
                "taints": [{ "key": "a", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z" }],
            },
            "status": {
                "allocatable": { "cpu": "1930m" }, "capacity": { "cpu": "2" },
                "conditions": [
                    { "type": "KernelReady", "status": "False", "message": "much to say",
                      "lastHeartbeatTime": "2026-01-01T00:09:00Z",
                      "lastTransitionTime": "2026-01-01T00:00:00Z" },
                    { "type": "Ready", "status": "True" },
                ],
                "images": [{ "names": ["i"], "sizeBytes": 1 }],
                "nodeInfo": {
                    "architecture": "amd64", "bootID": "", "containerRuntimeVersion": "",
                    "kernelVersion": "", "kubeProxyVersion": "", "kubeletVersion": "",
                    "machineID": "", "operatingSystem": "", "osImage": "", "systemUUID": "",
                },
            },
        }))
        .unwrap()
    }

    #[test]
    fn what_is_kept_is_told_and_edited_like_the_whole() {
        let whole = node("n", "aws:///z/i-1");
        let mut nodes = Nodes::default();
        nodes.put(whole.clone());
        let kept = nodes.get("n").unwrap();
        assert_eq!(project::node::node(&kept).unwrap(), project::node::node(&whole).unwrap());
        let metadata = ObjectMeta { managed_fields: None, ..whole.metadata.clone() };
        assert_eq!((&kept.spec, &kept.metadata), (&whole.spec, &metadata));
        let kinds = |node: &Node| {
            let conditions = node.status.clone().unwrap().conditions.unwrap();
            conditions.into_iter().map(|it| (it.type_, it.status)).collect::<Vec<_>>()
        };
        assert_eq!(kinds(&kept), kinds(&whole), "in their places");
        let text = serde_json::to_string(&kept).unwrap();
        let gone = ["much to say", "sizeBytes", "bootID", "manager", "00:09"];
        assert!(gone.iter().all(|part| !text.contains(part)), "{text}");
    }

    #[test]
    fn a_node_is_found_by_its_instance_for_as_long_as_it_says_so() {
        let mut nodes = Nodes::default();
        let named = |nodes: &Nodes, id: &str| {
            nodes.with_provider_id(id).map(|name| name.to_string()).collect::<Vec<_>>()
        };
        nodes.put(node("b", "i-1"));
        nodes.put(node("a", "i-1"));
        nodes.put(node("c", ""));
        assert_eq!(named(&nodes, "i-1"), ["a", "b"]);
        assert!(named(&nodes, "").is_empty() && nodes.provider_id("c") == Some(""));
        nodes.put(node("b", "i-2"));
        assert_eq!(
            (named(&nodes, "i-1"), named(&nodes, "i-2")),
            (vec!["a".into()], vec!["b".into()])
        );
        nodes.remove("a");
        assert!(nodes.by_provider.len() == 1 && !nodes.contains("a") && nodes.get("a").is_none());
        let zones: Vec<_> = nodes.label("zone").map(|(name, zone)| (&**name, zone)).collect();
        assert_eq!(zones, [("b", "zone-of-b"), ("c", "zone-of-c")]);
        assert_eq!(nodes.label("none").count(), 0);
        let labels: Vec<(&str, &str)> =
            nodes.labels.0.iter().map(|label| (&*label.key, &*label.value)).collect();
        assert_eq!(labels, [("other", "x"), ("zone", "zone-of-b"), ("zone", "zone-of-c")]);
    }

    #[test]
    fn a_node_that_was_deleted_is_held_by_our_finalizer_only() {
        let deleted = |name: &str, finalizer: &str| {
            let mut node = node(name, "");
            node.metadata.finalizers = Some(vec![finalizer.to_owned()]);
            let time = json!("2026-01-01T00:00:00Z");
            node.metadata.deletion_timestamp = Some(serde_json::from_value(time).unwrap());
            node
        };
        let mut nodes = Nodes::default();
        nodes.put(deleted("ours", names::TERMINATION));
        nodes.put(deleted("theirs", "example.com/other"));
        nodes.put(node("stays", ""));
        assert_eq!(nodes.held().map(|node| node.name_any()).collect::<Vec<_>>(), ["ours"]);
    }
}
