//! What the watcher knows of its cluster: objects in, changes of the view out.
//!
//! Invariant: pure state with plain methods (apply, forget, begin and end of a relist); no IO and
//! no clock. A relist is a set difference, so deletions that were missed are found. An object that
//! cannot be read is recorded as a fault, is not taken for gone (`unreadable.rs`), and stops
//! nothing else.

pub mod budgets;
pub mod buffers;
pub mod departures;
pub mod devices;
pub mod nodes;
pub mod overlays;
mod owners;
pub mod pods;
pub mod pools;
mod room;
mod row;
mod source;
pub mod store;
pub mod surroundings;
pub mod unreadable;
pub mod view;
mod watched;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use longshore_proto::types::v1::object::Kind;
use longshore_proto::types::v1::{ClusterFacts, ObjectKind, PodShape};

use crate::api::NodeClaim;
use crate::counters::pods::PodTimes;
use crate::project::attachments::Attachments;
use crate::project::devices::slices::Slices;
use crate::project::{Fault, Problem, Surroundings};
use buffers::BufferEntry;
use departures::Departures;
use owners::Owners;
pub use pods::PodEntry;
use pods::PodNames;
use pools::Pools;
pub use source::Source;
pub use store::{Now, Store};
use surroundings::Stale;
use unreadable::Tombstone;
pub use unreadable::{Missing, Relisted};
pub use view::{Kept, Key, Step, View};
pub use watched::{Name, Watched, name_of};

/// An object that was left out, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Left {
    /// The object, for Events.
    pub reference: ObjectReference,
    /// Its generation.
    pub generation: i64,
    /// Why.
    pub fault: Fault,
}

/// A shape, and how many use it.
#[derive(Debug, Default)]
struct UsedShape {
    users: usize,
    /// As the scheduler is told of it.
    shape: PodShape,
}

/// Pods that a claim is for.
#[derive(Debug, Default)]
struct Planned {
    /// Their UIDs.
    pods: Vec<String>,
    /// True when any other pod that waits is as good there.
    any_order: bool,
    /// True once its node was told to open: these are all.
    opening: bool,
}

/// Everything known of the cluster.
#[derive(Debug, Default)]
pub struct Index {
    view: View,
    around: Surroundings,
    /// Whose pods may have to be projected again, because something they refer to has changed.
    stale: Stale,
    cluster: Option<ClusterFacts>,
    /// By UID. In boxes, since a third of a map's places are empty.
    pods: BTreeMap<Arc<str>, Box<PodEntry>>,
    /// Changes of waiting pods.
    stirs: u64,
    pod_names: PodNames,
    pods_by_node: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    /// Pods on no node.
    unbound: BTreeSet<Arc<str>>,
    /// Owners of pods that may be creating more of them.
    owners: Owners,
    shapes: BTreeMap<Arc<str>, UsedShape>,
    daemon_shapes: BTreeMap<Name, String>,
    nodes: nodes::Nodes,
    /// How many volumes each node can attach.
    attachable: BTreeMap<String, Attachments>,
    /// The devices that drivers say nodes have.
    slices: Slices,
    claims: BTreeMap<String, Arc<NodeClaim>>,
    pools: Pools,
    buffers: BTreeMap<Name, BufferEntry>,
    left: BTreeMap<(Source, Name), Left>,
    /// Tombstones of the objects among them that have one.
    tombstones: BTreeMap<(Source, Name), Tombstone>,
    /// Names of all objects of each kind, but for pods.
    known: BTreeMap<Source, BTreeSet<Name>>,
    relisting: BTreeMap<Source, BTreeSet<Name>>,
    listed: BTreeSet<Source>,
    fresh_pending: Vec<String>,
    /// UIDs of the pods that each claim was made for.
    planned: BTreeMap<String, Planned>,
    /// When pods last came to nodes or left them, where that is not written down yet.
    touched: BTreeMap<String, i64>,
    /// When what is being applied was seen.
    seen: Now,
    departures: Departures,
    /// Where it is measured how long pods wait.
    times: PodTimes,
}

impl Index {
    /// Adds or replaces an object that was read, or records that it could not be.
    pub fn apply<W: Watched>(&mut self, reference: ObjectReference, object: Result<W, String>) {
        self.apply_at(reference, object, None);
    }

    /// The same; `node` is the one that an object is on which could not be read otherwise, empty
    /// when it is on none.
    pub fn apply_at<W: Watched>(
        &mut self,
        reference: ObjectReference,
        object: Result<W, String>,
        node: Option<&str>,
    ) {
        let of_object = object.as_ref().ok().map(|read| read.node_name().unwrap_or_default());
        let node = of_object.or(node).map(str::to_owned);
        let source = W::SOURCE;
        let name = reference_name(&reference);
        if let Some(seen) = self.relisting.get_mut(&source) {
            seen.insert(name.clone());
        }
        if source != Source::Pod {
            self.known.entry(source).or_default().insert(name.clone());
        }
        let outcome = match object {
            Ok(object) => object.apply(self),
            Err(text) => Err(undecodable(&reference, text)),
        };
        match outcome {
            Ok(()) => {
                self.let_go(source, &name);
                self.left.remove(&(source, name));
            }
            Err(fault) => {
                self.hold_on::<W>(&reference, &fault, node);
                let left = Left { reference, generation: 0, fault };
                self.left.insert((source, name), left);
            }
        }
    }

    /// Removes an object.
    pub fn forget<W: Watched>(&mut self, name: &Name) {
        W::forget(self, name);
        self.let_go(W::SOURCE, name);
        self.left.remove(&(W::SOURCE, name.clone()));
        if let Some(known) = self.known.get_mut(&W::SOURCE) {
            known.remove(name);
        }
    }

    /// Starts a relist: what is not applied before its end is gone.
    pub fn begin<W: Watched>(&mut self) {
        self.relisting.insert(W::SOURCE, BTreeSet::new());
    }

    /// Ends a relist.
    pub fn end<W: Watched>(&mut self) -> Relisted {
        let seen = self.relisting.remove(&W::SOURCE).unwrap_or_default();
        let known = self.known_of(W::SOURCE).into_iter();
        let gone: Vec<Name> = known.filter(|name| !seen.contains(name)).collect();
        for name in &gone {
            self.forget::<W>(name);
        }
        self.listed.insert(W::SOURCE);
        self.served(W::SOURCE);
        Relisted { seen: seen.len(), gone: gone.len() }
    }

    /// Names of all objects of a kind.
    fn known_of(&self, source: Source) -> Vec<Name> {
        if source != Source::Pod {
            return self.known.get(&source).into_iter().flatten().cloned().collect();
        }
        let left = self.left.keys().filter(|(left, _)| *left == Source::Pod);
        self.pod_names.all().chain(left.map(|(_, name)| name.clone())).collect()
    }

    /// Kinds that have not been listed yet. The view is not complete before there are none.
    #[must_use]
    pub fn unlisted(&self) -> Vec<Source> {
        Source::ALL.into_iter().filter(|source| !self.listed.contains(source)).collect()
    }

    /// True once every kind has been listed: only then is an absence known to be one.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.listed.len() == Source::ALL.len()
    }

    /// Sets the facts about the cluster itself.
    pub fn set_cluster(&mut self, facts: ClusterFacts) {
        let known = self.cluster().map(|known| known.ca_bundle.as_str());
        let trusted = known == Some(facts.ca_bundle.as_str());
        self.cluster = Some(facts.clone());
        self.view.put(Kind::Cluster(facts));
        if !trusted {
            self.prove_classes();
        }
    }

    /// The facts about the cluster itself.
    #[must_use]
    pub const fn cluster(&self) -> Option<&ClusterFacts> {
        self.cluster.as_ref()
    }

    /// The view, with everything that was observed in it.
    pub fn settled(&mut self) -> &mut View {
        match std::mem::take(&mut self.stale) {
            Stale::Namespaces(names) if names.is_empty() => {}
            Stale::Namespaces(names) => self.project_again(|pod| names.contains(&*pod.namespace)),
            Stale::All => self.project_again(|_| true),
        }
        &mut self.view
    }

    /// Objects that were left out.
    #[must_use]
    pub const fn left(&self) -> &BTreeMap<(Source, Name), Left> {
        &self.left
    }

    /// Takes the UIDs of the pods that have been seen waiting for the first time.
    pub fn take_fresh_pending(&mut self) -> Vec<String> {
        std::mem::take(&mut self.fresh_pending)
    }

    /// Notes that a claim is for these pods, too, unless its node was told to open: most of a burst
    /// come when the claims of their nodes are there already.
    pub fn plan_more(&mut self, claim: &str, pods: &[String]) {
        let planned = self.planned.entry(claim.to_owned()).or_default();
        if !planned.opening {
            let known: BTreeSet<&String> = planned.pods.iter().collect();
            let more: Vec<_> = pods.iter().filter(|pod| !known.contains(pod)).cloned().collect();
            planned.pods.extend(more);
        }
    }

    /// Notes which pods a claim is for whose node is to open, and whether any other is as good
    /// there.
    pub fn plan_for(&mut self, claim: &str, pods: &[String], any_order: bool) {
        let planned = Planned { pods: pods.to_vec(), any_order, opening: true };
        self.planned.insert(claim.to_owned(), planned);
    }

    /// The creation of a claim failed: unless it is there all the same, no pod waits for it.
    pub fn unplan(&mut self, claim: &str) {
        if !self.claims.contains_key(claim) {
            self.planned.remove(claim);
        }
    }

    /// Forgets the pods of claims that are not there: whoever was creating them was cut off.
    pub fn unplan_missing(&mut self) {
        let claims = &self.claims;
        self.planned.retain(|claim, _| claims.contains_key(claim));
    }

    /// Pods that a claim is for and that still exist.
    pub fn planned_for<'a>(&'a self, claim: &str) -> impl Iterator<Item = &'a PodEntry> + use<'a> {
        let uids = self.planned.get(claim).into_iter().flat_map(|planned| &planned.pods);
        uids.filter_map(|uid| self.pod(uid))
    }

    /// True when any pod that waited was as good as another on the claim's node, so that none was
    /// told to go there.
    #[must_use]
    pub fn takes_any_order(&self, claim: &str) -> bool {
        self.planned.get(claim).is_some_and(|planned| planned.any_order)
    }

    /// True when a pod of the shape waits for a node.
    #[must_use]
    pub fn awaits(&self, shape_id: &str) -> bool {
        self.waiting().any(|pod| *pod.row.shape_id == *shape_id)
    }

    /// Counts changes of waiting pods.
    #[must_use]
    pub const fn stirs(&self) -> u64 {
        self.stirs
    }

    /// Claims whose pods are not known to run yet.
    pub fn planned_claims(&self) -> impl Iterator<Item = &str> {
        self.planned.keys().map(String::as_str)
    }

    /// The pods of a claim run.
    pub fn plan_done(&mut self, claim: &str) {
        self.planned.remove(claim);
    }

    /// Sets when what is applied next was seen.
    pub const fn set_clock(&mut self, now: Now) {
        self.seen = now;
    }

    /// Measures here from now on how long pods wait.
    pub fn measure(&mut self, times: PodTimes) {
        self.times = times;
    }

    /// When pods last came to a node or left it, in milliseconds since 1970; None when that is
    /// written down.
    #[must_use]
    pub fn touched_ms(&self, node: &str) -> Option<i64> {
        self.touched.get(node).copied()
    }

    /// What happened on a node up to `at_ms` is written down.
    pub fn untouch(&mut self, node: &str, at_ms: i64) {
        if self.touched_ms(node) == Some(at_ms) {
            self.touched.remove(node);
        }
    }

    fn use_shape(&mut self, shape: PodShape) {
        let id = shape.shape_id.as_str().into();
        let used = self.shapes.entry(id).or_default();
        used.users += 1;
        used.shape = self.owners.foretell(shape);
        self.view.put(Kind::PodShape(used.shape.clone()));
    }

    fn drop_shape(&mut self, id: &str) {
        let Some(used) = self.shapes.get_mut(id) else { return };
        used.users -= 1;
        if used.users == 0 {
            self.shapes.remove(id);
            self.view.remove(&Key::new(ObjectKind::PodShape, id));
        }
    }
}

fn reference_name(reference: &ObjectReference) -> Name {
    (reference.namespace.clone().unwrap_or_default(), reference.name.clone().unwrap_or_default())
}

fn undecodable(reference: &ObjectReference, text: String) -> Fault {
    let kind = reference.kind.as_deref().unwrap_or_default();
    let (namespace, name) = reference_name(reference);
    let separator = if namespace.is_empty() { "" } else { "/" };
    Fault {
        object: format!("{kind}/{namespace}{separator}{name}"),
        field: "spec".to_owned(),
        problem: Problem::Undecodable(text),
    }
}

#[cfg(test)]
mod tests;
