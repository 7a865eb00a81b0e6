//! Pods in the index.
//!
//! Invariant: a pod costs a row and a few facts; its whole object is kept only while its shape
//! depends on other objects.

mod by_name;

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ObjectReference, Pod, PodSpec};
use longshore_proto::types::v1 as wire;
use longshore_proto::types::v1::{ObjectKind, Taint, TaintEffect};

pub(super) use self::by_name::PodNames;
use self::by_name::shared;
use super::row::PodFields;
pub use super::row::PodRow;
use super::{Index, Key, Name, Source, Watched, name_of};
use crate::names;
use crate::project::owner::Owner;
use crate::project::pod::{self, Projection};
use crate::project::{Fault, extract, requirement};

/// Grace period of a pod that names none, in seconds.
const GRACE_DEFAULT_SECONDS: i64 = 30;

/// A pod as the index keeps it.
#[derive(Clone, Debug)]
pub struct PodEntry {
    /// Its row.
    pub row: PodRow,
    /// What else the watcher must know of it.
    pub facts: PodFacts,
    /// Its owner, where that may be creating more pods like it.
    pub owner: Option<Arc<Owner>>,
    /// The object, when its shape depends on its surroundings.
    pub(super) source: Option<Arc<Pod>>,
}

/// What the watcher must know of a pod that the scheduler is not told, for drains most of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodFacts {
    /// Of a system-critical priority class.
    pub critical: bool,
    /// Of a DaemonSet.
    pub daemon: bool,
    /// Static.
    pub mirror: bool,
    /// Lets the taint of a disrupted node pass.
    pub tolerates_disruption: bool,
    /// Values with which it tolerates the taint of closed nodes, while it waits: each lets it in to
    /// one of them.
    pub passes: Box<[String]>,
    /// It has devices that its shape does not count.
    pub uncounted: bool,
    /// spec.terminationGracePeriodSeconds.
    pub grace_seconds: i64,
    /// Its deletion, once that has begun. In a box, since of most pods there is none.
    pub deletion: Option<Box<Deletion>>,
}

/// The deletion of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// When the pod should be gone by the API server's clock, in milliseconds since the epoch.
    pub by_ms: i64,
    /// When it was first seen, by the steady clock of the index; none for a pod that is not in it.
    pub since_ms: Option<i64>,
}

impl PodEntry {
    /// True while it waits for a node.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.row.node_name.is_empty() && !self.row.deleting
    }

    /// The pod, for Events.
    #[must_use]
    pub fn reference(&self) -> ObjectReference {
        ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Pod".to_owned()),
            namespace: Some(self.row.namespace.to_string()),
            name: Some(self.row.name.to_string()),
            uid: Some(self.row.uid.to_string()),
            ..ObjectReference::default()
        }
    }
}

impl Watched for Pod {
    const SOURCE: Source = Source::Pod;
    const QUOTABLE: bool = false;

    fn decode(text: &str) -> serde_json::Result<Self> {
        extract::pod(text)
    }

    fn apply(self, index: &mut Index) -> Result<(), Fault> {
        let name = name_of(&self.metadata);
        let uid = self.metadata.uid.as_deref().unwrap_or_default();
        let another = index.pod_names.get(&name).is_some_and(|known| **known != *uid);
        if another || pod::is_finished(&self) {
            Self::forget(index, &name);
        }
        if pod::is_finished(&self) {
            return Ok(());
        }
        let projection = pod::pod(&self, &index.around)?;
        let facts = facts(&self, &projection);
        let source = projection.contextual.then(|| Arc::new(self));
        index.set_pod(projection, facts, source);
        Ok(())
    }

    fn node_name(&self) -> Option<&str> {
        self.spec.as_ref()?.node_name.as_deref()
    }

    fn forget(index: &mut Index, name: &Name) {
        let Some(uid) = index.pod_names.remove(name) else { return };
        let Some(entry) = index.pods.remove(&uid) else { return };
        index.has_left(&entry);
        index.touch_by(&entry);
        index.unbind(&entry.row);
        index.lose_member(&entry);
        index.view.remove(&Key::new(ObjectKind::Pod, uid));
        index.drop_shape(&entry.row.shape_id);
        if entry.facts.uncounted {
            index.show_node_again(&entry.row.node_name);
        }
    }
}

fn facts(pod: &Pod, projection: &Projection) -> PodFacts {
    let spec = pod.spec.as_ref();
    let class = spec.and_then(|s| s.priority_class_name.as_deref());
    let disrupted = Taint {
        key: names::DISRUPTED_TAINT.to_owned(),
        value: String::new(),
        effect: TaintEffect::NoSchedule.into(),
    };
    let deleted = pod.metadata.deletion_timestamp.as_ref();
    PodFacts {
        critical: matches!(class, Some("system-cluster-critical" | "system-node-critical")),
        daemon: pod::is_daemon(pod),
        mirror: pod::is_mirror(pod),
        tolerates_disruption: requirement::tolerates(&projection.shape.tolerations, &disrupted),
        passes: spec.filter(|spec| spec.node_name.is_none()).map(passes).unwrap_or_default(),
        uncounted: projection.uncounted,
        grace_seconds: spec
            .and_then(|s| s.termination_grace_period_seconds)
            .unwrap_or(GRACE_DEFAULT_SECONDS),
        deletion: deleted
            .map(|by| Box::new(Deletion { by_ms: by.0.as_millisecond(), since_ms: None })),
    }
}

fn passes(spec: &PodSpec) -> Box<[String]> {
    let closing = spec.tolerations.iter().flatten().filter(|it| {
        it.key.as_deref() == Some(names::UNREGISTERED_TAINT) && requirement::is_equal(it)
    });
    closing.filter_map(|it| it.value.clone()).collect()
}

impl Index {
    /// A pod by its UID.
    #[must_use]
    pub fn pod(&self, uid: &str) -> Option<&PodEntry> {
        self.pods.get(uid).map(AsRef::as_ref)
    }

    /// True while a pod waits for a node.
    #[must_use]
    pub fn is_out(&self, uid: &str) -> bool {
        self.pod(uid).is_some_and(PodEntry::waits)
    }

    /// All pods, by UID.
    pub fn pods(&self) -> impl Iterator<Item = &PodEntry> {
        self.pods.values().map(AsRef::as_ref)
    }

    /// Pods that wait for a node, by UID.
    pub fn waiting(&self) -> impl Iterator<Item = &PodEntry> {
        self.unbound.iter().filter_map(|uid| self.pod(uid)).filter(|pod| pod.waits())
    }

    /// A pod by its name.
    #[must_use]
    pub fn pod_named(&self, name: &Name) -> Option<&PodEntry> {
        self.pod(self.pod_names.get(name)?)
    }

    /// A shape that pods have, by its id.
    #[must_use]
    pub fn shape(&self, id: &str) -> Option<&wire::PodShape> {
        self.shapes.get(id).map(|used| &used.shape)
    }

    /// Pods bound to a node, by UID.
    pub fn pods_on<'a>(&'a self, node: &str) -> impl Iterator<Item = &'a PodEntry> + use<'a> {
        let uids = self.pods_by_node.get(node).into_iter().flatten();
        uids.filter_map(|uid| self.pod(uid))
    }

    fn set_pod(&mut self, projection: Projection, mut facts: PodFacts, source: Option<Arc<Pod>>) {
        let Projection { shape, row: told, owner, .. } = projection;
        let row = self.row(&told);
        if let Some(deletion) = &mut facts.deletion {
            let known = self.pods.get(&row.uid).and_then(|pod| pod.facts.deletion.as_ref());
            let since_ms = known.and_then(|deletion| deletion.since_ms);
            deletion.since_ms = since_ms.or(Some(self.seen.steady_ms));
        }
        let uncounted = facts.uncounted;
        let owner = owner.map(|owner| self.owners.shared(owner));
        let entry = PodEntry { row: row.clone(), facts, owner, source };
        let waits = entry.waits() && !shape.daemon;
        let known = self.pods.get(&row.uid);
        if known.is_none_or(|known| known.row.node_name != row.node_name) {
            self.touch_by(&entry);
        }
        self.pod_names.insert(row.namespace.clone(), row.name.clone(), row.uid.clone());
        let old = self.pods.insert(row.uid.clone(), Box::new(entry));
        self.times.see(old.as_ref().map(|old| &old.row), &told, self.seen.wall_ms);
        self.see_member(old.as_deref(), &row.uid);
        if old.as_ref().is_none_or(|old| old.row.shape_id != row.shape_id) {
            self.use_shape(shape);
        }
        self.stirs += u64::from(old.is_some() && waits);
        if old.is_none() && waits {
            self.fresh_pending.push(told.uid.clone());
        }
        if let Some(old) = &old {
            self.unbind(&old.row);
        }
        let place = match row.node_name.is_empty() {
            true => &mut self.unbound,
            false => self.pods_by_node.entry(row.node_name.clone()).or_default(),
        };
        place.insert(row.uid.clone());
        if uncounted || old.as_ref().is_some_and(|old| old.facts.uncounted) {
            self.show_node_again(&row.node_name);
        }
        self.view.put_pod(&row);
        if let Some(old) = old.filter(|old| old.row.shape_id != row.shape_id) {
            self.drop_shape(&old.row.shape_id);
        }
    }

    /// The row that is known, or one whose texts are shared with what is.
    fn row(&self, told: &wire::Pod) -> PodRow {
        let known = self.pod(&told.uid).map(|known| &known.row);
        let row = PodFields::from(told);
        if let Some(known) = known.filter(|known| ***known == row) {
            return known.clone();
        }
        PodRow::from(PodFields {
            uid: known.map_or(row.uid, |known| Arc::clone(&known.uid)),
            namespace: self.pod_names.namespace(&told.namespace),
            shape_id: shared(&self.shapes, &told.shape_id),
            node_name: shared(&self.pods_by_node, &told.node_name),
            ..row
        })
    }

    /// Notes that a pod came to its node or left it. What is there when the watcher starts is no
    /// event: it would set every clock back.
    fn touch_by(&mut self, entry: &PodEntry) {
        let counts = !entry.row.node_name.is_empty() && !entry.facts.daemon && !entry.facts.mirror;
        if counts && self.listed.contains(&Source::Pod) {
            self.touched.insert(entry.row.node_name.to_string(), self.seen.wall_ms);
        }
    }

    fn unbind(&mut self, row: &PodRow) {
        self.unbound.remove(&row.uid);
        let Some(bound) = self.pods_by_node.get_mut(&row.node_name) else { return };
        bound.remove(&row.uid);
        if bound.is_empty() {
            self.pods_by_node.remove(&row.node_name);
        }
    }

    /// What a drain must know of a pod that was read, whether it is in the index or not.
    ///
    /// # Errors
    /// What cannot be read of it.
    pub fn entry_of(&self, pod: &Pod) -> Result<PodEntry, Fault> {
        let projection = pod::pod(pod, &self.around)?;
        let facts = facts(pod, &projection);
        let row = PodRow::from(&projection.row);
        Ok(PodEntry { row, facts, owner: None, source: None })
    }

    /// Projects those pods again whose shape depends on other objects, where `concerns` says so.
    pub(super) fn project_again(&mut self, concerns: impl Fn(&PodRow) -> bool) {
        let entries = self.pods.values().filter(|entry| entry.source.is_some());
        let sources = entries.filter(|e| concerns(&e.row)).filter_map(|e| e.source.clone());
        for source in sources.collect::<Vec<_>>() {
            // Only requests can be at fault, and they were read before.
            let Ok(projection) = pod::pod(&source, &self.around) else { continue };
            let facts = facts(&source, &projection);
            self.set_pod(projection, facts, Some(source));
        }
    }
}
