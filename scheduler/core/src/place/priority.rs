//! Priority: who gets what there is when not all can be placed.
//!
//! Invariant: no pod that some node could hold is left without a place for one of lower priority,
//! or for a preference. Where everything fits, priorities change nothing.

use std::collections::BTreeSet;

use crate::pack::problem::vector;
use crate::place::state::PlanState;
use crate::place::{Bought, Placed, Placer};
use crate::question::Effort;
use crate::reason::Obstacle;
use crate::topology::preferences::Preferences;
use crate::topology::split_shapes::Refused;
use crate::vocabulary::labels::NODE_POOL;

/// Most pods that are also placed one after the other.
const SEQUENCE_PODS_MAX: i64 = 256;
/// Most existing nodes that each of them may be compared with.
const SEQUENCE_HOSTS_MAX: usize = 256;

/// By what one way of placing is better than another.
#[derive(Clone, Copy)]
struct Merits {
    /// Pods without a place.
    left: i64,
    /// Of the new nodes.
    cost: i64,
    /// Preferences given up, by weight.
    ungranted: i64,
}

impl Placer<'_, '_, '_> {
    /// Places all that is wanted, as well as the plan state allows: all at once, and in small
    /// worlds one after the other too. The better is kept; a preference is given up for it where
    /// that saves more than the premium.
    pub(crate) fn place(&self, state: &mut PlanState, wanted: &[i64]) -> Placed {
        if !self.may_profit(state, wanted) {
            return self.at_once(state, wanted);
        }
        let mut after = state.clone();
        let best = self.at_once(state, wanted);
        if self.score(&best) == (0, 0) {
            return best;
        }
        let placed = self.one_by_one(&mut after, wanted, &best.unplaced);
        if !self.is_better(self.merits(&placed, &after), self.merits(&best, state)) {
            return best;
        }
        *state = after;
        placed
    }

    /// True when one way of placing is better than another.
    fn is_better(&self, one: Merits, other: Merits) -> bool {
        let premium = self.model.input.preference_premium_percent;
        let granted = one.ungranted <= other.ungranted;
        let saves = one.cost.saturating_mul(100 + premium) < other.cost.saturating_mul(100);
        let cheaper = one.cost < other.cost && (granted || saves);
        one.left < other.left || (one.left == other.left && cheaper)
    }

    fn merits(&self, placed: &Placed, after: &PlanState) -> Merits {
        let (left, cost) = self.score(placed);
        Merits { left, cost, ungranted: after.topology.ungranted() }
    }

    /// Places all at once. When not all can be placed, it is tried without preferences and in order
    /// of priority, and what leaves least is kept.
    fn at_once(&self, state: &mut PlanState, wanted: &[i64]) -> Placed {
        let priorities = self.priorities(wanted);
        let preferring = self.is_wishful(wanted);
        if priorities.len() < 2 && !preferring {
            return self.together(state, wanted, Preferences::All);
        }
        let before = state.clone();
        let mut best = self.together(state, wanted, Preferences::All);
        let (short, unfair) = (self.is_short(&best), self.is_unfair(&best));
        let mut consider = |placed: Placed, after: PlanState| {
            if self.missing(&placed, &priorities) < self.missing(&best, &priorities) {
                (best, *state) = (placed, after);
            }
        };
        if preferring && short {
            let mut after = before.clone();
            let placed = self.together(&mut after, wanted, Preferences::None);
            consider(placed, after);
        }
        if unfair {
            let mut after = before;
            let placed = self.in_turn(&mut after, wanted, &priorities);
            consider(placed, after);
        }
        best
    }

    /// True when domains, existing nodes or pools are to be chosen for few pods.
    fn may_profit(&self, state: &PlanState, wanted: &[i64]) -> bool {
        let Self { model, priced, effort, buy } = *self;
        let pods: i64 = wanted.iter().sum();
        let choice = model.market.tiers > 1
            || state.open.contains(&true)
            || state.topology.groups.iter().any(|group| group.spec.preference.is_none());
        let mut shapes = (0..wanted.len()).filter(|shape| wanted[*shape] > 0);
        let of_nodes =
            |shape| Preferences::Nodes.any(model, shape) || Preferences::Taints.any(model, shape);
        buy && choice
            && !shapes.any(of_nodes)
            && self.priorities(wanted).len() < 2
            && effort > Effort::Greedy
            && pods <= SEQUENCE_PODS_MAX
            && model.existing_nodes.len() <= SEQUENCE_HOSTS_MAX
            && priced.flexible.iter().all(Option::is_none)
    }

    /// Pods left, then the cost.
    fn score(&self, placed: &Placed) -> (i64, i64) {
        let left = placed.unplaced.iter().map(|refused| refused.count).sum();
        let cost = |node: &Bought| {
            node.offers.first().map_or(0, |offer| self.priced.cost(*offer) * node.copies)
        };
        (left, placed.nodes.iter().map(cost).sum())
    }

    /// True when some shape that is wanted has preferences.
    fn is_wishful(&self, wanted: &[i64]) -> bool {
        let mut shapes = (0..wanted.len()).filter(|shape| wanted[*shape] > 0);
        shapes.any(|shape| {
            Preferences::KINDS.iter().any(|preferences| preferences.any(self.model, shape))
        })
    }

    /// True when there was no room for a pod that some node could hold.
    fn is_short(&self, placed: &Placed) -> bool {
        let no_room = |refused: &&Refused| refused.obstacle == Obstacle::NoPoolAdmits;
        let mut shapes = placed.unplaced.iter().filter(no_room).map(|refused| refused.shape);
        shapes.any(|shape| self.could_be_held(shape))
    }

    /// Priorities of the shapes that are wanted, highest first.
    fn priorities(&self, wanted: &[i64]) -> Vec<i32> {
        let shapes = wanted.iter().enumerate().filter(|(_, count)| **count > 0);
        let all: BTreeSet<i32> =
            shapes.map(|(shape, _)| self.model.shapes[shape].priority).collect();
        all.into_iter().rev().collect()
    }

    /// True when a pod that some node could hold is left without a place while one of lower
    /// priority has got one.
    fn is_unfair(&self, placed: &Placed) -> bool {
        let priority = |shape: usize| self.model.shapes[shape].priority;
        let new = placed.nodes.iter().flat_map(|node| node.load.iter().map(|(shape, _)| *shape));
        let served = placed.existing_nodes.iter().map(|on| on.shape).chain(new);
        let Some(lowest) = served.map(priority).min() else { return false };
        let mut refused = placed.unplaced.iter().map(|refused| refused.shape);
        refused.any(|shape| priority(shape) > lowest && self.could_be_held(shape))
    }

    fn could_be_held(&self, shape: usize) -> bool {
        let Self { model, priced, .. } = *self;
        let places = priced.places.of(priced, shape, &model.alternatives[shape], NODE_POOL);
        let request = &model.requests[shape];
        places.iter().any(|place| {
            place.cost(priced, request).is_some()
                || place
                    .existing_nodes
                    .iter()
                    .any(|existing| vector::fits(request, &model.existing_nodes[*existing].room))
        })
    }

    /// Pods without a place, by priority.
    fn missing(&self, placed: &Placed, priorities: &[i32]) -> Vec<i64> {
        let of = |priority: &i32| {
            let refused = placed.unplaced.iter();
            let refused = refused.filter(|r| self.model.shapes[r.shape].priority == *priority);
            refused.map(|refused| refused.count).sum()
        };
        priorities.iter().map(of).collect()
    }

    /// One priority after the other; at last those once more that wait for others.
    fn in_turn(&self, state: &mut PlanState, wanted: &[i64], priorities: &[i32]) -> Placed {
        let mut all = Placed::default();
        for priority in priorities {
            let counts = wanted.iter().enumerate();
            let now: Vec<i64> = counts
                .map(
                    |(shape, n)| {
                        if self.model.shapes[shape].priority == *priority { *n } else { 0 }
                    },
                )
                .collect();
            self.add(state, &now, Preferences::All, &mut all);
        }
        let again = all.left(wanted.len());
        all.unplaced.clear();
        self.add(state, &again, Preferences::All, &mut all);
        all
    }
}
