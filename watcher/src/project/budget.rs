//! Pod disruption budgets.
//!
//! Invariant: the number of disruptions allowed is the API server's own; nothing is recomputed.

use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use longshore_proto::types::v1::DisruptionBudget;

use super::fault::Fault;
use super::requirement;

/// A budget.
///
/// # Errors
/// A selector that cannot be read.
pub fn disruption_budget(budget: &PodDisruptionBudget) -> Result<DisruptionBudget, Fault> {
    let namespace = budget.metadata.namespace.clone().unwrap_or_default();
    let name = budget.metadata.name.clone().unwrap_or_default();
    let spec = budget.spec.clone().unwrap_or_default();
    let selector = spec.selector.as_ref().map(requirement::selector).transpose().map_err(|f| {
        f.within("spec.selector").of(format!("PodDisruptionBudget/{namespace}/{name}"))
    })?;
    let fully_blocking = spec.max_unavailable.as_ref().is_some_and(|v| is(v, 0, "0%"))
        || spec.min_available.as_ref().is_some_and(|v| is(v, i32::MAX, "100%"));
    Ok(DisruptionBudget {
        namespace,
        name,
        selector,
        disruptions_allowed: budget.status.as_ref().map_or(0, |s| s.disruptions_allowed),
        fully_blocking,
        lets_unready_go: lets_unready_go(budget),
    })
}

/// True when the eviction API lets pods go that run and are not ready.
fn lets_unready_go(budget: &PodDisruptionBudget) -> bool {
    let policy = budget.spec.as_ref().and_then(|it| it.unhealthy_pod_eviction_policy.as_deref());
    let healthy = budget.status.as_ref().is_some_and(|status| {
        status.desired_healthy > 0 && status.current_healthy >= status.desired_healthy
    });
    policy == Some("AlwaysAllow") || healthy
}

fn is(value: &IntOrString, count: i32, percentage: &str) -> bool {
    match value {
        IntOrString::Int(n) => *n == count,
        IntOrString::String(text) => text == percentage,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(spec: &Value, status: &Value) -> DisruptionBudget {
        let object = json!({
            "metadata": { "namespace": "shop", "name": "web" }, "spec": spec, "status": status });
        let budget = serde_json::from_value(object).unwrap_or_else(|error| panic!("{error}"));
        disruption_budget(&budget).unwrap_or_else(|error| panic!("{error}"))
    }

    fn status(current: i32, desired: i32, allowed: i32) -> Value {
        json!({ "currentHealthy": current, "desiredHealthy": desired,
                "disruptionsAllowed": allowed, "expectedPods": 3 })
    }

    #[test]
    fn pods_that_are_not_ready_may_go_where_the_eviction_api_lets_them() {
        let always = json!({ "unhealthyPodEvictionPolicy": "AlwaysAllow" });
        let guarded = json!({ "unhealthyPodEvictionPolicy": "IfHealthyBudget" });
        let table = [
            (&always, status(0, 2, 0), true),
            (&guarded, status(1, 2, 0), false),
            (&guarded, status(2, 2, 0), true),
            (&guarded, status(0, 0, 0), false),
            (&json!({}), status(1, 2, 0), false),
            (&json!({}), status(3, 2, 1), true),
        ];
        for (spec, status, expected) in table {
            let budget = read(spec, &status);
            assert_eq!(budget.lets_unready_go, expected, "{spec} {status}");
        }
    }

    #[test]
    fn a_budget_that_can_never_allow_an_eviction_is_known() {
        let table = [
            (json!({ "maxUnavailable": 0 }), true),
            (json!({ "maxUnavailable": "0%" }), true),
            (json!({ "minAvailable": "100%" }), true),
            (json!({ "maxUnavailable": 1 }), false),
            (json!({ "minAvailable": "50%" }), false),
        ];
        for (spec, expected) in table {
            let budget = read(&spec, &status(3, 3, 2));
            assert_eq!(
                (budget.fully_blocking, budget.disruptions_allowed),
                (expected, 2),
                "{spec}"
            );
        }
        assert_eq!(read(&json!({}), &json!(null)).disruptions_allowed, 0, "nobody has counted");
    }
}
