//! Lines of a scenario that are one object each.
//!
//! Invariant: whatever is not understood fails the test.

use longshore_core::labels;
use longshore_core::offers::Objective;
use longshore_core::overlay::{NodeOverlay, PriceChange};
use longshore_core::pool::Canary;
use longshore_core::question::PlanInput;
use longshore_core::world::buffer::CapacityBuffer;
use longshore_core::world::claim::NodeClaim;
use longshore_core::world::node::Node;
use longshore_core::world::pod::PodKey;

use super::words::*;

/// `kept NODE-OR-CLAIM SHAPE 3`: places for pods that were to come.
pub fn keep(input: &mut PlanInput, words: &[&str]) {
    let places = input.kept.entry(words[0].to_owned()).or_default();
    places.insert(words[1].into(), words[2].parse().unwrap());
}

/// `buffer NAME shape SHAPE replicas 3`.
pub fn buffer(words: &[&str]) -> CapacityBuffer {
    let key = PodKey::new("default", words[0]);
    let mut buffer = CapacityBuffer { key, ..CapacityBuffer::default() };
    for (property, value) in pairs(&words[1..]) {
        match property {
            "shape" => buffer.shape = value.into(),
            "replicas" => buffer.replicas = value.parse().unwrap(),
            _ => panic!("buffer: unknown {property}"),
        }
    }
    buffer
}

/// `overlay NAME weight 10 need family=m price 0.10 add -0.01 percent -10 has example.com/x=4`.
pub fn overlay(words: &[&str]) -> NodeOverlay {
    let mut overlay = NodeOverlay { name: words[0].into(), ..NodeOverlay::default() };
    for (property, value) in pairs(&words[1..]) {
        match property {
            "weight" => overlay.weight = value.parse().unwrap(),
            "need" => {
                let (key, requirement) = requirement(value);
                overlay.requirements.add(&key, requirement);
            }
            "price" => overlay.price = Some(PriceChange::Fixed(price(value))),
            "add" => {
                let less = value.strip_prefix('-').map(|less| -price(less));
                overlay.price = Some(PriceChange::Added(less.unwrap_or_else(|| price(value))));
            }
            "percent" => {
                let ppm = value.parse::<i64>().unwrap() * 10_000;
                overlay.price = Some(PriceChange::AddedPpm(ppm));
            }
            "has" => {
                let (name, amount) = value.split_once('=').unwrap();
                overlay.capacity.insert(name.to_owned(), quantity(name, amount));
            }
            _ => panic!("overlay: unknown {property}"),
        }
    }
    overlay
}

/// Weights: `fee` and `interruption` in dollars, `spot` in interruptions of a million hours, `perf`
/// as family=percent.
pub fn objective(words: &[&str]) -> Objective {
    let mut objective = Objective::default();
    for (property, value) in pairs(words) {
        match property {
            "fee" => objective.node_fee_micro_usd_per_hour = price(value),
            "interruption" => objective.interruption_cost_micro_usd = price(value),
            "spot" => objective.spot_interruptions_per_million_hours = value.parse().unwrap(),
            "perf" => {
                let families = labels_of(value).into_iter();
                let read = families.map(|(family, percent)| (family, percent.parse().unwrap()));
                objective.family_performance_percent = read.collect();
            }
            _ => panic!("objective: unknown {property}"),
        }
    }
    objective
}

/// How many canaries a rollout has to have, and how many are under way: `2/1`.
pub fn canary(value: &str) -> Canary {
    let (nodes, under_way) = value.split_once('/').unwrap();
    Canary { nodes: nodes.parse().unwrap(), under_way: under_way.parse().unwrap() }
}

/// What has become of a node, in one word.
pub fn node_state(node: &mut Node, claim: &mut NodeClaim, state: &str) {
    match state {
        "cordoned" => node.cordoned = true,
        "deleting" => claim.deleting = true,
        "drained" => (claim.deleting, claim.drained) = (true, true),
        "hold" => node.do_not_disrupt = true,
        "not-ready" => node.ready = false,
        "drifted" => claim.drifted = true,
        "fargate" => drop(node.labels.insert(labels::COMPUTE_TYPE.into(), "fargate".into())),
        _ => panic!("node: unknown state {state}"),
    }
}
