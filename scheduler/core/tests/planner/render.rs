//! Writes a plan as text that a reviewer can judge.
//!
//! Invariant: equal plans read equal; pods are counted by shape, since their names carry nothing.

use std::collections::BTreeMap;
use std::fmt::Write;

use longshore_core::answer::{NewNode, Placement, Plan, Target};
use longshore_core::question::PlanInput;

pub fn render(plan: &Plan, input: &PlanInput) -> String {
    let mut text = String::new();
    let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
    for (index, node) in plan.launches.iter().enumerate() {
        let line = launch(node, input);
        match groups.iter_mut().find(|(known, _)| *known == line) {
            Some((_, nodes)) => nodes.push(index),
            None => groups.push((line, vec![index])),
        }
    }
    for (line, nodes) in groups {
        writeln!(text, "launch {} x {line}", nodes.len()).unwrap();
    }
    let old = plan.placements.iter().filter(|p| !matches!(p.target, Target::New(_)));
    text += &places("place", old.cloned(), input);
    for unplaced in &plan.unplaced {
        writeln!(text, "unplaced {} x {}", unplaced.pods.len(), unplaced.shape).unwrap();
        for line in unplaced.reason.to_string().lines() {
            writeln!(text, "  {line}").unwrap();
        }
    }
    for disruption in &plan.disruptions {
        let nodes: Vec<_> = disruption.nodes.iter().map(ToString::to_string).collect();
        let saving = dollars(disruption.saving_micro_usd_per_hour);
        let reason = disruption.reason;
        write!(text, "disrupt {} {reason:?} saving {saving}", nodes.join(" ")).unwrap();
        writeln!(text, " replaced by {} launches", disruption.replacements.len()).unwrap();
        text += &places("  move", disruption.moves.iter().cloned(), input);
    }
    for (key, room) in &plan.buffers {
        let (now, soon, none) = (room.in_service, room.coming, room.unplaced);
        writeln!(text, "buffer {key}: {now} in service, {soon} coming, {none} without room")
            .unwrap();
        for line in room.reason.to_string().lines().filter(|_| none > 0) {
            writeln!(text, "  {line}").unwrap();
        }
    }
    for (claim, turn) in plan.turns.iter().filter(|(_, turn)| **turn > 0) {
        writeln!(text, "turn {turn} for claim {claim}").unwrap();
    }
    let launched = dollars(plan.launch_price_micro_usd_per_hour);
    let bound = dollars(plan.bound.cost_micro_usd_per_hour);
    let fleet = dollars(plan.fleet_price_micro_usd_per_hour);
    let cost = plan.launch_cost_micro_usd_per_hour;
    let cost = costing(cost, plan.launch_price_micro_usd_per_hour);
    writeln!(text, "price {launched}{cost} bound {bound} fleet {fleet}").unwrap();
    if let Some(wake_ms) = plan.wake_ms {
        writeln!(text, "wake {} s", wake_ms / 1000).unwrap();
    }
    text
}

fn launch(node: &NewNode, input: &PlanInput) -> String {
    let first = &node.candidates[0];
    let mut pods: BTreeMap<String, usize> = BTreeMap::new();
    for pod in &node.pods {
        *pods.entry(input.world.pods[pod].shape.to_string()).or_default() += 1;
    }
    let pods: Vec<String> = pods.iter().map(|(shape, count)| format!("{count} {shape}")).collect();
    format!(
        "{}: {} {} {} {}{} (of {}), pods {}, requests {}{}",
        node.pool,
        first.instance_type,
        first.zone,
        first.capacity_type,
        dollars(first.price_micro_usd_per_hour),
        costing(first.cost_micro_usd_per_hour, first.price_micro_usd_per_hour),
        node.candidates.len(),
        pods.join(" + "),
        node.requests,
        node.labels
            .iter()
            .filter(|(key, _)| !key.contains('.'))
            .fold(String::new(), |s, (k, v)| { format!("{s}, {k}={v}") })
    )
}

/// What something costs by the objective, where that is not its price.
fn costing(cost: i64, price: i64) -> String {
    if cost == price { String::new() } else { format!(" costing {}", dollars(cost)) }
}

fn places(verb: &str, all: impl Iterator<Item = Placement>, input: &PlanInput) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for Placement { pod, target } in all {
        let shape = &input.world.pods[&pod].shape;
        let target = match target {
            Target::Node(name) => format!("node {name}"),
            Target::Claim(name) => format!("claim {name}"),
            Target::New(_) => "a new node".to_owned(),
        };
        *counts.entry(format!("{shape} on {target}")).or_default() += 1;
    }
    counts
        .iter()
        .fold(String::new(), |text, (what, count)| format!("{text}{verb} {count} x {what}\n"))
}

pub fn dollars(micros: i64) -> String {
    let sign = if micros < 0 { "-" } else { "" };
    format!("{sign}${}.{:06}", micros.abs() / 1_000_000, micros.abs() % 1_000_000)
}
