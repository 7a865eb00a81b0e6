//! What is counted of plans that are carried out.
//!
//! Invariant: each once: a plan when it is taken as the newest, a launch when it is asked for the
//! first time.

use std::collections::BTreeMap;
use std::time::Duration;

use longshore_core::answer::{NewNode, Plan};
use longshore_core::vocabulary::ids::PodUid;
use longshore_proto::types::v1::NodeClaim;

use crate::counters::Standing;
use crate::session::Session;
use crate::session::planning::Proposal;
use crate::session::state::ClusterState;

impl Session {
    /// A plan is carried out; `launched` has the claims of its launches that are asked for.
    pub(super) fn count_plan(&self, proposal: &Proposal, launched: &[Option<String>]) {
        self.planning.shown.planned(&proposal.figures);
        self.planning.shown.stands(&standing(&self.state));
        if let Some((cost, bound)) = proved(&proposal.plan, launched) {
            self.planning.shown.launched(cost, bound);
        }
    }

    /// The launch for a claim is asked for.
    pub(in crate::session) fn count_launch(&self, claim: &str) {
        let (world, now_ms) = (self.state.view().world(), self.now_ms());
        let pods = self.planning.nominations().get(claim).into_iter().flatten();
        let waiting = pods
            .filter_map(|uid| world.pods.get(&PodUid::new(uid)))
            .filter(|pod| pod.node.is_none() && pod.created_ms > 0);
        let waited_ms = waiting.map(|pod| u64::try_from(now_ms - pod.created_ms).unwrap_or(0));
        self.planning.shown.launching(waited_ms.map(Duration::from_millis));
    }
}

/// What goes on in a cluster.
fn standing(state: &ClusterState) -> Standing {
    let mut draining: BTreeMap<String, f64> = BTreeMap::new();
    for claim in state.claims().values().filter(|claim| claim.deleting && !claim.drained) {
        *draining.entry(blocker(claim)).or_default() += 1.0;
    }
    let rollouts = state.rollouts().map(|(pool, it)| (pool.clone(), it.stopped.is_some()));
    Standing { draining, rollouts: rollouts.collect() }
}

/// What keeps the node of a claim first, as a label has it.
fn blocker(claim: &NodeClaim) -> String {
    let rule = claim.blockers.first().map(|blocker| blocker.rule().as_str_name());
    let name = rule.map(|rule| rule.trim_start_matches("BLOCKING_RULE_").to_ascii_lowercase());
    name.unwrap_or_else(|| "nothing".to_owned())
}

/// What the launches of a plan for pods cost and what they cost at the least, in micro-dollars per
/// hour. Only of a plan of which all launches are asked for, since the bound speaks of them all.
fn proved(plan: &Plan, launched: &[Option<String>]) -> Option<(i64, i64)> {
    let whole = !launched.is_empty() && launched.iter().all(Option::is_some);
    let cost = plan.launches.iter().filter(|node| !node.standing).map(NewNode::cost).sum();
    (whole && plan.bound.checked).then_some((cost, plan.bound.cost_micro_usd_per_hour))
}

#[cfg(test)]
mod tests {
    use longshore_core::bound::LowerBound;
    use longshore_proto::types::v1::{Blocker, BlockingRule};

    use super::*;

    #[test]
    fn a_drain_counts_by_what_keeps_it_first() {
        let kept_by = |rules: &[BlockingRule]| {
            let blockers =
                rules.iter().map(|rule| Blocker { rule: (*rule).into(), ..Blocker::default() });
            blocker(&NodeClaim { blockers: blockers.collect(), ..NodeClaim::default() })
        };
        assert_eq!(kept_by(&[]), "nothing");
        assert_eq!(kept_by(&[BlockingRule::TwoBudgets, BlockingRule::Stuck]), "two_budgets");
    }

    #[test]
    fn a_bound_counts_for_whole_plans_alone() {
        let bound =
            LowerBound { cost_micro_usd_per_hour: 5, checked: true, ..LowerBound::default() };
        let mut plan = Plan { bound, ..Plan::default() };
        assert_eq!(proved(&plan, &[]), None, "nothing is launched");
        assert_eq!(proved(&plan, &[Some("a".to_owned())]), Some((0, 5)));
        assert_eq!(proved(&plan, &[Some("a".to_owned()), None]), None, "one is held back");
        plan.bound.checked = false;
        assert_eq!(proved(&plan, &[Some("a".to_owned())]), None, "nothing is proved");
    }
}
