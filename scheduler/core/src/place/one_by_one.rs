//! One by one: what a sequence of single pods comes to, as a plan.
//!
//! Invariant: the same rules are looked at afterwards as for pods that are placed all at once.

use crate::pack::problem::Packed;
use crate::pack::problem::limits::LimitsLeft;
use crate::pack::solve;
use crate::place::repair;
use crate::place::sequence::{Drafted, Sequence, SequenceMode};
use crate::place::state::PlanState;
use crate::place::{Placed, Placer, without_cycles};
use crate::question::Effort;
use crate::reason::Obstacle;
use crate::topology::split_shapes::{ClassSpec, Refused};

/// Nodes that are drafted, and the classes of their pods.
pub(super) struct Drafts<'c> {
    pub(super) classes: &'c [ClassSpec],
    pub(super) packed: Vec<Packed>,
}

impl Placer<'_, '_, '_> {
    /// Places all that is wanted one pod after the other, in the manner that drafts best. `why`
    /// says what to answer pods that find no place.
    pub(super) fn one_by_one(
        &self,
        state: &mut PlanState,
        wanted: &[i64],
        why: &[Refused],
    ) -> Placed {
        let mut placed = Placed::default();
        let wanted = &without_cycles(self.model, state, wanted, &mut placed);
        let drafts = SequenceMode::ALL.map(|mode| {
            let mut after = state.clone();
            let drafted = Sequence::new(self.priced, &mut after, mode).run(wanted);
            (drafted, after)
        });
        let best = drafts.into_iter().min_by_key(|(drafted, _)| self.score_of(drafted));
        let Some((drafted, after)) = best else { return placed };
        *state = after;
        placed.existing_nodes = drafted.existing_nodes;
        let mut left = drafted.left;
        let drafts = Drafts { classes: &drafted.classes, packed: drafted.packed };
        self.buy_drafts(state, drafts, &mut left, &mut placed);
        for (shape, count) in left.into_iter().enumerate().filter(|(_, count)| *count > 0) {
            let known = why.iter().find(|refused| refused.shape == shape);
            let obstacle = known.map_or(Obstacle::NoPoolAdmits, |known| known.obstacle.clone());
            placed.unplaced.push(Refused { shape, count, obstacle });
        }
        repair::to_rules(self.model, self.priced, state, &mut placed);
        placed
    }

    /// Pods left, then the cost.
    fn score_of(&self, drafted: &Drafted) -> (i64, i64) {
        let cost = drafted.packed.iter().map(|packed| self.priced.cost(packed.bin)).sum();
        (drafted.left.iter().sum(), cost)
    }

    /// Buys the drafted nodes, or what packing makes of their pods where that is cheaper.
    pub(super) fn buy_drafts(
        &self,
        state: &mut PlanState,
        drafts: Drafts<'_>,
        left: &mut [i64],
        placed: &mut Placed,
    ) {
        let Drafts { classes, packed: drafts } = drafts;
        let problem = self.problem(classes, state, &self.priced.all);
        let mut limits_left = LimitsLeft::new(&problem);
        let solved = solve::solve(&problem, Effort::Greedy, &state.occupied);
        let whole = solved.left.iter().all(|left| *left == 0);
        let cheaper = whole && problem.price(&solved.packed) < problem.price(&drafts);
        for packed in if cheaper { &solved.packed } else { &drafts } {
            let Some(bought) = self.bought(&problem, classes, packed) else {
                for (class, count) in &packed.load {
                    let class = &classes[*class];
                    state.uncount(class.shape, &class.assigned, count * packed.copies);
                    left[class.shape] += count * packed.copies;
                }
                continue;
            };
            limits_left.charge(&problem.bins[packed.bin], packed.copies);
            placed.nodes.push(bought);
            for (class, _) in &packed.load {
                let shape = problem.classes[*class].shape;
                self.model.topology.node_rules.mark_begun(shape, &mut state.occupied);
            }
        }
        state.limit_sets = limits_left.limit_sets().to_vec();
    }
}
