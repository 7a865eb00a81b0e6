//! Nodes, what they can attach, and claims in the index.
//!
//! Invariant: nodes and claims are kept as they were read, because the loops and directives compare
//! what is with what should be before they write. A node of the view has what its CSINode says it
//! can attach and the devices of its ResourceSlices, in whichever order they come.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::storage::v1::CSINode;
use longshore_proto::types::v1 as wire;
use longshore_proto::types::v1::ObjectKind;
use longshore_proto::types::v1::object::Kind;

use super::{Index, Key, Name, Source, Watched, name_of};
use crate::api::NodeClaim;
use crate::project::{Fault, attachments, claim, devices, node};

impl Watched for Node {
    const SOURCE: Source = Source::Node;

    fn apply(mut self, index: &mut Index) -> Result<(), Fault> {
        let row = node::node(&self)?;
        let (_, name) = name_of(&self.metadata);
        self.metadata.managed_fields = None;
        if let Some(status) = &mut self.status {
            status.images = None;
        }
        index.nodes.insert(name, Arc::new(self));
        index.show_node(row);
        Ok(())
    }

    fn forget(index: &mut Index, (_, name): &Name) {
        index.nodes.remove(name);
        index.touched.remove(name);
        index.view.remove(&Key::new(ObjectKind::Node, name));
    }
}

impl Watched for CSINode {
    const SOURCE: Source = Source::CSINode;

    fn apply(self, index: &mut Index) -> Result<(), Fault> {
        let (_, name) = name_of(&self.metadata);
        index.attachable.insert(name.clone(), attachments::limits(&self));
        index.show_node_again(&name);
        Ok(())
    }

    fn forget(index: &mut Index, (_, name): &Name) {
        index.attachable.remove(name);
        index.show_node_again(name);
    }
}

impl Watched for NodeClaim {
    const SOURCE: Source = Source::NodeClaim;

    fn apply(mut self, index: &mut Index) -> Result<(), Fault> {
        let mut row = claim::claim(&self)?;
        let (_, name) = name_of(&self.metadata);
        self.metadata.managed_fields = None;
        index.see_going(&name, self.metadata.deletion_timestamp.is_some());
        row.blockers = index.blockers(&name).to_vec();
        index.claims.insert(name, Arc::new(self));
        index.view.put(Kind::NodeClaim(row));
        Ok(())
    }

    fn forget(index: &mut Index, (_, name): &Name) {
        index.claims.remove(name);
        index.see_going(name, false);
        index.planned.remove(name);
        index.view.remove(&Key::new(ObjectKind::NodeClaim, name));
    }
}

impl Index {
    fn show_node(&mut self, mut row: wire::Node) {
        let devices = self.offered_devices(&row.name);
        devices::offer(devices, row.allocatable.get_or_insert_default());
        if let Some(limits) = self.attachable.get(&row.name) {
            attachments::write(limits, row.allocatable.get_or_insert_default());
        }
        self.view.put(Kind::Node(row));
    }

    pub(super) fn show_node_again(&mut self, name: &str) {
        // It was read before, so it can be read again.
        let row = self.nodes.get(name).and_then(|node| node::node(node).ok());
        if let Some(row) = row {
            self.show_node(row);
        }
    }

    /// A node.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<&Arc<Node>> {
        self.nodes.get(name)
    }

    /// All nodes, by name.
    pub fn nodes(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.nodes.values()
    }

    /// A claim.
    #[must_use]
    pub fn claim(&self, name: &str) -> Option<&Arc<NodeClaim>> {
        self.claims.get(name)
    }

    /// All claims, by name.
    pub fn claims(&self) -> impl Iterator<Item = &Arc<NodeClaim>> {
        self.claims.values()
    }

    /// The node of a claim: the one it names, or the one with its provider id. A node of that name
    /// with another provider id is another instance's, which has the address of the first.
    #[must_use]
    pub fn node_of(&self, claim: &NodeClaim) -> Option<&Arc<Node>> {
        let status = claim.status.as_ref()?;
        let id = status.provider_id.as_deref().filter(|id| !id.is_empty());
        let own = |node: &&Arc<Node>| {
            let theirs = node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref());
            id.zip(theirs).is_none_or(|(id, theirs)| theirs.is_empty() || theirs == id)
        };
        let named = status.node_name.as_deref().and_then(|name| self.nodes.get(name));
        if let Some(node) = named.filter(own) {
            return Some(node);
        }
        let id = Some(id?);
        self.nodes.values().find(|n| n.spec.as_ref().and_then(|s| s.provider_id.as_deref()) == id)
    }
}
