//! Nodes, what they can attach, and claims in the index.
//!
//! Invariant: of nodes and claims everything is kept that the loops and directives compare with
//! what should be before they write. A node of the view has what its CSINode says it can attach and
//! the devices of its ResourceSlices, in whichever order they come.

mod kept;

use std::sync::Arc;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::storage::v1::CSINode;
use longshore_proto::types::v1 as wire;
use longshore_proto::types::v1::ObjectKind;
use longshore_proto::types::v1::object::Kind;

pub(super) use self::kept::Nodes;
use super::{Index, Key, Name, Source, Watched, name_of};
use crate::api::NodeClaim;
use crate::project::{Fault, attachments, claim, devices, node};

impl Watched for Node {
    const SOURCE: Source = Source::Node;

    fn apply(self, index: &mut Index) -> Result<(), Fault> {
        let row = node::node(&self)?;
        index.nodes.put(self);
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
        let row = self.node(name).and_then(|node| node::node(&node).ok());
        if let Some(row) = row {
            self.show_node(row);
        }
    }

    /// A node, with of its status only what it can give, and its conditions without messages.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<Node> {
        self.nodes.get(name)
    }

    /// Names of all nodes, in order.
    pub fn node_names(&self) -> impl Iterator<Item = &str> {
        self.nodes.names()
    }

    /// Nodes with this provider id, by name.
    pub fn nodes_with_provider_id(&self, id: &str) -> impl Iterator<Item = Node> {
        self.nodes.with_provider_id(id).filter_map(|name| self.node(name))
    }

    /// Nodes that were deleted and wait for their claims to let them go, by name.
    pub fn held_nodes(&self) -> impl Iterator<Item = Node> {
        self.nodes.held()
    }

    /// The value of a label on each node that has it, by name of the node.
    pub fn node_labels(&self, key: &str) -> impl Iterator<Item = (&Arc<str>, &str)> {
        self.nodes.label(key)
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
    pub fn node_of(&self, claim: &NodeClaim) -> Option<Node> {
        let status = claim.status.as_ref()?;
        let id = status.provider_id.as_deref().unwrap_or_default();
        let is_own = |name: &str| {
            let theirs = self.nodes.provider_id(name);
            theirs.is_some_and(|theirs| id.is_empty() || theirs.is_empty() || theirs == id)
        };
        let named = status.node_name.as_deref().filter(|name| is_own(name));
        let of_instance = || Some(&**self.nodes.with_provider_id(id).next()?);
        self.node(named.or_else(of_instance)?)
    }
}
