//! The peer's side: its program on the same files, its plan judged by our check.
//!
//! Invariant: the plan is judged as it would be bought, each node as the cheapest offering that the
//! peer leaves for it; nothing of ours improves or mends it.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use longshore_core::answer::{Candidate, NewNode, Placement, Plan, Target, Unplaced};
use longshore_core::catalogue::CapacityType;
use longshore_core::ids::PodUid;
use longshore_core::question::PlanInput;
use longshore_core::reason::{Obstacle, Reason};
use serde::Deserialize;

use super::args::PackArgs;
use super::outcome::Outcome;
use super::{pack, question};
use crate::parts::binary::part_program;

/// What the peer prints.
#[derive(Debug, Deserialize)]
struct Answer {
    #[serde(flatten)]
    outcome: Outcome,
    new_nodes: Vec<PeerNode>,
    on_existing_nodes: BTreeMap<String, Vec<String>>,
    unplaced: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
struct PeerNode {
    pool: String,
    labels: Option<BTreeMap<String, String>>,
    instance_type: String,
    zone: String,
    capacity_type: String,
    pods: Vec<String>,
}

/// Lets the peer plan a pair of files.
///
/// # Errors
/// When the peer is not installed or fails, or a file cannot be read.
pub fn peer(args: &PackArgs) -> Result<Outcome> {
    let answer = ask(args)?;
    let input = question::input(args)?;
    let plan = translated(&answer, &input)?;
    let judged = pack::judged(&plan, &input, args)?;
    let said = answer.outcome;
    ensure!(
        (judged.pods, judged.placed, judged.nodes) == (said.pods, said.placed, said.nodes),
        "the peer's plan was read as {judged:?}, it says {said:?}"
    );
    Ok(Outcome { violations: judged.violations, ..said })
}

fn ask(args: &PackArgs) -> Result<Answer> {
    let mut command = Command::new(part_program("peer", "peer")?);
    command.arg(if args.workload.is_some() { "pack" } else { "plan" });
    command.arg("--nodes").arg("--catalogue").arg(&args.catalogue);
    if let Some(workload) = &args.workload {
        command.arg("--workload").arg(workload);
    }
    if let Some(most) = args.max_cpu_milli {
        command.args(["--max-cpu-milli", &most.to_string()]);
    }
    if let Some(set) = args.daemonset {
        command.arg("--daemonset").arg(format!("{},{}", set.cpu_millis, set.memory_mib));
    }
    let output = command.args(&args.files).output().context("the peer cannot be started")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The peer's plan as one of ours.
fn translated(answer: &Answer, input: &PlanInput) -> Result<Plan> {
    let mut plan = Plan::default();
    for (index, node) in answer.new_nodes.iter().enumerate() {
        let launch = launch(node, input)?;
        place(&mut plan, &node.pods, &Target::New(index));
        plan.launch_price_micro_usd_per_hour += launch.max_price_micro_usd_per_hour;
        plan.launch_cost_micro_usd_per_hour += launch.max_price_micro_usd_per_hour;
        plan.launches.push(launch);
    }
    for (node, pods) in &answer.on_existing_nodes {
        place(&mut plan, pods, &Target::Node(node.as_str().into()));
    }
    plan.placements.sort_unstable();
    for (uid, why) in &answer.unplaced {
        let uid = PodUid::new(uid);
        let pod = input.world.pods.get(&uid).with_context(|| format!("no pod {uid}"))?;
        let reason = Reason::leaf(why.clone(), Obstacle::NoPoolAdmits);
        plan.unplaced.push(Unplaced { shape: pod.shape.clone(), pods: vec![uid], reason });
    }
    Ok(plan)
}

fn place(plan: &mut Plan, pods: &[String], target: &Target) {
    let placed =
        pods.iter().map(|uid| Placement { pod: uid.as_str().into(), target: target.clone() });
    plan.placements.extend(placed);
}

fn launch(node: &PeerNode, input: &PlanInput) -> Result<NewNode> {
    let pool = input.world.pools.get(node.pool.as_str());
    let pool = pool.with_context(|| format!("no pool {}", node.pool))?;
    let kind = CapacityType::from_label(&node.capacity_type).unwrap_or(CapacityType::OnDemand);
    let catalogue = input.catalogues.get(&pool.catalogue).context("the pool has no catalogue")?;
    let sold = catalogue.offering(&node.instance_type, &node.zone, kind);
    let sold = sold.with_context(|| format!("{} is not sold", node.instance_type))?;
    let price = sold.price_micro_usd_per_hour;
    let mut labels = pool.labels.clone();
    labels.extend(node.labels.clone().unwrap_or_default());
    let mut pods: Vec<PodUid> = node.pods.iter().map(|uid| uid.as_str().into()).collect();
    pods.sort_unstable();
    Ok(NewNode {
        pool: pool.name.clone(),
        node_class: String::new(),
        requirements: pool.requirements.clone(),
        candidates: vec![Candidate {
            cost_micro_usd_per_hour: price,
            price_micro_usd_per_hour: price,
            instance_type: node.instance_type.as_str().into(),
            zone: sold.zone.clone(),
            zone_id: sold.zone_id.clone(),
            capacity_type: kind,
            reservation: sold.reservation_id().cloned(),
        }],
        requests: longshore_core::resources::Resources::default(),
        labels,
        annotations: BTreeMap::new(),
        taints: pool.taints.clone(),
        startup_taints: Vec::new(),
        pods,
        standing: false,
        replacement: false,
        max_price_micro_usd_per_hour: price,
    })
}
