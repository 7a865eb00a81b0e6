//! A seed to a cluster and its plan.
//!
//! Invariant: the way of `longshore plan -f`: manifests in a file, the watcher's readers, the
//! scheduler's translation, the planner.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use longshore_core::answer::{Plan, Target};
use longshore_core::check;
use longshore_core::plan;
use longshore_core::question::PlanInput;
use longshore_core::world::pod::Pod;
use longshore_manifests::{inventory, manifest, neutral};
use longshore_proto::types::v1::{CapacityType, Catalogue, Offering};
use longshore_scheduler::compute::{self, Question};
use serde_json::Value;

use super::verdict::Planned;
use crate::bench::catalogues::Pool;
use crate::clusters;

/// Zones in which spot instances are sold; on demand is sold in all three.
const SPOT_ZONES: usize = 2;
/// Spot price in percent of that on demand.
const SPOT_PERCENT: i64 = 40;

/// Every so many clusters has pods that are all alike, so that none needs to be told its place.
const ALIKE_EVERY: u64 = 4;

/// A cluster, and the plan that was made for it.
pub struct Asked {
    /// Which cluster.
    pub seed: u64,
    /// Its objects as a user writes them.
    pub objects: Vec<Value>,
    /// What is sold.
    pub catalogue: Catalogue,
    /// What the plan was made from.
    pub input: PlanInput,
    /// The plan.
    pub plan: Plan,
    /// What the independent check says against the plan.
    pub violations: Vec<String>,
    /// Every pod of the plan by name.
    pub pods: BTreeMap<String, Planned>,
}

/// Makes the cluster of a seed and plans it; files go into `dir`.
///
/// # Errors
/// When a manifest cannot be read.
pub fn ask(seed: u64, dir: &Path) -> Result<Asked> {
    let list = match seed % ALIKE_EVERY {
        0 => clusters::alike(seed),
        _ => clusters::mixed(seed),
    };
    let file = dir.join(format!("cluster-{seed}.json"));
    std::fs::write(&file, list.to_string() + "\n")?;
    let found = inventory::take(manifest::read(&[file])?)?;
    let catalogue = catalogue()?;
    let (objects, pods) = (found.objects, found.pods);
    let question = Question { objects, pods, catalogue, ..Question::default() };
    let input = compute::input(&question)?;
    let plan = plan(&input);
    let violations = check::check(&plan, &input).iter().map(ToString::to_string).collect();
    let pods = planned(&plan, &input)?;
    let objects = list["items"].as_array().cloned().unwrap_or_default();
    Ok(Asked { seed, objects, catalogue: question.catalogue, input, plan, violations, pods })
}

/// What is sold: three families of each architecture, on demand and as spot.
fn catalogue() -> Result<Catalogue> {
    let mut all = neutral::from_rows(&Pool::Mixed.rows()?).map_err(|error| anyhow!(error))?;
    for kind in &mut all.types {
        let spot = kind.offerings.iter().take(SPOT_ZONES).map(|on_demand| Offering {
            capacity_type: CapacityType::Spot.into(),
            price_micro_usd_per_hour: on_demand.price_micro_usd_per_hour * SPOT_PERCENT / 100,
            ..on_demand.clone()
        });
        let spot: Vec<Offering> = spot.collect();
        kind.offerings.extend(spot);
    }
    Ok(all)
}

fn planned(plan: &Plan, input: &PlanInput) -> Result<BTreeMap<String, Planned>> {
    let mut all = BTreeMap::new();
    let pod = |uid| -> Result<&Pod> {
        let found = input.world.pods.get(uid);
        found
            .map(AsRef::as_ref)
            .with_context(|| format!("the plan names a pod {uid} that is not there"))
    };
    for placement in &plan.placements {
        let pod = pod(&placement.pod)?;
        let node = match &placement.target {
            Target::New(index) => node_name(*index),
            Target::Node(node) => node.to_string(),
            Target::Claim(claim) => claim.to_string(),
        };
        let shape = pod.shape.to_string();
        all.insert(pod.key.name.clone(), Planned { shape, node: Some(node), why: String::new() });
    }
    for group in &plan.unplaced {
        for uid in &group.pods {
            let pod = pod(uid)?;
            let (shape, why) = (pod.shape.to_string(), group.reason.to_string());
            all.insert(pod.key.name.clone(), Planned { shape, node: None, why });
        }
    }
    Ok(all)
}

/// Name of a planned node, and of its claim.
#[must_use]
pub fn node_name(index: usize) -> String {
    format!("planned-{index}")
}
