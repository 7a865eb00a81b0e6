//! The scale subresource of workloads.
//!
//! Invariant: a Scale is only a view; what it changes is `spec.replicas` of the workload.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{ApiError, Server, Stored, Target, WriteOptions};
use crate::cluster::object;
use crate::cluster::patch::Patch;

impl Server {
    /// Reads a workload as a Scale.
    ///
    /// # Errors
    /// NotFound.
    pub fn scale(&self, target: &Target) -> Result<Value, ApiError> {
        self.get(target).map(|stored| view(&stored.value))
    }

    /// Replaces or patches the Scale of a workload.
    ///
    /// # Errors
    /// As [`Server::update`]; BadRequest when the result has no replicas.
    pub fn set_scale(
        &self,
        target: &Target,
        change: impl FnOnce(Value) -> Result<Value, ApiError>,
        options: &WriteOptions,
    ) -> Result<Value, ApiError> {
        let scale = change(self.scale(target)?)?;
        let replicas = scale["spec"]["replicas"]
            .as_i64()
            .filter(|replicas| *replicas >= 0)
            .ok_or_else(|| ApiError::BadRequest("spec.replicas: a number from 0 up".into()))?;
        let patch = Patch::Merge(json!({
            "metadata": { "resourceVersion": scale["metadata"]["resourceVersion"] },
            "spec": { "replicas": replicas },
        }));
        let stored: Arc<Stored> = self.patch(target, &patch, options)?;
        Ok(view(&stored.value))
    }
}

fn view(workload: &Value) -> Value {
    let metadata = &workload["metadata"];
    let selector = object::string_map(&workload["spec"]["selector"]["matchLabels"]);
    let selector: Vec<String> =
        selector.iter().map(|(key, value)| format!("{key}={value}")).collect();
    json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"],
            "creationTimestamp": metadata["creationTimestamp"],
        },
        "spec": { "replicas": workload["spec"]["replicas"].as_i64().unwrap_or(0) },
        "status": {
            "replicas": workload["status"]["replicas"].as_i64().unwrap_or(0),
            "selector": selector.join(","),
        },
    })
}
