//! HorizontalPodAutoscalers that want more pods than a pool's limit lets in.
//!
//! Invariant: a finding needs both: an autoscaler whose pods do not come up, and a full pool.

use longshore_watcher::api::Quantity;
use longshore_watcher::project::quantity::{Rounding, integer};
use serde_json::Value;

use super::facts::{Facts, Kind, name};
use super::{Finding, Severity};

/// A pool counts as full when this much of a limit is in use: another node hardly fits.
const FULL_PERCENT: i64 = 90;

/// Autoscalers that a full pool holds back.
pub fn check(facts: &Facts) -> Vec<Finding> {
    let full: Vec<String> = facts.of(Kind::NodePool).filter_map(full).collect();
    if full.is_empty() {
        return Vec::new();
    }
    let scalers = facts.of(Kind::HorizontalPodAutoscaler);
    scalers.filter_map(|scaler| held_back(scaler, facts, &full)).collect()
}

fn held_back(scaler: &Value, facts: &Facts, full: &[String]) -> Option<Finding> {
    let target = &scaler["spec"]["scaleTargetRef"];
    let deployment = facts.of(Kind::Deployment).find(|it| {
        target["kind"] == "Deployment"
            && it["metadata"]["name"] == target["name"]
            && it["metadata"]["namespace"] == scaler["metadata"]["namespace"]
    })?;
    let desired = scaler["status"]["desiredReplicas"].as_i64()?;
    let ready = deployment["status"]["readyReplicas"].as_i64().unwrap_or(0);
    (desired > ready).then(|| Finding {
        severity: Severity::Problem,
        object: name("HorizontalPodAutoscaler", scaler),
        message: format!(
            "asks for {desired} pods, of which {ready} are ready, while a pool is full"
        ),
        evidence: full.join("; "),
        remedy: "raise the pool's limit (kubectl edit nodepool NAME, spec.limits), or lower \
                 maxReplicas of the autoscaler"
            .to_owned(),
    })
}

/// What of a pool's limits is used up; none while there is room.
fn full(pool: &Value) -> Option<String> {
    let limits = pool["spec"]["limits"].as_object()?;
    limits.iter().find_map(|(resource, limit)| {
        let used = match resource.as_str() {
            "nodes" => &pool["status"]["nodes"],
            _ => &pool["status"]["resources"][resource],
        };
        let (limit_amount, used_amount) = (amount(limit)?, amount(used)?);
        let at_limit = used_amount.saturating_mul(100) >= limit_amount.saturating_mul(FULL_PERCENT);
        at_limit.then(|| {
            let text = |value: &Value| value.to_string().replace('"', "");
            let full = name("NodePool", pool);
            format!("{full} uses {} of its limit of {} {resource}", text(used), text(limit))
        })
    })
}

/// A quantity in thousandths, so that parts of cores count.
fn amount(value: &Value) -> Option<i64> {
    let Quantity(text) = serde_json::from_value(value.clone()).ok()?;
    integer(&text, 1000, Rounding::Up).ok()
}
