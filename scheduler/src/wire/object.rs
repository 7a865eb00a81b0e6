//! Objects of any kind: their reference, and the change of the planner's view they amount to.

use longshore_core::vocabulary::ids::ObjectKey;
use longshore_core::world::view::{Change, ObjectRef};
use longshore_proto::types::v1;
use longshore_proto::types::v1::object::Kind;

use super::{WireError, node, overlay, pod};

/// The change of the view that an object amounts to; none for kinds the planner does not know.
/// Pools are read elsewhere, since they depend on more than the object.
///
/// # Errors
/// When the object cannot be read.
pub fn change(kind: &Kind) -> Result<Option<Change>, WireError> {
    Ok(Some(match kind {
        Kind::PodShape(shape) => Change::Shape(pod::shape(shape)?),
        Kind::Pod(wire) => Change::Pod(pod::pod(wire)?),
        Kind::Node(wire) => Change::Node(node::node(wire)?),
        Kind::NodeClaim(claim) => Change::Claim(node::claim(claim)?),
        Kind::DaemonSet(set) => Change::DaemonSet(node::daemon_set(set)),
        Kind::DisruptionBudget(budget) => Change::Budget(node::disruption_budget(budget)?),
        Kind::NodeOverlay(wire) => Change::Overlay(overlay::overlay(wire)?),
        Kind::CapacityBuffer(buffer) => Change::Buffer(pod::buffer(buffer)),
        Kind::NodePool(_)
        | Kind::NodeClass(_)
        | Kind::Namespace(_)
        | Kind::Cluster(_)
        | Kind::Unreadable(_) => {
            return Ok(None);
        }
    }))
}

/// The object of the view that a reference names; none for kinds the planner does not know.
#[must_use]
pub fn removal(reference: &v1::ObjectRef) -> Option<ObjectRef> {
    let key = reference.key.as_str();
    Some(match reference.kind() {
        v1::ObjectKind::PodShape => ObjectRef::Shape(key.into()),
        v1::ObjectKind::Pod => ObjectRef::Pod(key.into()),
        v1::ObjectKind::Node => ObjectRef::Node(key.into()),
        v1::ObjectKind::NodeClaim => ObjectRef::Claim(key.into()),
        v1::ObjectKind::NodePool => ObjectRef::Pool(key.into()),
        v1::ObjectKind::DaemonSet => ObjectRef::DaemonSet(object_key(key)),
        v1::ObjectKind::DisruptionBudget => ObjectRef::Budget(object_key(key)),
        v1::ObjectKind::NodeOverlay => ObjectRef::Overlay(key.into()),
        v1::ObjectKind::CapacityBuffer => ObjectRef::Buffer(object_key(key)),
        v1::ObjectKind::NodeClass
        | v1::ObjectKind::Namespace
        | v1::ObjectKind::Cluster
        | v1::ObjectKind::Unreadable
        | v1::ObjectKind::Unspecified => return None,
    })
}

fn object_key(key: &str) -> ObjectKey {
    let (namespace, name) = key.split_once('/').unwrap_or(("", key));
    ObjectKey::new(namespace, name)
}
