//! Filling: pods onto existing nodes, before anything is bought.
//!
//! Invariant: existing nodes that have room now come before those that will, and stronger
//! entitlements before weaker ones; one that is full is not asked again. Pods that can wait for
//! their own node are not drawn to one that is closed.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::pack::lp::prices;
use crate::pack::problem::Problem;
use crate::pack::problem::vector::{self, Vector, float};
use crate::place::state::{Entitlement, OnExisting, PlanState};
use crate::place::{Placed, Placer};
use crate::topology::split_shapes::ClassSpec;
use crate::vocabulary::taint::Taint;

impl Placer<'_, '_, '_> {
    pub(super) fn fill_existing(
        &self,
        state: &mut PlanState,
        classes: &mut [ClassSpec],
        problem: &Problem,
        placed: &mut Placed,
    ) {
        if !state.open.contains(&true) {
            return;
        }
        let order = self.fill_order(classes, problem);
        let least = least_request(problem);
        let soft = self
            .model
            .existing_nodes
            .iter()
            .any(|existing| !existing.taints.iter().all(Taint::repels));
        for (existing_nodes, entitlements) in self.rounds() {
            let mut roomy: Vec<usize> =
                existing_nodes.filter(|existing| state.has_room(*existing, &least)).collect();
            for entitlement in entitlements.iter().copied() {
                roomy.retain(|existing| state.has_room(*existing, &least));
                let mut entitled = roomy.clone();
                entitled.retain(|existing| state.gives(*existing, entitlement));
                for class in &order {
                    if entitlement == Entitlement::None
                        && !soft
                        && !self.tells_nodes_apart(&classes[*class])
                    {
                        continue;
                    }
                    let mut there =
                        state.fill(self.model, &classes[*class], &entitled, entitlement);
                    if there.is_empty() {
                        continue;
                    }
                    classes[*class].count -= there.iter().map(|on| on.count).sum::<i64>();
                    there.iter_mut().for_each(|on| state.correct(self.model, on));
                    drop_full(&mut entitled, state, &there, &least);
                    placed.existing_nodes.extend(there);
                }
            }
        }
    }

    /// Which existing nodes are filled in which order, by which entitlements. Those that have room
    /// now are filled before those that will: kube-scheduler will not let a waiting pod wait for
    /// another node once there is room on an open one. On nodes that are closed to all but their
    /// own pods these come first, whether the nodes are there or not: to draw one to where there is
    /// room to spare would leave its place to a third, and so on, each to be told anew.
    fn rounds(&self) -> Vec<(Range<usize>, &'static [Entitlement])> {
        let all = &self.model.existing_nodes;
        let (fit, last) = (all.partition_point(|it| it.fit), all.len());
        if !self.model.input.pinned {
            return vec![(0..fit, &Entitlement::ALL), (fit..last, &Entitlement::ALL)];
        }
        let open = all.partition_point(|it| it.fit && !it.is_closed());
        let (own, others) = Entitlement::ALL.split_at(1);
        let others: &'static [Entitlement] = others;
        vec![
            (0..open, &Entitlement::ALL),
            (open..last, own),
            (open..fit, others),
            (fit..last, others),
        ]
    }

    /// True when existing nodes may differ in how well they suit pods of the class.
    fn tells_nodes_apart(&self, class: &ClassSpec) -> bool {
        class.alternatives != class.allowed
            || !self.model.topology.node_preferences.is_free(class.shape)
    }

    /// Highest priority first: kube-scheduler tries these before others, and no nomination keeps
    /// them from room. Then the most valuable classes; those that need company after all others.
    fn fill_order(&self, classes: &[ClassSpec], problem: &Problem) -> Vec<usize> {
        let worth = prices::row_values(problem, &fill_prices(problem));
        let rules = &self.model.topology.node_rules;
        let mut order: Vec<usize> = (0..classes.len()).collect();
        order.sort_by(|a, b| {
            let company = |class: usize| rules.needs_affinity(classes[class].shape);
            let priority = |class: usize| self.model.shapes[classes[class].shape].priority;
            let value = worth[*b].total_cmp(&worth[*a]);
            let urgent = priority(*b).cmp(&priority(*a));
            company(*a).cmp(&company(*b)).then(urgent).then(value).then(a.cmp(b))
        });
        order
    }
}

/// Leaves out the existing nodes that have just become full; the others are as they were.
fn drop_full(
    existing_nodes: &mut Vec<usize>,
    state: &PlanState,
    filled: &[OnExisting],
    least: &[i64],
) {
    let full =
        filled.iter().map(|on| on.existing).filter(|existing| !state.has_room(*existing, least));
    let full: BTreeSet<usize> = full.collect();
    if !full.is_empty() {
        existing_nodes.retain(|existing| !full.contains(existing));
    }
}

/// Of each resource the least that a pod requests: what has less room takes none.
fn least_request(problem: &Problem) -> Vector {
    let requests =
        problem.classes.iter().filter(|class| class.count > 0).map(|class| &class.request);
    let least = |a: Vector, b: &Vector| a.iter().zip(b).map(|(a, b)| *a.min(b)).collect();
    requests.cloned().reduce(|a, b| least(a, &b)).unwrap_or_default()
}

/// What a unit of each resource is worth on existing nodes: its price when it can be bought, else
/// its share of all that is wanted.
fn fill_prices(problem: &Problem) -> Vec<f64> {
    let counts = problem.counts();
    let line: Vec<usize> = problem.skyline.iter().flatten().copied().collect();
    if !line.is_empty() {
        return prices::resource_prices(problem, &counts, &line);
    }
    let dims = problem.classes.first().map_or(0, |class| class.request.len());
    let mut wanted = vec![0; dims];
    for (class, count) in problem.classes.iter().zip(counts) {
        vector::add(&mut wanted, &class.request, count);
    }
    wanted.iter().map(|amount| 1.0 / float((*amount).max(1))).collect()
}
