//! Nodes and claims in the index.
//!
//! Invariant: both are kept as they were read, because the loops and directives compare what is
//! with what should be before they write.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Node;
use longshore_proto::types::v1::ObjectKind;
use longshore_proto::types::v1::object::Kind;

use super::{Index, Key, Name, Source, Watched, name_of};
use crate::api::NodeClaim;
use crate::project::{Fault, claim, node};

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
        index.view.put(Kind::Node(row));
        Ok(())
    }

    fn forget(index: &mut Index, (_, name): &Name) {
        index.nodes.remove(name);
        index.touched.remove(name);
        index.view.remove(&Key::new(ObjectKind::Node, name));
    }
}

impl Watched for NodeClaim {
    const SOURCE: Source = Source::NodeClaim;

    fn apply(mut self, index: &mut Index) -> Result<(), Fault> {
        let row = claim::claim(&self)?;
        let (_, name) = name_of(&self.metadata);
        self.metadata.managed_fields = None;
        index.claims.insert(name, Arc::new(self));
        index.view.put(Kind::NodeClaim(row));
        Ok(())
    }

    fn forget(index: &mut Index, (_, name): &Name) {
        index.claims.remove(name);
        index.planned.remove(name);
        index.view.remove(&Key::new(ObjectKind::NodeClaim, name));
    }
}

impl Index {
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

    /// The node of a claim: the one it names, or the one with its provider id.
    #[must_use]
    pub fn node_of(&self, claim: &NodeClaim) -> Option<&Arc<Node>> {
        let status = claim.status.as_ref()?;
        if let Some(node) = status.node_name.as_deref().and_then(|name| self.nodes.get(name)) {
            return Some(node);
        }
        let id = status.provider_id.as_deref().filter(|id| !id.is_empty())?;
        self.nodes
            .values()
            .find(|n| n.spec.as_ref().and_then(|s| s.provider_id.as_deref()) == Some(id))
    }
}
