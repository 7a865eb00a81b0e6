//! Turns: who gets what there is when not all can be placed.
//!
//! Invariant: no pod that some node could hold is left without a place for one of lower priority. Where
//! everything fits, priorities change nothing.

use std::collections::BTreeSet;

use super::place::{Placed, Placer};
use super::scene::Scene;
use crate::pack::vector;
use crate::vocabulary::labels::NODE_POOL;

impl Placer<'_, '_, '_> {
    /// Places all that is wanted, as well as the scene allows. When not all can be placed, those of higher
    /// priority are.
    pub(crate) fn place(&self, scene: &mut Scene, wanted: &[i64]) -> Placed {
        let priorities = self.priorities(wanted);
        if priorities.len() < 2 {
            return self.together(scene, wanted);
        }
        let mut before = scene.clone();
        let placed = self.together(scene, wanted);
        if !self.is_unfair(&placed) {
            return placed;
        }
        let in_turn = self.in_turn(&mut before, wanted, &priorities);
        if self.missing(&in_turn, &priorities) < self.missing(&placed, &priorities) {
            *scene = before;
            return in_turn;
        }
        placed
    }

    /// Priorities of the shapes that are wanted, highest first.
    fn priorities(&self, wanted: &[i64]) -> Vec<i32> {
        let shapes = wanted.iter().enumerate().filter(|(_, count)| **count > 0);
        let all: BTreeSet<i32> =
            shapes.map(|(shape, _)| self.model.shapes[shape].priority).collect();
        all.into_iter().rev().collect()
    }

    /// True when a pod that some node could hold is left without a place while one of lower priority has
    /// got one.
    fn is_unfair(&self, placed: &Placed) -> bool {
        let priority = |shape: usize| self.model.shapes[shape].priority;
        let new = placed.nodes.iter().flat_map(|node| node.load.iter().map(|(shape, _)| *shape));
        let served = placed.hosts.iter().map(|on| on.shape).chain(new);
        let Some(lowest) = served.map(priority).min() else { return false };
        let mut refused = placed.unplaced.iter().map(|refused| refused.shape);
        refused.any(|shape| priority(shape) > lowest && self.could_be_held(shape))
    }

    fn could_be_held(&self, shape: usize) -> bool {
        let Self { model, goods, .. } = *self;
        let places = goods.places.of(goods, shape, &model.alternatives[shape], NODE_POOL);
        let request = &model.requests[shape];
        places.iter().any(|place| {
            place.price(goods, request).is_some()
                || place.hosts.iter().any(|host| vector::fits(request, &model.hosts[*host].room))
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
    fn in_turn(&self, scene: &mut Scene, wanted: &[i64], priorities: &[i32]) -> Placed {
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
            all.add(self.together(scene, &now));
        }
        let mut again = vec![0; wanted.len()];
        for refused in std::mem::take(&mut all.unplaced) {
            again[refused.shape] += refused.count;
        }
        all.add(self.together(scene, &again));
        all
    }
}
