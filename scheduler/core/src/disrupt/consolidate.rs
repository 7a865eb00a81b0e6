//! Consolidation: nodes whose pods fit elsewhere go; others are replaced when that is cheaper.
//!
//! Invariant: a replacement costs less than what it replaces even when every node of it is bought
//! at the dearest offering on its list. Unlike Karpenter's, a move may replace m nodes by n, with n
//! < m; or by any number that costs half of what would be left.

use std::collections::BTreeSet;

use crate::disrupt::candidate::Candidate;
use crate::disrupt::rebinding::Rebinding;
use crate::disrupt::relocate::{Moved, Relocation, wanted};
use crate::disrupt::scales::{self, Exchange, Scales, Stakes};
use crate::disrupt::turns::Turns;
use crate::disrupt::{Context, Disruptor};
use crate::pack::problem::vector::{self, float};
use crate::place::Placed;
use crate::vocabulary::catalogue::CapacityType;
use crate::vocabulary::ids::PoolName;
use crate::vocabulary::labels::CAPACITY_TYPE;
use crate::vocabulary::pool::DisruptionReason;

/// Most nodes for which a move onto existing nodes is tried in one plan, others by [`Turns`].
const DELETE_TRIALS_MAX: usize = 1_000;
/// Most single nodes for which a replacement is tried in one plan.
const REPLACE_TRIALS_MAX: usize = 50;
/// Most nodes replaced by one decision.
const TOGETHER_MAX: usize = 64;
/// What goes saves of its pool's cost at least one part in so many of the share that it moves of
/// the pool's pods, as Karpenter's policy Balanced has it, or its pods wait as long as any: many
/// are not moved for a little each time that a fleet changes, and one that has long been quiet is
/// bettered all the same.
const FAIR_SHARE: f64 = 2.0;
/// A node that is emptied while its pods are those that it was bought for is at least one part in
/// so many of what its pool costs, or they wait as long as for a replacement that saves a half: a
/// large burst is not stirred again at once for one node of it.
const BURST_SHARE: f64 = 50.0;

impl<'g, 'm, 'a> Disruptor<'_, 'g, 'm, 'a> {
    /// Removes what saves money.
    pub(super) fn consolidate(&mut self, candidates: &[Candidate<'a>]) {
        let mut order: Vec<&Candidate<'a>> =
            candidates.iter().filter(|c| c.may_consolidate()).collect();
        order.sort_by(|a, b| self.yield_of(b).total_cmp(&self.yield_of(a)));
        let mut rebinding = Rebinding::new(&self.context);
        let mut turns = Turns::at(self.context.model.input.now_ms);
        self.delete(&turns.some(&order, DELETE_TRIALS_MAX), &mut rebinding);
        order.retain(|candidate| candidate.may_be_replaced());
        let pools: BTreeSet<&PoolName> =
            order.iter().map(|candidate| &candidate.pool.name).collect();
        for pool in pools {
            let of_pool: Vec<&Candidate<'a>> =
                order.iter().copied().filter(|c| c.pool.name == *pool).collect();
            self.replace_together(&of_pool, &mut rebinding);
            let others = turns.others(&of_pool, TOGETHER_MAX, TOGETHER_MAX);
            self.replace_together(&others, &mut rebinding);
        }
        order.retain(|candidate| self.may_be_tried(candidate));
        self.replace_singly(&turns.some(&order, REPLACE_TRIALS_MAX), &mut rebinding);
        self.plan.wake_ms = self.plan.wake_ms.into_iter().chain(turns.ends_ms()).min();
    }

    /// Cost an hour for each unit of disturbance.
    fn yield_of(&self, candidate: &Candidate<'_>) -> f64 {
        float(self.cost(candidate).unwrap_or(0)) / candidate.move_cost
    }

    fn cost(&self, candidate: &Candidate<'_>) -> Option<i64> {
        self.context.model.existing_nodes[candidate.existing].cost
    }

    fn cost_of(&self, gone: &[&Candidate<'a>]) -> i64 {
        gone.iter().filter_map(|candidate| self.cost(candidate)).sum()
    }

    /// What would be left of nodes if pods came to as few of them as hold all: the cheapest first,
    /// each filled. None when they do not hold all.
    fn filled<'c>(
        &self,
        nodes: &[&'c Candidate<'a>],
        mut pods: Vec<i64>,
    ) -> Option<Vec<&'c Candidate<'a>>> {
        let Context { model, ref state, .. } = self.context;
        let mut order = nodes.to_vec();
        order.sort_by_key(|candidate| self.cost(candidate));
        order.retain(|candidate| {
            let mut room = state.rooms[candidate.existing].clone();
            for (shape, count) in candidate.load() {
                vector::add(&mut room, &model.requests[shape], count);
            }
            let mut stays = false;
            for (shape, left) in pods.iter_mut().enumerate().filter(|(_, left)| **left > 0) {
                let count = vector::copies(&model.requests[shape], &room).min(*left);
                vector::add(&mut room, &model.requests[shape], -count);
                *left -= count;
                stays |= count > 0;
            }
            stays
        });
        pods.iter().all(|left| *left == 0).then_some(order)
    }

    fn stakes_of(&self, candidate: &Candidate<'a>) -> Stakes {
        self.stakes.get(&candidate.pool.name).copied().unwrap_or_default()
    }

    /// True when what a node costs is worth moving its pods now, were there room on others; so it
    /// is when nobody knows.
    fn pays_to_empty(&self, candidate: &Candidate<'a>) -> bool {
        let Some(cost) = self.cost(candidate).map(float) else { return true };
        let of_pool = self.stakes_of(candidate);
        let fair = cost * FAIR_SHARE >= of_pool.share(&[candidate]);
        let part = cost * BURST_SHARE >= of_pool.cost || candidate.has_been_moved();
        (fair || candidate.has_paid_anything()) && (part || candidate.has_paid(1, 2))
    }

    fn delete(&mut self, order: &[&Candidate<'a>], rebinding: &mut Rebinding<'g, 'm, 'a>) {
        let mut trials = 0;
        for candidate in order {
            let may_go = self.may_go(candidate, DisruptionReason::Underutilized);
            if !may_go || !self.pays_to_empty(candidate) {
                continue;
            }
            if trials < REPLACE_TRIALS_MAX {
                let exchanges = self.in_place_of_emptying(candidate, order, rebinding);
                trials += exchanges.len();
                if exchanges.iter().any(|one| self.trial(one, rebinding) == Trial::Taken) {
                    continue;
                }
            }
            let stands = |moved: Moved<'_>, placed: &mut Placed| rebinding.takes(moved, placed);
            if let Some(placed) = self.relocation(&[candidate]).onto_existing_if(stands) {
                self.commit(&[candidate], DisruptionReason::Underutilized, &placed);
            }
        }
    }

    /// What may be replaced rather than that a node is emptied onto those of its pool that have
    /// room for one of its pods: these, beside it, or all together.
    fn in_place_of_emptying<'c>(
        &self,
        candidate: &'c Candidate<'a>,
        order: &[&'c Candidate<'a>],
        rebinding: &mut Rebinding<'g, 'm, 'a>,
    ) -> Vec<Exchange<'c, 'a>> {
        let model = self.context.model;
        let pods = wanted(model, &[candidate]);
        let of_pool = order.iter().copied().filter(|other| other.pool.name == candidate.pool.name);
        let others = of_pool.filter(|other| other.existing != candidate.existing);
        let roomy = others.filter(|other| rebinding.has_room(other.existing, &pods));
        let roomy: Vec<_> = roomy.take(TOGETHER_MAX).collect();
        let all: Vec<_> = std::iter::once(candidate).chain(roomy.iter().copied()).collect();
        let few = (2..=TOGETHER_MAX).contains(&all.len());
        let left = few.then(|| self.filled(&roomy, wanted(model, &all))).flatten();
        let Some(stay) = left else { return Vec::new() };
        let beside = Exchange { gone: roomy, stay: stay.clone(), kept: Some(candidate) };
        let mut exchanges = vec![beside, Exchange { gone: all, stay, kept: None }];
        exchanges.retain(|Exchange { gone, .. }| {
            let within = self.within_budget(gone, gone.len());
            within.len() == gone.len()
        });
        exchanges
    }

    /// Replaces many nodes of one pool by fewer: half as many in each further attempt.
    fn replace_together(
        &mut self,
        order: &[&Candidate<'a>],
        rebinding: &mut Rebinding<'g, 'm, 'a>,
    ) {
        let mut size = TOGETHER_MAX;
        while size >= 2 {
            let together = self.within_budget(order, size);
            if together.len() < 2 {
                return;
            }
            let count = together.len();
            if !self.replace_if_cheaper(together, rebinding) {
                size = size.min(count) / 2;
            }
        }
    }

    fn replace_singly(&mut self, order: &[&Candidate<'a>], rebinding: &mut Rebinding<'g, 'm, 'a>) {
        for candidate in order {
            if self.may_be_tried(candidate) {
                self.replace_if_cheaper(vec![candidate], rebinding);
            }
        }
    }

    /// True when a node may go and it is known what that saves.
    fn may_be_tried(&self, candidate: &Candidate<'a>) -> bool {
        self.cost(candidate).is_some() && self.may_go(candidate, DisruptionReason::Underutilized)
    }

    /// The first `most` nodes that may go together.
    fn within_budget<'c>(
        &self,
        order: &[&'c Candidate<'a>],
        most: usize,
    ) -> Vec<&'c Candidate<'a>> {
        let mut together: Vec<&Candidate<'a>> = Vec::new();
        for candidate in order {
            if together.len() == most {
                break;
            }
            if self.cost(candidate).is_some() && self.is_untouched(candidate) {
                together.push(candidate);
                let reason = DisruptionReason::Underutilized;
                if !self.allowance.admits(self.context.model, &together, reason) {
                    together.pop();
                }
            }
        }
        together
    }

    /// Replaces nodes when that is cheaper; those of them that would only be bought again stay.
    fn replace_if_cheaper(
        &mut self,
        mut gone: Vec<&Candidate<'a>>,
        rebinding: &mut Rebinding<'g, 'm, 'a>,
    ) -> bool {
        loop {
            let exchange = Exchange::of(gone);
            let again = match self.trial(&exchange, rebinding) {
                Trial::Taken => return true,
                Trial::Refused => return false,
                Trial::Without(again) => again,
            };
            gone = exchange.gone;
            gone.retain(|candidate| !again.contains(&candidate.existing));
        }
    }

    /// Replaces nodes when that pays.
    fn trial(
        &mut self,
        exchange: &Exchange<'_, 'a>,
        rebinding: &mut Rebinding<'g, 'm, 'a>,
    ) -> Trial {
        let (Context { model, priced, .. }, gone) = (&self.context, &exchange.gone[..]);
        let (model, priced) = (*model, *priced);
        let scales = self.scales(exchange);
        let mut again = BTreeSet::new();
        let accept = |moved: Moved<'_>, placed: &mut Placed| {
            if !scales.pays(priced, placed) {
                return false;
            }
            again = scales::bought_again(priced, placed, model, gone);
            again.is_empty() && rebinding.takes(moved, placed)
        };
        let all = if exchange.empties() { 0..model.existing_nodes.len() } else { 0..0 };
        let kept = exchange.kept.map(|candidate| candidate.existing);
        let kept_off = all.filter(|existing| Some(*existing) != kept);
        match self.relocation(gone).avoiding(kept_off).if_worth(accept) {
            Some(placed) => {
                self.commit(gone, DisruptionReason::Underutilized, &placed);
                Trial::Taken
            }
            None if again.is_empty() => Trial::Refused,
            None => Trial::Without(again),
        }
    }

    fn scales<'c>(&self, exchange: &'c Exchange<'c, 'a>) -> Scales<'c, 'a> {
        let Exchange { gone, stay, kept } = exchange;
        Scales {
            exchange,
            cost: self.cost_of(stay),
            freed: self.cost_of(gone),
            kept: kept.map_or(0, |candidate| self.cost_of(&[candidate])),
            least: self.stakes_of(gone[0]).share(gone) / FAIR_SHARE,
            may_empty: stay.iter().all(|candidate| self.pays_to_empty(candidate)),
            single_spot: gone.len() == 1 && self.is_spot(gone[0]),
        }
    }

    /// A trial that does not count on nodes whose clock it would start anew: those with pods that
    /// have not been quiet for long enough, and those that are empty and will go. Of the latter,
    /// cheaper ones are welcome; any other would be one node kept for another, and pods disturbed
    /// for nothing.
    fn relocation(&mut self, gone: &[&Candidate<'a>]) -> Relocation<'_, 'g, 'm, 'a> {
        let cost = self.cost_of(gone);
        let Self { context, ending, ripening, .. } = self;
        let existing_nodes = &context.model.existing_nodes;
        let dear = |existing: &usize| existing_nodes[*existing].cost.is_none_or(|own| own >= cost);
        let ending = ending.iter().copied().filter(dear);
        Relocation::of(context, gone).avoiding(ending.chain(ripening.iter().copied()))
    }

    fn is_spot(&self, candidate: &Candidate<'_>) -> bool {
        let bought = self.context.model.existing_nodes[candidate.existing].label(CAPACITY_TYPE);
        bought.and_then(CapacityType::from_label) == Some(CapacityType::Spot)
    }
}

/// What came of a trial to replace nodes.
#[derive(PartialEq, Eq)]
enum Trial {
    /// They are replaced.
    Taken,
    /// They are not.
    Refused,
    /// It would pay, but for nothing do these existing nodes go: others carry what they save.
    Without(BTreeSet<usize>),
}
