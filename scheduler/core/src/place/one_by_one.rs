//! One by one: what a sequence of single pods comes to, as a plan.
//!
//! Invariant: the same rules are looked at afterwards as for pods that are placed all at once.

use crate::pack::problem::Packed;
use crate::pack::problem::limits::Ledger;
use crate::pack::solve;
use crate::place::repair;
use crate::place::sequence::{Drafted, Manner, Sequence};
use crate::place::state::Scene;
use crate::place::{Placed, Placer, without_circles};
use crate::question::Effort;
use crate::reason::Obstacle;
use crate::topology::split_shapes::{Refused, RowSpec};

impl Placer<'_, '_, '_> {
    /// Places all that is wanted one pod after the other, in the manner that drafts best. `why` says what to
    /// answer pods that find no place.
    pub(super) fn one_by_one(&self, scene: &mut Scene, wanted: &[i64], why: &[Refused]) -> Placed {
        let mut placed = Placed::default();
        let wanted = &without_circles(self.model, scene, wanted, &mut placed);
        let drafts = Manner::ALL.map(|manner| {
            let mut after = scene.clone();
            let drafted = Sequence::new(self.goods, &mut after, manner).run(wanted);
            (drafted, after)
        });
        let best = drafts.into_iter().min_by_key(|(drafted, _)| self.score_of(drafted));
        let Some((drafted, after)) = best else { return placed };
        *scene = after;
        placed.hosts = drafted.hosts;
        let mut left = drafted.left;
        self.buy_drafts(scene, (&drafted.rows, drafted.packed), &mut left, &mut placed);
        for (shape, count) in left.into_iter().enumerate().filter(|(_, count)| *count > 0) {
            let known = why.iter().find(|refused| refused.shape == shape);
            let obstacle = known.map_or(Obstacle::NoPoolAdmits, |known| known.obstacle.clone());
            placed.unplaced.push(Refused { shape, count, obstacle });
        }
        repair::to_rules(self.model, self.goods, scene, &mut placed);
        placed
    }

    /// Pods left, then the cost.
    fn score_of(&self, drafted: &Drafted) -> (i64, i64) {
        let cost = drafted.packed.iter().map(|packed| self.goods.cost(packed.bin)).sum();
        (drafted.left.iter().sum(), cost)
    }

    /// Buys the drafted nodes, or what packing makes of their pods where that is cheaper.
    pub(super) fn buy_drafts(
        &self,
        scene: &mut Scene,
        (rows, drafts): (&[RowSpec], Vec<Packed>),
        left: &mut [i64],
        placed: &mut Placed,
    ) {
        let problem = self.problem(rows, scene, &self.goods.offers);
        let mut ledger = Ledger::new(&problem);
        let solved = solve::solve(&problem, Effort::Greedy, &scene.begun);
        let whole = solved.left.iter().all(|left| *left == 0);
        let cheaper = whole && problem.price(&solved.packed) < problem.price(&drafts);
        for packed in if cheaper { &solved.packed } else { &drafts } {
            let Some(bought) = self.bought((&problem, rows), packed) else {
                for (row, count) in &packed.load {
                    let row = &rows[*row];
                    scene.uncount(row.shape, &row.given, count * packed.copies);
                    left[row.shape] += count * packed.copies;
                }
                continue;
            };
            ledger.charge(&problem.bins[packed.bin], packed.copies);
            placed.nodes.push(bought);
            for (row, _) in &packed.load {
                let shape = problem.rows[*row].shape;
                self.model.topology.node_rules.mark_begun(shape, &mut scene.begun);
            }
        }
        scene.budgets = ledger.budgets().to_vec();
    }
}
