//! Kind and key of every object, and the digest by which two sides notice that their views differ.
//!
//! Invariant: both ends of Sync use this code, so a digest can only differ when the views do.

use std::collections::BTreeSet;

use sha2::{Digest as _, Sha256};

use crate::types::v1::object::Kind;
use crate::types::v1::{ObjectKind, ObjectRef};

/// Kind and key of an object.
#[must_use]
pub fn of(kind: &Kind) -> ObjectRef {
    let namespaced = |namespace: &str, name: &str| format!("{namespace}/{name}");
    let (kind, key) = match kind {
        Kind::PodShape(shape) => (ObjectKind::PodShape, shape.shape_id.clone()),
        Kind::Pod(pod) => (ObjectKind::Pod, pod.uid.clone()),
        Kind::Node(node) => (ObjectKind::Node, node.name.clone()),
        Kind::NodeClaim(claim) => (ObjectKind::NodeClaim, claim.name.clone()),
        Kind::NodePool(pool) => (ObjectKind::NodePool, pool.name.clone()),
        Kind::NodeClass(class) => (ObjectKind::NodeClass, class.name.clone()),
        Kind::DaemonSet(set) => (ObjectKind::DaemonSet, namespaced(&set.namespace, &set.name)),
        Kind::DisruptionBudget(budget) => {
            (ObjectKind::DisruptionBudget, namespaced(&budget.namespace, &budget.name))
        }
        Kind::Namespace(namespace) => (ObjectKind::Namespace, namespace.name.clone()),
        Kind::Cluster(_) => (ObjectKind::Cluster, String::new()),
        Kind::NodeOverlay(overlay) => (ObjectKind::NodeOverlay, overlay.name.clone()),
        Kind::CapacityBuffer(buffer) => {
            (ObjectKind::CapacityBuffer, namespaced(&buffer.namespace, &buffer.name))
        }
        Kind::Unreadable(object) => (ObjectKind::Unreadable, object.key.clone()),
    };
    ObjectRef { kind: kind.into(), key }
}

/// Count and digest of a set of objects, as `Bookmark` defines them, for one who knows which
/// objects are in the set.
#[derive(Clone, Debug, Default)]
pub struct Sum {
    count: u64,
    sum: u64,
}

impl Sum {
    /// An object has come that was not there.
    pub fn add(&mut self, reference: &ObjectRef) {
        self.count += 1;
        self.sum = self.sum.wrapping_add(contribution(reference));
    }

    /// An object that was there is gone.
    pub fn remove(&mut self, reference: &ObjectRef) {
        self.count -= 1;
        self.sum = self.sum.wrapping_sub(contribution(reference));
    }

    /// Number of objects and their digest.
    #[must_use]
    pub const fn value(&self) -> (u64, u64) {
        (self.count, self.sum)
    }
}

/// The same for one who does not: it keeps the set.
#[derive(Clone, Debug, Default)]
pub struct Digest {
    known: BTreeSet<(i32, String)>,
    sum: Sum,
}

impl Digest {
    /// The object is there. Adding it again changes nothing.
    pub fn add(&mut self, reference: &ObjectRef) {
        if self.known.insert((reference.kind, reference.key.clone())) {
            self.sum.add(reference);
        }
    }

    /// The object is gone. Removing an unknown one changes nothing.
    pub fn remove(&mut self, reference: &ObjectRef) {
        if self.known.remove(&(reference.kind, reference.key.clone())) {
            self.sum.remove(reference);
        }
    }

    /// Number of objects and their digest.
    #[must_use]
    pub const fn value(&self) -> (u64, u64) {
        self.sum.value()
    }
}

fn contribution(reference: &ObjectRef) -> u64 {
    let mut hash = Sha256::new();
    hash.update([u8::try_from(reference.kind).unwrap_or(u8::MAX), 0]);
    hash.update(reference.key.as_bytes());
    let bytes = hash.finalize();
    bytes[..8].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(key: &str) -> ObjectRef {
        ObjectRef { kind: ObjectKind::Pod.into(), key: key.to_owned() }
    }

    #[test]
    fn the_digest_depends_on_the_set_alone() {
        let (mut forward, mut backward) = (Digest::default(), Digest::default());
        ["a", "b", "b"].iter().for_each(|key| forward.add(&pod(key)));
        ["c", "b", "a"].iter().for_each(|key| backward.add(&pod(key)));
        assert_ne!(forward.value(), backward.value());
        backward.remove(&pod("c"));
        backward.remove(&pod("c"));
        assert_eq!(forward.value(), backward.value());
    }
}
