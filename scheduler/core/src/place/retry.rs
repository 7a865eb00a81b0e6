//! Retry: pods without a place are tried once more beside all that has one. Domains and existing
//! nodes have been chosen for many pods at once, each before it was known where others would be.
//!
//! Invariant: no pod that has a place loses it, and every rule holds after every pod.

use std::rc::Rc;

use crate::pack::problem::vector;
use crate::place::one_by_one::Drafts;
use crate::place::repair;
use crate::place::sequence::{Drafted, Grown, Sequence, SequenceMode};
use crate::place::state::PlanState;
use crate::place::{Bought, Placed, Placer, without_cycles};
use crate::question::Effort;
use crate::topology::split_shapes::Refused;
use crate::world::topology::{Group, GroupSpec};

/// Most shapes without a place that are tried.
const SHAPES_MAX: usize = 64;
/// Most nodes, there or bought, that each pod is tried on.
const NODES_MAX: i64 = 512;

impl Placer<'_, '_, '_> {
    /// Puts pods that found no place on existing nodes, on nodes that are to be bought or on more
    /// of them.
    pub(crate) fn retry(&self, state: &mut PlanState, placed: &mut Placed) {
        if let Some(left) = self.retriable(state, placed) {
            self.retry_once(state, placed, &left, true);
        }
        if let Some(left) = self.retriable(state, placed) {
            self.retry_standing(state, placed, &left);
        }
    }

    /// What is planned levels spreads over all domains that are sold; kube-scheduler knows only
    /// those of the nodes that there will be, and binds more pods to these.
    fn retry_standing(&self, state: &mut PlanState, placed: &mut Placed, left: &[i64]) {
        let planned = repair::planned(placed);
        let may_profit = |group: &Group| {
            let GroupSpec { rule, preference, owners, .. } = &*group.spec;
            rule.is_spread() && preference.is_none() && owners.iter().any(|shape| left[shape] > 0)
        };
        if !state.topology.groups.iter().any(may_profit) {
            return;
        }
        let level = |group: &mut Group| {
            let spec = Rc::clone(&group.spec);
            let standing = repair::standing(self.model, self.priced, &planned, &spec);
            group.level(Rc::new(standing))
        };
        let sold: Vec<_> = state.topology.groups.iter_mut().map(level).collect();
        self.retry_once(state, placed, left, false);
        for (group, sold) in state.topology.groups.iter_mut().zip(sold) {
            group.level(sold);
        }
    }

    fn retry_once(&self, state: &mut PlanState, placed: &mut Placed, left: &[i64], buy: bool) {
        let refused = std::mem::take(&mut placed.unplaced);
        let wanted = without_cycles(self.model, state, left, &mut Placed::default());
        let mode = SequenceMode { scarce_first: false, grow: false, buy };
        let sequence = Sequence::new(self.priced, state, mode).with(&placed.nodes);
        let Drafted { existing_nodes, classes, packed, grown, left: mut still } =
            sequence.run(&wanted);
        let found_some = still != wanted;
        placed.existing_nodes.extend(existing_nodes);
        grown.into_iter().for_each(|grown| self.grow(state, &mut placed.nodes, grown));
        placed.nodes.retain(|node| node.copies > 0);
        if !packed.is_empty() {
            let drafts = Drafts { classes: &classes, packed };
            self.buy_drafts(state, drafts, &mut still, placed);
        }
        for Refused { shape, count, obstacle } in refused {
            let found = (wanted[shape] - still[shape]).min(count);
            still[shape] += found;
            if count > found {
                placed.unplaced.push(Refused { shape, count: count - found, obstacle });
            }
        }
        if found_some {
            repair::to_rules(self.model, self.priced, state, placed);
        }
    }

    /// How many of each shape may find a place yet; none when that is not worth the work.
    fn retriable(&self, state: &PlanState, placed: &Placed) -> Option<Vec<i64>> {
        let left = placed.left(self.model.shapes.len());
        let shapes = left.iter().filter(|count| **count > 0).count();
        let open = state.open.iter().filter(|open| **open).count();
        let bought: i64 = placed.nodes.iter().map(|node| node.copies).sum();
        let nodes = bought.saturating_add(i64::try_from(open).unwrap_or(i64::MAX));
        let few = (1..=SHAPES_MAX).contains(&shapes) && nodes <= NODES_MAX;
        let plain = self.priced.flexible.iter().all(Option::is_none);
        (few && plain && self.effort > Effort::Greedy).then_some(left)
    }

    /// Gives one of equal nodes more pods.
    fn grow(&self, state: &mut PlanState, nodes: &mut Vec<Bought>, grown: Grown) {
        let priced = self.priced;
        let of = &mut nodes[grown.node];
        of.copies -= 1;
        let mut node = Bought { copies: 1, ..of.clone() };
        for (offers, sign) in [(&node.offers, 1), (&grown.offers, -1)] {
            let Some(offer) = offers.first() else { continue };
            let limit_set = &mut state.limit_sets[priced.all[*offer].pool_offers];
            vector::add(&mut limit_set.left, priced.charge(*offer), sign);
        }
        node.offers = grown.offers;
        for part in &grown.load {
            match node.load.iter_mut().find(|(shape, _)| *shape == part.shape) {
                Some((_, count)) => *count += part.count,
                None => node.load.push((part.shape, part.count)),
            }
            self.model.topology.node_rules.mark_begun(part.shape, &mut state.occupied);
        }
        node.load.sort_unstable();
        node.counted.extend(grown.load);
        nodes.push(node);
    }
}
