//! A cluster as it is known, kept in step by single changes.
//!
//! Invariant: the result depends only on the set of objects, never on the order they came in; the
//! indexes always equal what a full pass over the objects would give. A snapshot is a reference:
//! the view copies itself on the next change, so a plan can be made while changes come in.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::vocabulary::ids::{
    ClaimName, NodeName, ObjectKey, OverlayName, PodUid, PoolName, ShapeId,
};
use crate::vocabulary::overlay::NodeOverlay;
use crate::vocabulary::pool::NodePool;
use crate::world::budget::{DaemonSet, DisruptionBudget};
use crate::world::buffer::CapacityBuffer;
use crate::world::claim::NodeClaim;
use crate::world::node::Node;
use crate::world::pod::Pod;
use crate::world::shape::PodShape;

/// One step from a view to the next.
#[derive(Clone, Debug)]
pub enum Change {
    /// A pod shape is new or has changed.
    Shape(PodShape),
    /// A pod is new or has changed.
    Pod(Pod),
    /// A node is new or has changed.
    Node(Node),
    /// A claim is new or has changed.
    Claim(NodeClaim),
    /// A pool is new or has changed.
    Pool(NodePool),
    /// A DaemonSet is new or has changed.
    DaemonSet(DaemonSet),
    /// A disruption budget is new or has changed.
    Budget(DisruptionBudget),
    /// An overlay is new or has changed.
    Overlay(NodeOverlay),
    /// A capacity buffer is new or has changed.
    Buffer(CapacityBuffer),
    /// An object is gone. Removing an unknown object changes nothing.
    Remove(ObjectRef),
}

/// Names one object of a view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectRef {
    /// A pod shape.
    Shape(ShapeId),
    /// A pod.
    Pod(PodUid),
    /// A node.
    Node(NodeName),
    /// A claim.
    Claim(ClaimName),
    /// A pool.
    Pool(PoolName),
    /// A DaemonSet.
    DaemonSet(ObjectKey),
    /// A disruption budget.
    Budget(ObjectKey),
    /// An overlay.
    Overlay(OverlayName),
    /// A capacity buffer.
    Buffer(ObjectKey),
}

/// Pods by UID.
pub type PodSet = BTreeMap<PodUid, Arc<Pod>>;

/// Everything known about a cluster at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct World {
    /// Pod shapes.
    pub shapes: BTreeMap<ShapeId, Arc<PodShape>>,
    /// Pods.
    pub pods: BTreeMap<PodUid, Arc<Pod>>,
    /// Nodes.
    pub nodes: BTreeMap<NodeName, Arc<Node>>,
    /// Claims.
    pub claims: BTreeMap<ClaimName, Arc<NodeClaim>>,
    /// Pools.
    pub pools: BTreeMap<PoolName, Arc<NodePool>>,
    /// DaemonSets.
    pub daemon_sets: BTreeMap<ObjectKey, DaemonSet>,
    /// Disruption budgets.
    pub budgets: BTreeMap<ObjectKey, DisruptionBudget>,
    /// Overlays; what they make of the catalogues is for the caller to work out.
    pub overlays: BTreeMap<OverlayName, NodeOverlay>,
    /// Capacity buffers.
    pub buffers: BTreeMap<ObjectKey, CapacityBuffer>,
    pending: BTreeMap<ShapeId, PodSet>,
    by_node: BTreeMap<NodeName, PodSet>,
}

/// A cluster kept in step by changes.
#[derive(Clone, Debug, Default)]
pub struct ClusterView {
    world: Arc<World>,
}

impl ClusterView {
    /// An empty view.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A view of a world as it stands.
    #[must_use]
    pub fn of(world: Arc<World>) -> Self {
        Self { world }
    }

    /// Applies one change and says whether anything differs now.
    pub fn apply(&mut self, change: Change) -> bool {
        if self.world.already_shows(&change) {
            return false;
        }
        let world = Arc::make_mut(&mut self.world);
        match change {
            Change::Shape(shape) => drop(world.shapes.insert(shape.id.clone(), Arc::new(shape))),
            Change::Pod(pod) => world.put_pod(pod),
            Change::Node(node) => drop(world.nodes.insert(node.name.clone(), Arc::new(node))),
            Change::Claim(claim) => drop(world.claims.insert(claim.name.clone(), Arc::new(claim))),
            Change::Pool(pool) => drop(world.pools.insert(pool.name.clone(), Arc::new(pool))),
            Change::DaemonSet(set) => drop(world.daemon_sets.insert(set.key.clone(), set)),
            Change::Budget(budget) => drop(world.budgets.insert(budget.key.clone(), budget)),
            Change::Overlay(overlay) => {
                drop(world.overlays.insert(overlay.name.clone(), overlay));
            }
            Change::Buffer(buffer) => drop(world.buffers.insert(buffer.key.clone(), buffer)),
            Change::Remove(object) => world.remove(&object),
        }
        true
    }

    /// Removes one object and says whether it was there.
    pub fn remove(&mut self, object: ObjectRef) -> bool {
        self.apply(Change::Remove(object))
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        self.world = Arc::default();
    }

    /// The view as it is now; costs a reference count.
    #[must_use]
    pub fn snapshot(&self) -> Arc<World> {
        Arc::clone(&self.world)
    }

    /// The view as it is now, to look at.
    #[must_use]
    pub fn world(&self) -> &World {
        &self.world
    }
}

impl World {
    /// Pods that wait for a node, by shape.
    pub fn pending(&self) -> impl Iterator<Item = (&ShapeId, &PodSet)> {
        self.pending.iter()
    }

    /// Pods bound to a node, in order of UID.
    pub fn pods_on(&self, node: &NodeName) -> impl Iterator<Item = &Arc<Pod>> {
        self.by_node.get(node).into_iter().flat_map(BTreeMap::values)
    }

    /// The shape of a pod; none when it has not arrived, and then the pod is not planned.
    #[must_use]
    pub fn shape_of(&self, pod: &Pod) -> Option<&Arc<PodShape>> {
        self.shapes.get(&pod.shape)
    }

    /// The claim that made a node: by its own record of the name, else by provider id.
    #[must_use]
    pub fn claims_by_node(&self) -> BTreeMap<NodeName, Arc<NodeClaim>> {
        let by_provider: BTreeMap<&str, &NodeName> = self
            .nodes
            .values()
            .filter(|node| !node.provider_id.is_empty())
            .map(|node| (node.provider_id.as_str(), &node.name))
            .collect();
        let owned = self.claims.values().filter_map(|claim| {
            let by_id = by_provider.get(claim.provider_id.as_str()).copied();
            let node = claim.node.as_ref().filter(|node| self.nodes.contains_key(*node));
            node.or(by_id).map(|node| (node.clone(), Arc::clone(claim)))
        });
        owned.collect()
    }

    fn already_shows(&self, change: &Change) -> bool {
        match change {
            Change::Shape(s) => self.shapes.get(&s.id).is_some_and(|known| **known == *s),
            Change::Pod(p) => self.pods.get(&p.uid).is_some_and(|known| **known == *p),
            Change::Node(n) => self.nodes.get(&n.name).is_some_and(|known| **known == *n),
            Change::Claim(c) => self.claims.get(&c.name).is_some_and(|known| **known == *c),
            Change::Pool(p) => self.pools.get(&p.name).is_some_and(|known| **known == *p),
            Change::DaemonSet(set) => self.daemon_sets.get(&set.key) == Some(set),
            Change::Budget(budget) => self.budgets.get(&budget.key) == Some(budget),
            Change::Overlay(overlay) => self.overlays.get(&overlay.name) == Some(overlay),
            Change::Buffer(buffer) => self.buffers.get(&buffer.key) == Some(buffer),
            Change::Remove(object) => !self.contains(object),
        }
    }

    fn contains(&self, object: &ObjectRef) -> bool {
        match object {
            ObjectRef::Shape(id) => self.shapes.contains_key(id),
            ObjectRef::Pod(uid) => self.pods.contains_key(uid),
            ObjectRef::Node(name) => self.nodes.contains_key(name),
            ObjectRef::Claim(name) => self.claims.contains_key(name),
            ObjectRef::Pool(name) => self.pools.contains_key(name),
            ObjectRef::DaemonSet(key) => self.daemon_sets.contains_key(key),
            ObjectRef::Budget(key) => self.budgets.contains_key(key),
            ObjectRef::Overlay(name) => self.overlays.contains_key(name),
            ObjectRef::Buffer(key) => self.buffers.contains_key(key),
        }
    }

    fn put_pod(&mut self, pod: Pod) {
        self.unlink_pod(&pod.uid);
        let pod = Arc::new(pod);
        let set = match &pod.node {
            Some(node) => self.by_node.entry(node.clone()).or_default(),
            None => self.pending.entry(pod.shape.clone()).or_default(),
        };
        set.insert(pod.uid.clone(), Arc::clone(&pod));
        self.pods.insert(pod.uid.clone(), pod);
    }

    fn unlink_pod(&mut self, uid: &PodUid) {
        let Some(pod) = self.pods.remove(uid) else { return };
        match &pod.node {
            Some(node) => unlink(&mut self.by_node, node, uid),
            None => unlink(&mut self.pending, &pod.shape, uid),
        }
    }

    fn remove(&mut self, object: &ObjectRef) {
        match object {
            ObjectRef::Shape(id) => drop(self.shapes.remove(id)),
            ObjectRef::Pod(uid) => self.unlink_pod(uid),
            ObjectRef::Node(name) => drop(self.nodes.remove(name)),
            ObjectRef::Claim(name) => drop(self.claims.remove(name)),
            ObjectRef::Pool(name) => drop(self.pools.remove(name)),
            ObjectRef::DaemonSet(key) => drop(self.daemon_sets.remove(key)),
            ObjectRef::Budget(key) => drop(self.budgets.remove(key)),
            ObjectRef::Overlay(name) => drop(self.overlays.remove(name)),
            ObjectRef::Buffer(key) => drop(self.buffers.remove(key)),
        }
    }
}

fn unlink<K: Ord>(index: &mut BTreeMap<K, PodSet>, key: &K, uid: &PodUid) {
    if let Some(uids) = index.get_mut(key) {
        uids.remove(uid);
        if uids.is_empty() {
            index.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(uid: &str, node: Option<&str>) -> Pod {
        Pod { uid: uid.into(), shape: "s".into(), node: node.map(NodeName::from), ..Pod::default() }
    }

    #[test]
    fn indexes_follow_a_pod_through_its_life() {
        let mut view = ClusterView::new();
        assert!(view.apply(Change::Pod(pod("a", None))));
        assert!(!view.apply(Change::Pod(pod("a", None))));
        assert_eq!(view.world().pending().count(), 1);
        assert!(view.apply(Change::Pod(pod("a", Some("n")))));
        assert_eq!(view.world().pending().count(), 0);
        assert_eq!(view.world().pods_on(&"n".into()).count(), 1);
        assert!(view.remove(ObjectRef::Pod("a".into())));
        assert!(!view.remove(ObjectRef::Pod("a".into())));
        assert_eq!(*view.world(), World::default());
    }

    #[test]
    fn a_snapshot_does_not_see_later_changes() {
        let mut view = ClusterView::new();
        let before = view.snapshot();
        view.apply(Change::Pod(pod("a", None)));
        assert!(before.pods.is_empty());
        assert_eq!(view.snapshot().pods.len(), 1);
    }
}
