//! Surge: of a Deployment with one pod the next pod runs before that of a node that goes ends.
//!
//! The Deployment does it itself: its template is given an annotation, as `kubectl rollout restart`
//! gives it another. Its controller then makes a pod, waits until that is ready, and only then ends
//! the old one.
//!
//! Invariant: only where its strategy makes it so; else, and where it takes too long, the pod is
//! evicted like any other.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::Api;
use kube::api::Patch;
use serde_json::json;

use super::act::Outcome;
use crate::directives::Directives;
use crate::index::pods::PodRow;
use crate::names;
use crate::patch::{found, params};
use crate::project::pod::deployment;

impl Directives {
    /// Has the Deployment of a pod make its next pod.
    pub(super) async fn surge(&self, pod: &PodRow) -> Outcome {
        let owner = self.store.read(|index| index.shape(&pod.shape_id).map(|it| it.owner.clone()));
        let name = owner.as_deref().and_then(deployment).unwrap_or_default();
        let api: Api<Deployment> = Api::namespaced(self.client.clone(), &pod.namespace);
        let known = found(api.get(name).await)?;
        let why_not = known.as_ref().map_or(Some("it is not there"), obstacle);
        if why_not.is_none() {
            let mark = json!({ "metadata": { "annotations": { names::SURGED_FOR: &*pod.uid } } });
            let patch = json!({ "spec": { "template": mark } });
            api.patch(name, &params(), &Patch::Merge(patch)).await?;
        }
        let note = match why_not {
            None => {
                format!("Deployment {name} makes its next pod, because the node of this one goes")
            }
            Some(why) => format!("evicted without a surge: of Deployment {name}, {why}"),
        };
        self.say_of(pod, why_not.is_some(), "Surge", note);
        self.store.update(|index| index.note_surge(&pod.uid, why_not.is_none()));
        Ok(())
    }
}

/// Why a new template would not bring a new pod first.
fn obstacle(deployment: &Deployment) -> Option<&'static str> {
    let spec = deployment.spec.as_ref()?;
    let strategy = spec.strategy.as_ref();
    let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
    let none = |most: &IntOrString| matches!(most, IntOrString::Int(0)) || is_text(most, "0%");
    let all = |most: &IntOrString| {
        matches!(most, IntOrString::Int(count) if *count > 0) || is_text(most, "100%")
    };
    if spec.replicas.unwrap_or(1) > 1 {
        Some("more than one replica is asked for, and each would be replaced")
    } else if spec.paused == Some(true) {
        Some("the rollout is paused")
    } else if strategy.is_some_and(|strategy| strategy.type_.as_deref() == Some("Recreate")) {
        Some("the strategy is Recreate")
    } else if rolling.is_some_and(|it| it.max_surge.as_ref().is_some_and(none)) {
        Some("maxSurge is 0")
    } else if rolling.is_some_and(|it| it.max_unavailable.as_ref().is_some_and(all)) {
        Some("maxUnavailable lets its only pod go first")
    } else {
        None
    }
}

fn is_text(most: &IntOrString, percentage: &str) -> bool {
    matches!(most, IntOrString::String(text) if text == percentage)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_deployment_surges_where_its_strategy_brings_the_new_pod_first() {
        let obstacle = |spec: Value| {
            let mut whole = json!({
                "selector": {}, "template": { "metadata": {} }, "replicas": 1,
            });
            let merged = whole.as_object_mut().unwrap();
            merged.extend(spec.as_object().unwrap().clone());
            let deployment = json!({ "metadata": { "name": "web" }, "spec": whole });
            super::obstacle(&serde_json::from_value(deployment).unwrap())
        };
        let rolling = |update: Value| json!({ "strategy": { "type": "RollingUpdate", "rollingUpdate": update } });
        let table = [
            (json!({}), None),
            (rolling(json!({ "maxSurge": "25%", "maxUnavailable": "25%" })), None),
            (json!({ "replicas": 2 }), Some("more than one")),
            (json!({ "paused": true }), Some("paused")),
            (json!({ "strategy": { "type": "Recreate" } }), Some("Recreate")),
            (rolling(json!({ "maxSurge": 0 })), Some("maxSurge")),
            (rolling(json!({ "maxSurge": "0%" })), Some("maxSurge")),
            (rolling(json!({ "maxUnavailable": 1 })), Some("maxUnavailable")),
            (rolling(json!({ "maxUnavailable": "100%" })), Some("maxUnavailable")),
        ];
        for (spec, expected) in table {
            let found = obstacle(spec.clone());
            assert_eq!(found.is_some(), expected.is_some(), "{spec}");
            assert!(found.unwrap_or_default().contains(expected.unwrap_or_default()), "{spec}");
        }
    }
}
