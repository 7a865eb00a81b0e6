//! Nodes that go: since when, what keeps them, and the volumes that are still attached to them.
//!
//! Invariant: what was seen of a claim or pod is forgotten with it.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::storage::v1::VolumeAttachment;
use longshore_proto::types::v1 as wire;
use longshore_proto::types::v1::object::Kind;
use longshore_proto::types::v1::{Blocker, BlockingRule, ObjectKind};

use super::{Index, Key, Name, PodEntry, Source, Watched, name_of};
use crate::project::pod::ordinal;
use crate::project::{Fault, volumes};

/// How long it is remembered that a replica went, in milliseconds.
const REMEMBERED_MS: i64 = 60_000;

/// What is known of nodes that go.
#[derive(Debug, Default)]
pub(super) struct Departures {
    /// Since when claims have been seen to go, by the steady clock.
    pub(super) going: BTreeMap<String, i64>,
    /// Evictions that were refused, by UID of the pod.
    pub(super) refusals: BTreeMap<String, Refusal>,
    /// Since when Deployments have been asked for the next pod, by UID of the one that they have
    /// and by the steady clock; none where that brings none.
    surges: BTreeMap<String, Option<i64>>,
    /// When a replica last went, by namespace and StatefulSet and by the steady clock.
    replicas: BTreeMap<(Arc<str>, String), i64>,
    /// What keeps the nodes of claims.
    pub(super) blockers: BTreeMap<String, Vec<Blocker>>,
    /// Volumes that are attached, by name of the VolumeAttachment.
    attached: BTreeMap<String, Attached>,
}

/// An eviction that the API server refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// By which rule.
    pub rule: BlockingRule,
    /// What it says.
    pub message: String,
    /// Since when, in milliseconds since 1970.
    pub since_ms: i64,
}

/// A volume and the node that it is attached to.
#[derive(Debug)]
struct Attached {
    node: String,
    volume: String,
}

impl Watched for VolumeAttachment {
    const SOURCE: Source = Source::VolumeAttachment;

    fn apply(self, index: &mut Index) -> Result<(), Fault> {
        let (_, name) = name_of(&self.metadata);
        // One without a PersistentVolume belongs to a pod alone, and goes with it.
        match self.spec.source.persistent_volume_name {
            Some(volume) => {
                let attached = Attached { node: self.spec.node_name, volume };
                index.departures.attached.insert(name, attached);
            }
            None => drop(index.departures.attached.remove(&name)),
        }
        Ok(())
    }

    fn forget(index: &mut Index, (_, name): &Name) {
        index.departures.attached.remove(name);
    }
}

impl Index {
    /// Since when a claim has been seen to go, by the steady clock; None when it is not.
    #[must_use]
    pub fn going_since_ms(&self, claim: &str) -> Option<i64> {
        self.departures.going.get(claim).copied()
    }

    /// Notes that a claim is there, going or not.
    pub(super) fn see_going(&mut self, claim: &str, goes: bool) {
        let seen_ms = self.seen.steady_ms;
        if goes {
            self.departures.going.entry(claim.to_owned()).or_insert(seen_ms);
        } else {
            self.departures.going.remove(claim);
            self.departures.blockers.remove(claim);
        }
    }

    /// The eviction of a pod was refused. The first time counts.
    pub fn refuse_eviction(&mut self, uid: &str, rule: BlockingRule, message: &str) {
        if !self.pods.contains_key(uid) {
            return;
        }
        let since_ms = self.seen.wall_ms;
        let (rule, message) = (rule, message.to_owned());
        let refusals = &mut self.departures.refusals;
        match refusals.get_mut(uid) {
            Some(known) => (known.rule, known.message) = (rule, message),
            None => drop(refusals.insert(uid.to_owned(), Refusal { rule, message, since_ms })),
        }
    }

    /// The eviction of a pod was granted.
    pub fn grant_eviction(&mut self, uid: &str) {
        self.departures.refusals.remove(uid);
    }

    /// A pod is gone.
    pub(super) fn has_left(&mut self, pod: &PodEntry) {
        self.departures.refusals.remove(&*pod.row.uid);
        self.departures.surges.remove(&*pod.row.uid);
        let now_ms = self.seen.steady_ms;
        self.departures.replicas.retain(|_, at_ms| now_ms - *at_ms < REMEMBERED_MS);
        let owner = self.shape(&pod.row.shape_id).map(|shape| shape.owner.as_str());
        if let Some((set, _)) = owner.and_then(|owner| ordinal(owner, &pod.row.name)) {
            let key = (pod.row.namespace.clone(), set.to_owned());
            self.departures.replicas.insert(key, now_ms);
        }
    }

    /// When a replica of a StatefulSet last went, by the steady clock; nothing when that is long
    /// ago.
    #[must_use]
    pub fn replica_left_ms(&self, namespace: &Arc<str>, set: &str) -> Option<i64> {
        self.departures.replicas.get(&(namespace.clone(), set.to_owned())).copied()
    }

    /// The Deployment of a pod was asked for the next one, or cannot be.
    pub fn note_surge(&mut self, uid: &str, asked: bool) {
        if self.pods.contains_key(uid) {
            let since_ms = asked.then_some(self.seen.steady_ms);
            self.departures.surges.insert(uid.to_owned(), since_ms);
        }
    }

    /// Whether the Deployment of a pod was asked for the next one: since when, by the steady clock,
    /// or that it cannot be.
    #[must_use]
    pub fn surge(&self, uid: &str) -> Option<Option<i64>> {
        self.departures.surges.get(uid).copied()
    }

    /// How the eviction of a pod is refused, while it is.
    #[must_use]
    pub fn refusal(&self, uid: &str) -> Option<&Refusal> {
        self.departures.refusals.get(uid)
    }

    /// What keeps the node of a claim from being drained, as it is known to the scheduler.
    #[must_use]
    pub fn blockers(&self, claim: &str) -> &[Blocker] {
        self.departures.blockers.get(claim).map_or(&[], Vec::as_slice)
    }

    /// Tells the scheduler what keeps the node of a claim.
    pub fn set_blockers(&mut self, claim: &str, blockers: Vec<Blocker>) {
        let Some(Kind::NodeClaim(row)) = self.view.get(&Key::new(ObjectKind::NodeClaim, claim))
        else {
            return;
        };
        let row = wire::NodeClaim { blockers: blockers.clone(), ..row };
        self.view.put(Kind::NodeClaim(row));
        if blockers.is_empty() {
            self.departures.blockers.remove(claim);
        } else {
            self.departures.blockers.insert(claim.to_owned(), blockers);
        }
    }

    /// Volumes attached to a node, as names of VolumeAttachment and PersistentVolume.
    pub fn attached_to<'a>(
        &'a self,
        node: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let all = self.departures.attached.iter().filter(move |(_, it)| it.node == node);
        all.map(|(name, attached)| (name.as_str(), attached.volume.as_str()))
    }

    /// PersistentVolumes of a pod.
    pub fn volumes_of<'a>(&'a self, uid: &str) -> impl Iterator<Item = &'a str> + use<'a> {
        let source = self.pods.get(uid).and_then(|entry| entry.source.as_deref());
        let claims = source.into_iter().flat_map(volumes::claim_names);
        let bound = claims.filter_map(|name| self.around.claims.get(&name));
        bound.map(|claim| claim.volume.as_str()).filter(|volume| !volume.is_empty())
    }
}
