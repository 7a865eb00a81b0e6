//! Subresources of pods: binding and eviction.
//!
//! Invariant: a pod is bound once; an eviction that a disruption budget covers consumes one of the
//! disruptions the budget allows, in the same step.

use serde_json::{Value, json};

use super::{ApiError, DeleteOptions, Deleted, Part, Server, State, Target, WriteOptions};
use crate::cluster::clock;
use crate::cluster::object;
use crate::cluster::selector::LabelSelector;

const BUDGETS: &str = "poddisruptionbudgets.policy";
/// What a real API server suggests when a budget has not been computed yet.
const BUDGET_RETRY_SECONDS: u32 = 10;

impl Server {
    /// Binds a pod to a node, as a scheduler does.
    ///
    /// # Errors
    /// NotFound; Conflict when it is bound or being deleted.
    pub fn bind(&self, target: &Target, node: &str) -> Result<(), ApiError> {
        let stamp = self.clock().stamp();
        let mut state = self.lock();
        let old = state.find(target)?;
        let assigned = old.value["spec"]["nodeName"].as_str().unwrap_or_default();
        if !assigned.is_empty() {
            let name = &target.key.name;
            return Err(
                target.conflict(format!("pod {name} is already assigned to node \"{assigned}\""))
            );
        }
        if object::is_deleting(&old.value) {
            let name = &target.key.name;
            return Err(target
                .conflict(format!("pod {name} is being deleted, cannot be assigned to a host")));
        }
        let mut pod = old.value.clone();
        pod["spec"]["nodeName"] = json!(node);
        object::remove(&mut pod["status"], "nominatedNodeName");
        object::set_condition(
            &mut pod,
            json!({ "type": "PodScheduled", "status": "True" }),
            &stamp,
        );
        if !object::items(&pod["metadata"]["managedFields"]).is_empty() {
            let nobody = WriteOptions::default();
            super::ownership::record(&old.value, &mut pod, (target, &nobody), ("", &stamp));
        }
        state.commit(target, pod);
        Ok(())
    }

    /// Evicts a pod, if the disruption budgets allow it.
    ///
    /// # Errors
    /// [`ApiError::DisruptionBudget`] when a budget forbids it, Internal when several budgets cover
    /// the pod, NotFound.
    pub fn evict(&self, target: &Target, options: &DeleteOptions) -> Result<Deleted, ApiError> {
        let now = self.clock().now();
        let mut state = self.lock();
        let pod = state.find(target)?;
        if !is_outside_budgets(&pod.value) {
            state.consume_budget(target, &pod.value, &clock::stamp(now), options.dry_run)?;
        }
        if !options.dry_run {
            state.mark_disrupted(target, &clock::stamp(now))?;
        }
        state.delete(target, options, now)
    }
}

/// Pods that ended, never started or are leaving already disturb nobody.
fn is_outside_budgets(pod: &Value) -> bool {
    let phase = pod["status"]["phase"].as_str().unwrap_or_default();
    ["Succeeded", "Failed", "Pending"].contains(&phase) || object::is_deleting(pod)
}

impl State {
    fn consume_budget(
        &mut self,
        target: &Target,
        pod: &Value,
        stamp: &str,
        dry_run: bool,
    ) -> Result<(), ApiError> {
        let covering: Vec<Value> = self
            .store
            .list(BUDGETS, &target.key.namespace, None)
            .map(|(_, stored)| &stored.value)
            .filter(|budget| covers(budget, pod))
            .cloned()
            .collect();
        let budget = match covering.as_slice() {
            [] => return Ok(()),
            [budget] => budget,
            _ => {
                return Err(ApiError::Internal(
                    "This pod has more than one PodDisruptionBudget, which the eviction \
                     subresource does not support."
                        .into(),
                ));
            }
        };
        if is_free_to_go(pod, budget) {
            return Ok(());
        }
        check_budget(budget)?;
        if dry_run {
            return Ok(());
        }
        let mut used = budget.clone();
        let allowed = used["status"]["disruptionsAllowed"].as_i64().unwrap_or(0);
        used["status"]["disruptionsAllowed"] = json!(allowed - 1);
        used["status"]["disruptedPods"][target.key.name.as_str()] = json!(stamp);
        self.store.put(BUDGETS, used);
        Ok(())
    }

    fn mark_disrupted(&mut self, target: &Target, stamp: &str) -> Result<(), ApiError> {
        let old = self.find(target)?;
        if object::is_deleting(&old.value) {
            return Ok(());
        }
        let mut pod = old.value.clone();
        let condition = json!({
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
        });
        object::set_condition(&mut pod, condition, stamp);
        let options = WriteOptions { part: Part::Status, ..WriteOptions::default() };
        self.replace(target, (&old, pod), &options, stamp).map(drop)
    }
}

fn covers(budget: &Value, pod: &Value) -> bool {
    let selector = &budget["spec"]["selector"];
    selector.is_object() && LabelSelector::of_object(selector).matches_object(pod)
}

/// Pods that are not ready may go when their budget says so or does not need them.
fn is_free_to_go(pod: &Value, budget: &Value) -> bool {
    if object::condition_is_true(pod, "Ready") {
        return false;
    }
    let status = &budget["status"];
    let (healthy, desired) = (&status["currentHealthy"], &status["desiredHealthy"]);
    budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
        || (healthy.as_i64() >= desired.as_i64() && desired.as_i64().unwrap_or(0) > 0)
}

fn check_budget(budget: &Value) -> Result<(), ApiError> {
    let (name, status) = (object::name(budget), &budget["status"]);
    let generation = budget["metadata"]["generation"].as_i64().unwrap_or(0);
    if status["observedGeneration"].as_i64().unwrap_or(0) < generation {
        return Err(ApiError::DisruptionBudget {
            message: format!(
                "The disruption budget {name} is still being processed by the server."
            ),
            retry_after_seconds: Some(BUDGET_RETRY_SECONDS),
        });
    }
    if status["disruptionsAllowed"].as_i64().unwrap_or(0) > 0 {
        return Ok(());
    }
    let count = |field: &str| status[field].as_i64().unwrap_or(0);
    Err(ApiError::DisruptionBudget {
        message: format!(
            "The disruption budget {name} needs {} healthy pods and has {} currently",
            count("desiredHealthy"),
            count("currentHealthy")
        ),
        retry_after_seconds: None,
    })
}
