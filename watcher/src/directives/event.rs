//! Events that a scheduler wants published.
//!
//! Invariant: an Event is about an object that exists here; about anything else it is refused.

use k8s_openapi::api::core::v1::{Node, ObjectReference};
use kube::Resource as _;
use longshore_proto::cluster::v1::PublishEvent;
use longshore_proto::types::v1::{ObjectKind, ObjectRef};

use super::{DirectiveError, Directives, Outcome};
use crate::api::{AWSNodeTemplate, EC2NodeClass, NodeClaim, NodePool, Provisioner};
use crate::events::Happening;
use crate::index::Index;
use crate::observe::reference;

impl Directives {
    pub(super) fn publish_event(&self, publish: &PublishEvent) -> Outcome {
        let object = publish.about.as_ref();
        let about = object.and_then(|object| self.store.read(|index| find(index, object)));
        let about = about.ok_or_else(|| {
            let key = object.map_or("", |object| &object.key);
            DirectiveError::refused(
                "NOT_FOUND",
                format!("no object {key} to publish an Event about"),
            )
        })?;
        self.events.publish(Happening {
            about,
            warning: publish.warning,
            reason: publish.reason.clone(),
            note: publish.message.clone(),
        });
        Ok(())
    }
}

/// The Kubernetes object behind an object of the view.
fn find(index: &Index, object: &ObjectRef) -> Option<ObjectReference> {
    let key = object.key.as_str();
    match object.kind() {
        ObjectKind::Pod => Some(index.pod(key)?.reference()),
        ObjectKind::Node => Some(reference::<Node>(&index.node(key)?.metadata)),
        ObjectKind::NodeClaim => Some(reference::<NodeClaim>(&index.claim(key)?.metadata)),
        ObjectKind::NodePool => pool(index, key),
        ObjectKind::NodeClass => class(index, key),
        ObjectKind::Unspecified
        | ObjectKind::PodShape
        | ObjectKind::DaemonSet
        | ObjectKind::DisruptionBudget
        | ObjectKind::Namespace
        | ObjectKind::NodeOverlay
        | ObjectKind::CapacityBuffer
        | ObjectKind::Unreadable
        | ObjectKind::Cluster => None,
    }
}

/// The pool or Provisioner of a name.
pub(super) fn pool(index: &Index, name: &str) -> Option<ObjectReference> {
    let pools = index.pools();
    let pool = pools.pool(name).map(|pool| reference::<NodePool>(pool.meta()));
    pool.or_else(|| Some(reference::<Provisioner>(pools.provisioner(name)?.meta())))
}

/// The object of a node class's name.
pub(super) fn class(index: &Index, name: &str) -> Option<ObjectReference> {
    let pools = index.pools();
    match name.split_once('/')? {
        ("EC2NodeClass", name) => Some(reference::<EC2NodeClass>(pools.class(name)?.meta())),
        ("AWSNodeTemplate", name) => {
            Some(reference::<AWSNodeTemplate>(pools.template(name)?.meta()))
        }
        (_, name) => Some(reference::<Provisioner>(pools.provisioner(name)?.meta())),
    }
}
