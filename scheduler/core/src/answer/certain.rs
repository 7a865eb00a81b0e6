//! Which launches of a plan can be carried out at once while more pods arrive, and which had better
//! wait.
//!
//! Invariant: advice only; whoever waits says for how long. Nothing is said without a bound that
//! holds.

use crate::answer::{NewNode, Plan};
use crate::question::PlanInput;

/// A node is certain when its pods cannot cost less than this share of its cost, in percent,
/// however many like them still arrive: what a second of waiting could save on it is then less than
/// what a spot price moves in an hour.
const WORTH_MIN_PERCENT: i128 = 97;

/// For each launch of a plan that was made from this input, whether it would be bought all the same
/// if more pods like those that wait were known. By what the plan's bound says that each further
/// pod costs at the least where there are many: a node of which its pods fill the cost is one that
/// any continuation of the burst may buy. Nodes that no pod waits for do not get better by waiting.
#[must_use]
pub fn certain(plan: &Plan, input: &PlanInput) -> Vec<bool> {
    let is_certain = |node: &NewNode| {
        let cost = i128::from(node.cost()) * 1_000;
        node.standing || worth(node, plan, input) * 100 >= cost * WORTH_MIN_PERCENT
    };
    plan.launches.iter().map(is_certain).collect()
}

/// What the pods of a node cost at the least where there are many, in nano-dollars per hour.
fn worth(node: &NewNode, plan: &Plan, input: &PlanInput) -> i128 {
    let value = |uid| {
        let pod = input.world.pods.get(uid)?;
        plan.bound.marginal_nano_usd_per_hour.get(&pod.shape).map(|cost| i128::from(*cost))
    };
    node.pods.iter().filter_map(value).sum()
}
