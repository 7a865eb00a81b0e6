//! What a session knows of its cluster: the planner's view, and the raw objects claims live by.
//!
//! Invariant: changed only by the watcher's messages and by effects under way. An object that
//! cannot be read is left out and remembered as refused; all others are served.

mod asked;
mod drift;
mod pools;
mod rollouts;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use longshore_core::world::claim::NodeClaim as Claim;
use longshore_core::world::view::{Change, ClusterView, ObjectRef};
use longshore_proto::reference::{self, Digest};
use longshore_proto::types::v1;
use longshore_proto::types::v1::object::Kind;
use longshore_proto::types::v1::object_change::Change as WireChange;

use super::binding::Binding;
use super::cadence::Stir;
use super::company::Company;
use super::effects::Effects;
use super::evictions::Evictions;
use super::foresight::Foresight;
use super::health::Health;
use super::joined::Joined;
use super::stir::{self, demand};
use super::tombstones::{self, Tombstones};
use crate::wire::{self, WireError, object};

/// An object that could not be read, for the Event that says so.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    /// The object.
    pub about: v1::ObjectRef,
    /// What is wrong with it.
    pub error: WireError,
}

/// State of one cluster.
#[derive(Default)]
pub struct ClusterState {
    cluster_id: String,
    /// When its session began, in milliseconds since 1970 by this host's clock.
    began_ms: i64,
    view: ClusterView,
    effects: Effects,
    digest: Digest,
    /// Whether the watcher lets planned pods in to closed nodes one by one.
    pub pins_pods: bool,
    watched: BTreeMap<String, v1::NodeClaim>,
    /// The same with effects under way, kept by every change of either.
    effective: Arc<BTreeMap<String, v1::NodeClaim>>,
    created: BTreeSet<String>,
    nodes_by_provider: BTreeMap<String, Joined>,
    /// Nodes as they were before the snapshot that is being read.
    earlier_nodes: BTreeMap<String, Joined>,
    binding: Binding,
    company: Company,
    tombstones: Tombstones,
    foresight: Foresight,
    pools: BTreeMap<String, v1::NodePool>,
    classes: BTreeMap<String, v1::NodeClass>,
    facts: Option<v1::ClusterFacts>,
    refused: Vec<Refused>,
    unreadable_pools: BTreeMap<String, WireError>,
    drift: drift::Found,
    health: Health,
    evictions: Evictions,
    rollouts: rollouts::Rollouts,
}

impl ClusterState {
    /// A cluster of which nothing is known yet, in a session that began at `began_ms`, in
    /// milliseconds since 1970.
    #[must_use]
    pub fn new(cluster_id: String, began_ms: i64) -> Self {
        Self { cluster_id, began_ms, ..Self::default() }
    }

    /// Name of the cluster.
    #[must_use]
    pub fn cluster_id(&self) -> &str {
        &self.cluster_id
    }

    /// Facts about the cluster, once known.
    #[must_use]
    pub const fn facts(&self) -> Option<&v1::ClusterFacts> {
        self.facts.as_ref()
    }

    /// The planner's view.
    #[must_use]
    pub const fn view(&self) -> &ClusterView {
        &self.view
    }

    /// All node classes.
    #[must_use]
    pub const fn node_classes(&self) -> &BTreeMap<String, v1::NodeClass> {
        &self.classes
    }

    /// True while somebody lets nodes go that seem to be gone, however many.
    #[must_use]
    pub fn losses_accepted(&self, now_ms: i64) -> bool {
        let until = self.pools.values().filter_map(|pool| pool.losses_accepted_until.as_ref());
        until.map(wire::time_ms).any(|until_ms| until_ms > now_ms)
    }

    /// Nodes by provider id.
    #[must_use]
    pub const fn nodes_by_provider(&self) -> &BTreeMap<String, Joined> {
        &self.nodes_by_provider
    }

    /// What is there and cannot be read.
    #[must_use]
    pub const fn tombstones(&self) -> &Tombstones {
        &self.tombstones
    }

    /// Pods that are to come.
    #[must_use]
    pub const fn foresight(&self) -> &Foresight {
        &self.foresight
    }

    /// Claims as the watcher sent them, effects under way left out.
    #[must_use]
    pub const fn watched(&self) -> &BTreeMap<String, v1::NodeClaim> {
        &self.watched
    }

    /// Claims by the node that their instance has become, registered or not.
    #[must_use]
    pub fn claims_by_node(&self) -> BTreeMap<String, String> {
        let node = |claim: &v1::NodeClaim| self.nodes_by_provider.get(&claim.provider_id);
        let made = self.watched.values().filter(|claim| !claim.provider_id.is_empty());
        made.filter_map(|claim| Some((node(claim)?.name.clone(), claim.name.clone()))).collect()
    }

    /// Nodes whose claim is not initialised: something still repels pods.
    #[must_use]
    pub fn starting_nodes(&self) -> BTreeSet<String> {
        let by_node = self.claims_by_node().into_iter();
        by_node.filter(|(_, claim)| self.is_starting(claim)).map(|(node, _)| node).collect()
    }

    /// True for a claim that is not initialised.
    #[must_use]
    pub fn is_starting(&self, claim: &str) -> bool {
        self.watched.get(claim).is_some_and(|claim| claim.initialize_time.is_none())
    }

    /// Until when kube-scheduler is about to bind pods to nodes that have opened; none when it is
    /// not.
    #[must_use]
    pub fn binds_until_ms(&self, now_ms: i64) -> Option<i64> {
        self.binding.until_ms(now_ms)
    }

    /// Count and digest of the watched objects.
    #[must_use]
    pub fn digest(&self) -> (u64, u64) {
        self.digest.value()
    }

    /// All claims as they will be, effects under way included.
    #[must_use]
    pub fn claims(&self) -> Arc<BTreeMap<String, v1::NodeClaim>> {
        Arc::clone(&self.effective)
    }

    /// True when the claim exists in the cluster, so that its instance may be launched.
    #[must_use]
    fn is_launchable(&self, claim: &str) -> bool {
        self.watched.contains_key(claim) || self.created.contains(claim)
    }

    /// True for a claim that exists, and that waits for none of those that were asked for with it.
    #[must_use]
    pub fn may_launch(&self, claim: &str, now_ms: i64) -> bool {
        let is_there = |claim: &str| self.is_launchable(claim);
        is_there(claim) && !self.company.waits(claim, is_there, now_ms)
    }

    /// Objects refused since the last call.
    pub fn take_refused(&mut self) -> Vec<Refused> {
        std::mem::take(&mut self.refused)
    }

    /// Starts over from a snapshot. Effects under way stay: the snapshot may be older than they.
    pub fn reset(&mut self, changes: Vec<v1::ObjectChange>, now_ms: i64) {
        let old = std::mem::take(self);
        *self = Self {
            cluster_id: old.cluster_id,
            began_ms: old.began_ms,
            pins_pods: old.pins_pods,
            effects: old.effects,
            created: old.created,
            drift: old.drift.renewed(),
            health: old.health,
            evictions: old.evictions,
            rollouts: old.rollouts,
            earlier_nodes: old.nodes_by_provider,
            ..Self::default()
        };
        self.apply(changes, now_ms);
        self.earlier_nodes.clear();
        let under_way: Vec<_> = self.effects.created().map(ToOwned::to_owned).collect();
        for name in &under_way {
            self.show_claim(name);
        }
    }

    /// Applies changes in order and says what the most of them calls for.
    pub fn apply(&mut self, changes: Vec<v1::ObjectChange>, now_ms: i64) -> Stir {
        self.foresight.begin();
        let each = changes.into_iter().map(|change| self.apply_one(change, now_ms));
        each.fold(Stir::Nothing, Stir::max)
    }

    fn apply_one(&mut self, change: v1::ObjectChange, now_ms: i64) -> Stir {
        match change.change {
            Some(WireChange::Upsert(v1::Object { kind: Some(kind) })) => {
                let about = reference::of(&kind);
                self.digest.add(&about);
                self.tombstones.renew(&about);
                self.upsert(kind, now_ms)
            }
            Some(WireChange::Remove(reference)) => {
                self.digest.remove(&reference);
                self.tombstones.renew(&reference);
                self.remove(&reference)
            }
            Some(WireChange::Upsert(v1::Object { kind: None })) | None => {
                tracing::warn!("change without content ignored");
                Stir::Nothing
            }
        }
    }

    fn upsert(&mut self, mut kind: Kind, now_ms: i64) -> Stir {
        let (mut least, mut most) = (Stir::Nothing, Stir::Arrival);
        match kind {
            Kind::NodeClaim(claim) => return self.upsert_claim(claim, now_ms),
            Kind::NodePool(pool) => {
                let known = self.pools.insert(pool.name.clone(), pool.clone());
                return self.measure(known.as_ref() != Some(&pool));
            }
            Kind::NodeClass(class) => {
                let name = class.name.clone();
                let known = self.classes.insert(name, class.clone());
                return self.measure(known.as_ref() != Some(&class));
            }
            Kind::Cluster(facts) => {
                return demand(self.facts.replace(facts.clone()).as_ref() != Some(&facts));
            }
            Kind::Node(ref mut node) => self.joins(node, now_ms),
            Kind::Pod(ref pod) => most = self.binds(pod, now_ms),
            Kind::PodShape(ref shape) => least = self.foresight.tell(shape),
            Kind::DaemonSet(_)
            | Kind::DisruptionBudget(_)
            | Kind::Namespace(_)
            | Kind::NodeOverlay(_)
            | Kind::CapacityBuffer(_) => {}
            Kind::Unreadable(object) => return demand(self.tombstones.put(object)),
        }
        match object::change(&kind) {
            Ok(change) => {
                let stir = change.map_or(Stir::Nothing, |change| self.show(change));
                stir.clamp(least, most)
            }
            Err(error) => {
                // What it was before is no longer true: it counts as not being there for planning,
                // and holds the node that it may be on.
                let about = reference::of(&kind);
                self.tombstones.refuse(&about, tombstones::node_of(&kind));
                let gone = object::removal(&about).is_some_and(|old| self.view.remove(old));
                self.refuse(about, error);
                demand(gone)
            }
        }
    }

    fn upsert_claim(&mut self, claim: v1::NodeClaim, now_ms: i64) -> Stir {
        let name = claim.name.clone();
        self.effects.seen(&name, Some(&claim));
        self.drift.measure(&name);
        let before = self.watched.get(&name);
        if before.is_some_and(|it| it.register_time.is_none()) && claim.register_time.is_some() {
            self.health.came_up(&claim.pool, self.edition(&claim.pool));
        }
        if claim.initialize_time.is_some() && self.is_starting(&name) {
            self.health.serves(&claim, now_ms);
            self.binding.opened(now_ms);
        }
        self.watched.insert(name.clone(), claim);
        self.show_claim(&name)
    }

    /// Notes a node. It counts as made when it was first seen here, if that is later by this host's
    /// clock: another's does not say that it is late.
    fn joins(&mut self, node: &mut v1::Node, now_ms: i64) {
        if node.provider_id.is_empty() {
            return;
        }
        let known = self.nodes_by_provider.get(&node.provider_id);
        let before = known.or_else(|| self.earlier_nodes.get(&node.provider_id));
        let joined = Joined::new(node, before, now_ms);
        let seen = wire::timestamp(self.began_ms + joined.seen_ms);
        let made = node.create_time.filter(|made| wire::time_ms(made) < wire::time_ms(&seen));
        node.create_time = made.map(|_| seen).or(node.create_time);
        self.nodes_by_provider.insert(node.provider_id.clone(), joined);
    }

    /// Notes what happens to a pod; the most that it calls for.
    fn binds(&mut self, pod: &v1::Pod, now_ms: i64) -> Stir {
        let before = self.view.world().pods.get(pod.uid.as_str());
        if !pod.node_name.is_empty() && before.is_some_and(|before| before.node.is_none()) {
            self.binding.bound(now_ms);
        }
        let expected = before.is_none() && self.foresight.expected(&pod.shape_id);
        if expected { Stir::Echo } else { Stir::Arrival }
    }

    /// Shows a change to the planner.
    fn show(&mut self, change: Change) -> Stir {
        let stir = stir::of(&change, self.view.world());
        if self.view.apply(change) { stir } else { Stir::Nothing }
    }

    fn remove(&mut self, reference: &v1::ObjectRef) -> Stir {
        let key = &reference.key;
        match reference.kind() {
            v1::ObjectKind::NodeClaim => {
                self.effects.seen(key, None);
                self.watched.remove(key);
                self.created.remove(key);
                self.drift.forget(key);
                return self.show_claim(key);
            }
            v1::ObjectKind::NodePool => {
                self.pools.remove(key);
                self.drift.measure_all();
            }
            v1::ObjectKind::NodeClass => {
                let known = self.classes.remove(key).is_some();
                return self.measure(known);
            }
            v1::ObjectKind::Cluster => return demand(self.facts.take().is_some()),
            v1::ObjectKind::Node => self.nodes_by_provider.retain(|_, node| node.name != *key),
            v1::ObjectKind::PodShape => self.foresight.forget(key),
            v1::ObjectKind::Pod
            | v1::ObjectKind::DaemonSet
            | v1::ObjectKind::DisruptionBudget
            | v1::ObjectKind::Namespace
            | v1::ObjectKind::NodeOverlay
            | v1::ObjectKind::CapacityBuffer
            | v1::ObjectKind::Unspecified => {}
            v1::ObjectKind::Unreadable => return demand(self.tombstones.lift(key)),
        }
        let removal = object::removal(reference);
        removal.map_or(Stir::Nothing, |object| self.show(Change::Remove(object)))
    }

    /// Brings one claim of the view in line with what is watched and what was asked.
    fn show_claim(&mut self, name: &str) -> Stir {
        let Some(claim) = self.effects.effective(name, self.watched.get(name)) else {
            Arc::make_mut(&mut self.effective).remove(name);
            return self.show(Change::Remove(ObjectRef::Claim(name.into())));
        };
        Arc::make_mut(&mut self.effective).insert(name.to_owned(), claim.clone());
        match wire::node::claim(&claim) {
            Ok(claim) => {
                let stopped = rollouts::is_stopped(&self.rollouts, claim.pool.as_str());
                let drifted = self.drifted().contains_key(name) && !stopped;
                self.show(Change::Claim(Claim { drifted, ..claim }))
            }
            Err(error) => {
                self.refuse(reference::of(&Kind::NodeClaim(claim)), error);
                self.show(Change::Remove(ObjectRef::Claim(name.into())))
            }
        }
    }

    fn refuse(&mut self, about: v1::ObjectRef, error: WireError) {
        tracing::warn!(%error, "object left out of planning");
        self.refused.push(Refused { about, error });
    }
}

#[cfg(test)]
mod tests;
