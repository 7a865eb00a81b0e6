//! Gleaning: pods without a place are tried once more beside all that has one. Domains and hosts have been
//! chosen for many pods at once, each before it was known where others would be.
//!
//! Invariant: no pod that has a place loses it, and every rule holds after every pod.

use std::rc::Rc;

use crate::pack::problem::vector;
use crate::place::repair;
use crate::place::sequence::{Drafted, Grown, Manner, Sequence};
use crate::place::state::Scene;
use crate::place::{Bought, Placed, Placer, without_circles};
use crate::question::Effort;
use crate::topology::split_shapes::Refused;
use crate::world::topology::{Group, GroupSpec};

/// Most shapes without a place that are tried.
const SHAPES_MAX: usize = 64;
/// Most nodes, there or bought, that each pod is tried on.
const NODES_MAX: i64 = 512;

impl Placer<'_, '_, '_> {
    /// Puts pods that found no place on hosts, on nodes that are to be bought or on more of them.
    pub(crate) fn glean(&self, scene: &mut Scene, placed: &mut Placed) {
        if let Some(left) = self.gleanable(scene, placed) {
            self.glean_once(scene, placed, (&left, true));
        }
        if let Some(left) = self.gleanable(scene, placed) {
            self.glean_standing(scene, placed, &left);
        }
    }

    /// What is planned levels spreads over all domains that are sold; kube-scheduler knows only those of the
    /// nodes that there will be, and binds more pods to these.
    fn glean_standing(&self, scene: &mut Scene, placed: &mut Placed, left: &[i64]) {
        let planned = repair::planned(placed);
        let may_profit = |group: &Group| {
            let GroupSpec { rule, wish, owners, .. } = &*group.spec;
            rule.is_spread() && wish.is_none() && owners.iter().any(|shape| left[shape] > 0)
        };
        if !scene.topology.groups.iter().any(may_profit) {
            return;
        }
        let level = |group: &mut Group| {
            let spec = Rc::clone(&group.spec);
            let standing = repair::standing(self.model, self.goods, &planned, &spec);
            group.level(Rc::new(standing))
        };
        let sold: Vec<_> = scene.topology.groups.iter_mut().map(level).collect();
        self.glean_once(scene, placed, (left, false));
        for (group, sold) in scene.topology.groups.iter_mut().zip(sold) {
            group.level(sold);
        }
    }

    fn glean_once(&self, scene: &mut Scene, placed: &mut Placed, (left, buy): (&[i64], bool)) {
        let refused = std::mem::take(&mut placed.unplaced);
        let wanted = without_circles(self.model, scene, left, &mut Placed::default());
        let manner = Manner { scarce_first: false, grow: false, buy };
        let sequence = Sequence::new(self.goods, scene, manner).with(&placed.nodes);
        let Drafted { hosts, rows, packed, grown, left: mut still } = sequence.run(&wanted);
        let found_some = still != wanted;
        placed.hosts.extend(hosts);
        grown.into_iter().for_each(|grown| self.grow(scene, &mut placed.nodes, grown));
        placed.nodes.retain(|node| node.copies > 0);
        if !packed.is_empty() {
            self.buy_drafts(scene, (&rows, packed), &mut still, placed);
        }
        for Refused { shape, count, obstacle } in refused {
            let found = (wanted[shape] - still[shape]).min(count);
            still[shape] += found;
            if count > found {
                placed.unplaced.push(Refused { shape, count: count - found, obstacle });
            }
        }
        if found_some {
            repair::to_rules(self.model, self.goods, scene, placed);
        }
    }

    /// How many of each shape may find a place yet; none when that is not worth the work.
    fn gleanable(&self, scene: &Scene, placed: &Placed) -> Option<Vec<i64>> {
        let left = placed.left(self.model.shapes.len());
        let shapes = left.iter().filter(|count| **count > 0).count();
        let open = scene.open.iter().filter(|open| **open).count();
        let bought: i64 = placed.nodes.iter().map(|node| node.copies).sum();
        let nodes = bought.saturating_add(i64::try_from(open).unwrap_or(i64::MAX));
        let few = (1..=SHAPES_MAX).contains(&shapes) && nodes <= NODES_MAX;
        let plain = self.goods.flexible.iter().all(Option::is_none);
        (few && plain && self.effort > Effort::Greedy).then_some(left)
    }

    /// Gives one of equal nodes more pods.
    fn grow(&self, scene: &mut Scene, nodes: &mut Vec<Bought>, grown: Grown) {
        let goods = self.goods;
        let of = &mut nodes[grown.node];
        of.copies -= 1;
        let mut node = Bought { copies: 1, ..of.clone() };
        for (offers, sign) in [(&node.offers, 1), (&grown.offers, -1)] {
            let Some(offer) = offers.first() else { continue };
            let budget = &mut scene.budgets[goods.offers[*offer].stall];
            vector::add(&mut budget.left, goods.charge(*offer), sign);
        }
        node.offers = grown.offers;
        for part in &grown.load {
            match node.load.iter_mut().find(|(shape, _)| *shape == part.shape) {
                Some((_, count)) => *count += part.count,
                None => node.load.push((part.shape, part.count)),
            }
            self.model.topology.node_rules.mark_begun(part.shape, &mut scene.begun);
        }
        node.load.sort_unstable();
        node.counted.extend(grown.load);
        nodes.push(node);
    }
}
