//! Objects that cannot be read: what stays of them in the view, and the tombstone beside it.
//!
//! Invariant: silence about an object is never its absence. One that cannot be read keeps the row
//! in which it was last read, and a tombstone says so until it can be read again or is really
//! deleted; a kind that the API server stops serving keeps all its rows under one tombstone. Only
//! what says by which rules nodes are made goes out of the view when it is readable and makes no
//! sense: half a rule would allow what its owner forbade.

use k8s_openapi::api::core::v1::ObjectReference;
use longshore_proto::types::v1::object::Kind;
use longshore_proto::types::v1::{ObjectKind, ObjectRef, UnreadableObject};
use longshore_runtime::planted;

use super::{Index, Key, Name, Source, Watched, reference_name};
use crate::project::{Fault, Problem};

/// What a relist has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relisted {
    /// Objects in the list.
    pub seen: usize,
    /// Objects that were known and are not in it.
    pub gone: usize,
}

/// A tombstone in the view.
#[derive(Debug)]
pub(super) struct Tombstone {
    key: Key,
    /// The node that the object is on; empty when it is not known, or on none.
    node_name: String,
}

/// What a kind that is not served amounts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// It is not installed, and there is nothing of it.
    Empty,
    /// It was never listed, and cannot be nothing: the view is not complete before it is served.
    Unknown,
    /// Its objects stay as they were.
    Kept,
}

impl Index {
    /// Notes that an object cannot be used: it stays as it was last read, or is left out where that
    /// is its kind's way, and has a tombstone where nothing may be ended because of it.
    pub(super) fn hold_on<W: Watched>(
        &mut self,
        reference: &ObjectReference,
        fault: &Fault,
        node_name: Option<String>,
    ) {
        let (source, name) = (W::SOURCE, reference_name(reference));
        let undecodable = matches!(fault.problem, Problem::Undecodable(_));
        let another = self.uid_of(source, &name).is_some_and(|uid| Some(uid) != reference.uid);
        if another || planted::is("S3") || (source.is_rule() && !undecodable) {
            W::forget(self, &name);
        }
        self.let_go(source, &name);
        let marked = undecodable || !matches!(source, Source::NodeOverlay | Source::CapacityBuffer);
        let uid = reference.uid.as_deref().unwrap_or_default();
        let Some(about) = about(source, &name, uid).filter(|_| marked && !planted::is("S3")) else {
            return;
        };
        // A pod that was bound stays where it is. One that is on no node keeps none from ending.
        let bound = self.pod_named(&name).filter(|_| source == Source::Pod);
        let bound = bound.map(|pod| pod.row.node_name.to_string()).filter(|it| !it.is_empty());
        let node_name = bound.or(node_name);
        if source == Source::Pod && node_name.as_deref() == Some("") {
            return;
        }
        let tombstone = self.mark(about, fault.to_string(), node_name.unwrap_or_default());
        self.tombstones.insert((source, name), tombstone);
    }

    /// The object can be read again, or is gone.
    pub(super) fn let_go(&mut self, source: Source, name: &Name) {
        if let Some(tombstone) = self.tombstones.remove(&(source, name.clone())) {
            self.view.remove(&tombstone.key);
        }
    }

    /// The API server does not serve a kind. One that need not be installed and was never seen, or
    /// had no objects, counts as empty; any other that was listed stays as it was, under a
    /// tombstone of the whole kind.
    pub fn missing<W: Watched>(&mut self) -> Missing {
        self.relisting.remove(&W::SOURCE);
        let known = !self.known_of(W::SOURCE).is_empty();
        let needed = W::SOURCE.is_needed() && !planted::is("S3c");
        if !(known || needed) || planted::is("S3") {
            self.begin::<W>();
            self.end::<W>();
            return Missing::Empty;
        }
        if !self.listed.contains(&W::SOURCE) {
            return Missing::Unknown;
        }
        if let Some(kind) = kind(W::SOURCE) {
            let about = ObjectRef { kind: kind.into(), key: String::new() };
            let text = "the API server does not serve this kind; is its CRD installed?";
            self.mark(about, text.to_owned(), String::new());
        }
        Missing::Kept
    }

    /// The API server serves a kind again.
    pub(super) fn served(&mut self, source: Source) {
        if let Some(kind) = kind(source) {
            self.view.remove(&Key::new(ObjectKind::Unreadable, format!("{}/", i32::from(kind))));
        }
    }

    /// True when a node may be there that was never readable; the name is empty when it is not
    /// known.
    #[must_use]
    pub fn hides_node(&self, name: &str) -> bool {
        let hidden = self.tombstones.keys().filter(|(source, _)| *source == Source::Node);
        let mut unknown = hidden.filter(|(_, (_, node))| !self.nodes.contains(node));
        unknown.any(|(_, (_, node))| name.is_empty() || node == name)
    }

    /// True when a claim is there that cannot be read as it is now.
    #[must_use]
    pub fn hides_claims(&self) -> bool {
        self.tombstones.keys().any(|(source, _)| *source == Source::NodeClaim)
    }

    /// A pod that is there, was never readable and may be on this node.
    #[must_use]
    pub fn hidden_pod(&self, node: &str) -> Option<&Name> {
        let hidden = self.tombstones.iter().filter(|((source, _), _)| *source == Source::Pod);
        let on = |it: &Tombstone| it.node_name.is_empty() || it.node_name == node;
        let mut hidden = hidden.filter(|(_, tombstone)| on(tombstone)).map(|((_, name), _)| name);
        hidden.find(|name| self.pod_names.get(name).is_none())
    }

    fn mark(&mut self, about: ObjectRef, message: String, node_name: String) -> Tombstone {
        let text = format!("{}/{}", about.kind, about.key);
        let key = Key::new(ObjectKind::Unreadable, text.as_str());
        let (about, node) = (Some(about), node_name.clone());
        let row = UnreadableObject { key: text, about, message, node_name: node };
        self.view.put(Kind::Unreadable(row));
        Tombstone { key, node_name }
    }

    /// UID of the object whose row is in the view, where that is known.
    fn uid_of(&self, source: Source, name: &Name) -> Option<String> {
        if source == Source::Pod {
            return self.pod_names.get(name).map(ToString::to_string);
        }
        if source == Source::Node {
            return self.node(&name.1)?.metadata.uid;
        }
        let claim = self.claims.get(&name.1).filter(|_| source == Source::NodeClaim);
        claim?.metadata.uid.clone()
    }
}

impl Source {
    /// True for what says by which rules nodes are made.
    #[must_use]
    pub const fn is_rule(self) -> bool {
        matches!(
            self,
            Self::NodePool
                | Self::Provisioner
                | Self::EC2NodeClass
                | Self::AWSNodeTemplate
                | Self::NodeOverlay
                | Self::CapacityBuffer
        )
    }
}

/// Kind in the view of a kind that is watched; nothing for what is only part of others.
const fn kind(source: Source) -> Option<ObjectKind> {
    Some(match source {
        Source::Namespace => ObjectKind::Namespace,
        Source::NodePool | Source::Provisioner => ObjectKind::NodePool,
        Source::EC2NodeClass | Source::AWSNodeTemplate => ObjectKind::NodeClass,
        Source::NodeOverlay => ObjectKind::NodeOverlay,
        Source::NodeClaim => ObjectKind::NodeClaim,
        Source::Node => ObjectKind::Node,
        Source::DaemonSet => ObjectKind::DaemonSet,
        Source::PodDisruptionBudget => ObjectKind::DisruptionBudget,
        Source::CapacityBuffer => ObjectKind::CapacityBuffer,
        Source::Pod => ObjectKind::Pod,
        Source::StorageClass
        | Source::DeviceClass
        | Source::ResourceClaimTemplate
        | Source::ResourceSlice
        | Source::PersistentVolume
        | Source::PersistentVolumeClaim
        | Source::CSINode
        | Source::VolumeAttachment => return None,
    })
}

/// The object in the view behind one that is watched.
fn about(source: Source, (namespace, name): &Name, uid: &str) -> Option<ObjectRef> {
    let kind = kind(source)?;
    let key = if source == Source::Pod {
        uid.to_owned()
    } else if kind == ObjectKind::NodeClass {
        format!("{source:?}/{name}")
    } else if namespace.is_empty() {
        name.clone()
    } else {
        format!("{namespace}/{name}")
    };
    Some(ObjectRef { kind: kind.into(), key })
}
