//! The room, counts and limits that are left while a plan grows.
//!
//! Invariant: everything placed can be taken back exactly, so that moves can be tried.

use std::collections::BTreeMap;

use crate::model::Model;
use crate::offers::priced::PricedOffers;
use crate::pack::problem::limits::LimitSet;
use crate::pack::problem::rules::NodeState;
use crate::pack::problem::vector::{self, Vector};
use crate::topology::split_shapes::{Assigned, ClassSpec, occupied};
use crate::vocabulary::taint::{Taint, TaintEffect};
use crate::world::topology::Topology;

/// What changes while planning.
#[derive(Clone, Debug)]
pub(crate) struct PlanState {
    /// Free room of each existing node, that of pods about to end included while places are given
    /// to pods that wait.
    pub(crate) rooms: Vec<Vector>,
    /// Node rules of each existing node.
    pub(crate) states: Vec<NodeState>,
    /// Node preferences of each existing node.
    preference_states: Vec<NodeState>,
    /// Existing nodes that take pods.
    pub(crate) open: Vec<bool>,
    /// Pods that this plan has put on each existing node, by shape.
    pub(crate) added: Vec<BTreeMap<usize, i64>>,
    /// Waiting pods that are wanted on each existing node already, by shape.
    wanted: Vec<BTreeMap<usize, i64>>,
    /// Places on each existing node for any pods of a shape: those that were wanted there run or
    /// are nominated elsewhere by now, or had not come yet.
    kept: Vec<BTreeMap<usize, i64>>,
    /// Rules over wide domains.
    pub(crate) topology: Topology,
    /// The same rules with those pods only that are there already and stay.
    pub(crate) residents: Topology,
    /// Node rules that have a member somewhere.
    pub(crate) occupied: Vec<bool>,
    /// What limits allow.
    pub(crate) limit_sets: Vec<LimitSet>,
}

/// Pods of a class on an existing node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OnExisting {
    /// Index of the existing node.
    pub(crate) existing: usize,
    /// Shape of the pods.
    pub(crate) shape: usize,
    /// How many.
    pub(crate) count: i64,
    /// Domains that they have been counted in.
    pub(crate) assigned: Assigned,
}

/// Why pods should get an existing node, strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entitlement {
    /// They are wanted there already: planning again moves nothing.
    Wanted,
    /// An earlier plan reserved this room for equal pods, which bound elsewhere or were only
    /// expected then. Keeps plans stable from one to the next.
    Inherited,
    /// There is room, and all their preferences come true.
    Wished,
    /// None: there is room.
    None,
}

impl Entitlement {
    /// All entitlements, strongest first.
    pub(crate) const ALL: [Self; 4] = [Self::Wanted, Self::Inherited, Self::Wished, Self::None];
}

impl PlanState {
    /// The world before the plan.
    pub(crate) fn begin(model: &Model<'_>, priced: &PricedOffers<'_, '_>) -> Self {
        Self {
            rooms: model.existing_nodes.iter().map(|existing| existing.later.clone()).collect(),
            states: model.existing_nodes.iter().map(|existing| existing.state.clone()).collect(),
            preference_states: model
                .existing_nodes
                .iter()
                .map(|existing| existing.preference_state.clone())
                .collect(),
            open: model.existing_nodes.iter().map(|existing| existing.open).collect(),
            added: vec![BTreeMap::new(); model.existing_nodes.len()],
            wanted: wanted(model),
            kept: kept(model),
            topology: model.topology.clone(),
            residents: model.topology.clone(),
            occupied: occupied(model),
            limit_sets: priced.limit_sets.clone(),
        }
    }

    /// From here on only room counts that is free now: what runs somewhere is not moved to where it
    /// would have to wait.
    pub(crate) fn await_no_ends(&mut self, model: &Model<'_>) {
        for (room, existing) in self.rooms.iter_mut().zip(&model.existing_nodes) {
            vector::add(room, &existing.later, -1);
            vector::add(room, &existing.room, 1);
        }
    }

    /// True when an existing node takes pods and has room for a request.
    pub(crate) fn has_room(&self, existing: usize, request: &[i64]) -> bool {
        self.open[existing] && vector::fits(request, &self.rooms[existing])
    }

    /// True when pods of some shape may have an entitlement to an existing node.
    pub(crate) fn gives(&self, existing: usize, entitlement: Entitlement) -> bool {
        match entitlement {
            Entitlement::Wanted => !self.wanted[existing].is_empty(),
            Entitlement::Inherited => !self.kept[existing].is_empty(),
            Entitlement::Wished | Entitlement::None => true,
        }
    }

    /// Puts as many pods of a class as possible on the existing nodes, in their order and as far as
    /// their entitlement to each goes, and returns where.
    pub(crate) fn fill(
        &mut self,
        model: &Model<'_>,
        class: &ClassSpec,
        existing_nodes: &[usize],
        entitlement: Entitlement,
    ) -> Vec<OnExisting> {
        let mut left = class.count;
        let mut placed: Vec<OnExisting> = Vec::new();
        for existing in existing_nodes.iter().copied() {
            if left == 0 {
                break;
            }
            let most = match entitlement {
                Entitlement::Wanted => {
                    self.wanted[existing].get(&class.shape).copied().unwrap_or(0)
                }
                Entitlement::Inherited => {
                    self.kept[existing].get(&class.shape).copied().unwrap_or(0)
                }
                Entitlement::Wished | Entitlement::None => i64::MAX,
            };
            let there = self.fill_one(model, class, existing, (left.min(most), entitlement));
            left -= there.as_ref().map_or(0, |there| there.count);
            placed.extend(there);
        }
        placed
    }

    /// Puts at most `most` pods of a class on one existing node. Without room to buy elsewhere
    /// first, preferences do not keep pods from an existing node: it is there, and kube-scheduler
    /// would not let them wait.
    fn fill_one(
        &mut self,
        model: &Model<'_>,
        class: &ClassSpec,
        existing: usize,
        (most, entitlement): (i64, Entitlement),
    ) -> Option<OnExisting> {
        let request = &model.requests[class.shape];
        if most == 0 || !self.open[existing] || !vector::fits(request, &self.rooms[existing]) {
            return None;
        }
        let free_of_rules = model.topology.node_rules.is_free(class.shape);
        let allowed = if free_of_rules { i64::MAX } else { self.allowance(model, class, existing) };
        let wished = entitlement == Entitlement::Wished;
        let granted = if wished { self.granted(model, class, existing) } else { i64::MAX };
        let count =
            vector::copies(request, &self.rooms[existing]).min(most).min(allowed).min(granted);
        let alternatives = if wished { &class.alternatives } else { &class.allowed };
        if count <= 0
            || !model.existing_nodes[existing].admits(model.shapes[class.shape], alternatives)
        {
            return None;
        }
        let there =
            OnExisting { existing, shape: class.shape, count, assigned: class.assigned.clone() };
        self.put(model, &there, 1);
        Some(there)
    }

    /// Puts pods on an existing node, or takes them back with `sign` -1.
    pub(crate) fn put(&mut self, model: &Model<'_>, there: &OnExisting, sign: i64) {
        let OnExisting { existing, shape, count, .. } = *there;
        vector::add(&mut self.rooms[existing], &model.requests[shape], -sign * count);
        *self.added[existing].entry(shape).or_default() += sign * count;
        self.added[existing].retain(|_, count| *count != 0);
        let preferences = &model.topology.node_preferences;
        if !preferences.is_free(shape) {
            preferences.record(shape, sign * count, &mut self.preference_states[existing]);
        }
        let rules = &model.topology.node_rules;
        if !rules.is_free(shape) {
            rules.record(shape, sign * count, &mut self.states[existing]);
            if sign > 0 {
                rules.mark_begun(shape, &mut self.occupied);
            }
        }
    }

    /// Moves the counts of pods that went to an existing node in another domain than a preference
    /// had chosen.
    pub(crate) fn correct(&mut self, model: &Model<'_>, there: &mut OnExisting) {
        let label = |key: &str| model.existing_nodes[there.existing].label(key).map(str::to_owned);
        let here = there.assigned.iter().filter_map(|(key, _)| Some((key.clone(), label(key)?)));
        let here: Assigned = here.collect();
        if here != there.assigned {
            self.uncount(there.shape, &there.assigned, there.count);
            self.uncount(there.shape, &here, -there.count);
            there.assigned = here;
        }
    }

    /// How many pods of a class an existing node takes without going against a preference about
    /// that node.
    fn granted(&self, model: &Model<'_>, class: &ClassSpec, existing: usize) -> i64 {
        let soft = |taint: &Taint| {
            let tolerations = &model.shapes[class.shape].tolerations;
            taint.effect == TaintEffect::PreferNoSchedule
                && !tolerations.iter().any(|toleration| toleration.covers(taint))
        };
        if model.existing_nodes[existing].taints.iter().any(soft) {
            return 0;
        }
        let preferences = &model.topology.node_preferences;
        if preferences.is_free(class.shape) {
            return i64::MAX;
        }
        preferences.allowance(class.shape, &self.preference_states[existing], false)
    }

    /// Counts pods that found no place out of the domains they were given.
    pub(crate) fn uncount(&mut self, shape: usize, assigned: &Assigned, count: i64) {
        for (key, domain) in assigned {
            self.topology.record_in(shape, key, domain, -count);
        }
    }

    /// True when pods of the shape are wanted on an existing node and have not all been put there.
    pub(crate) fn wants(&self, existing: usize, shape: usize) -> bool {
        let count = |pods: &BTreeMap<usize, i64>| pods.get(&shape).copied().unwrap_or(0);
        count(&self.added[existing]) < count(&self.wanted[existing])
    }

    fn allowance(&self, model: &Model<'_>, class: &ClassSpec, existing: usize) -> i64 {
        let rules = &model.topology.node_rules;
        let first = rules.may_begin(class.shape, &self.occupied);
        rules.allowance(class.shape, &self.states[existing], first)
    }
}

/// Waiting pods by the existing node they are wanted on and by shape.
fn wanted(model: &Model<'_>) -> Vec<BTreeMap<usize, i64>> {
    let shapes = model.demand.iter().enumerate();
    let preferences = shapes.flat_map(|(shape, pods)| pods.iter().map(move |pod| (shape, pod)));
    by_existing(
        model,
        preferences.filter_map(|(shape, pod)| Some((model.preference(pod)?, shape, 1))),
    )
}

/// Places by existing node and shape of pods that are elsewhere, and of those that were to come.
fn kept(model: &Model<'_>) -> Vec<BTreeMap<usize, i64>> {
    let lost = model.input.earlier.iter().filter_map(|(uid, preference)| {
        let pod = model.input.world.pods.get(uid)?;
        let there = pod.node.as_ref().or(pod.nominated_node.as_ref());
        let elsewhere = there.is_some_and(|node| node.as_str() != preference);
        Some((preference.as_str(), model.shape_of(pod)?, 1)).filter(|_| elsewhere)
    });
    let to_come = model.input.kept.iter().flat_map(|(existing, places)| {
        let places = places.iter();
        places
            .filter_map(|(shape, count)| Some((existing.as_str(), model.index_of(shape)?, *count)))
    });
    by_existing(model, lost.chain(to_come))
}

/// Counts pods, each with an existing node's name, a shape and how many they are.
fn by_existing<'w>(
    model: &Model<'_>,
    pods: impl Iterator<Item = (&'w str, usize, i64)>,
) -> Vec<BTreeMap<usize, i64>> {
    let names = model.existing_nodes.iter().map(|existing| existing.target.name());
    let existing_nodes: BTreeMap<&str, usize> =
        names.enumerate().filter_map(|(at, name)| Some((name?, at))).collect();
    let mut counts = vec![BTreeMap::new(); model.existing_nodes.len()];
    for (name, shape, count) in pods {
        if let Some(existing) = existing_nodes.get(name) {
            *counts[*existing].entry(shape).or_default() += count;
        }
    }
    counts
}
