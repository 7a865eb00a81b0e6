//! What-if questions to a running scheduler, asked as any client would ask them.
//!
//! Invariant: uses PlanningService only; prices and availability are the region's own.

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use longshore_proto::planning::v1::planning_service_client::PlanningServiceClient;
use longshore_proto::planning::v1::{ComputePlanOptions, ComputePlanRequest, ComputePlanResponse};
use longshore_proto::types::v1::{Object, PodCount, object::Kind};
use longshore_runtime::client;
use longshore_runtime::platform::Platform;
use longshore_runtime::tls::Server;
use longshore_watcher::api::NodePool;
use longshore_watcher::project;
use serde_json::Value;

/// Plans `replicas` pods of the Deployment among `manifests` for the NodePool among them.
///
/// # Errors
/// When a manifest is missing or malformed, or the scheduler cannot answer.
pub async fn plan(
    (scheduler, asker): (&str, &Platform),
    region: &str,
    manifests: &[Value],
    replicas: u32,
) -> Result<ComputePlanResponse> {
    let pool: NodePool = of_kind(manifests, "NodePool")?;
    let deployment: Deployment = of_kind(manifests, "Deployment")?;
    let template = deployment.spec.context("Deployment without spec")?.template;
    let mut metadata = template.metadata.unwrap_or_default();
    metadata.namespace = Some("default".to_owned());
    metadata.uid = Some("question".to_owned());
    metadata.name = Some("question".to_owned());
    let pod = Pod { metadata, spec: template.spec, ..Pod::default() };
    let shape = project::pod::pod(&pod, &project::Surroundings::default())?.shape;
    let pods = vec![PodCount { shape_id: shape.shape_id.clone(), count: replicas }];
    let kinds = [Kind::NodePool(project::pool::pool(&pool)?), Kind::PodShape(shape)];
    let request = ComputePlanRequest {
        options: Some(ComputePlanOptions { region: region.to_owned(), ..Default::default() }),
        objects: kinds.into_iter().map(|kind| Object { kind: Some(kind) }).collect(),
        pods,
        catalogue: None,
    };
    let channel = client::channel_to(Server::Scheduler, scheduler, asker)?;
    let mut client = PlanningServiceClient::new(channel);
    let answer = client.compute_plan(tokio_stream::once(request)).await;
    Ok(answer.map_err(|status| anyhow::anyhow!("ComputePlan: {}", status.message()))?.into_inner())
}

fn of_kind<T: serde::de::DeserializeOwned>(manifests: &[Value], kind: &str) -> Result<T> {
    let found = manifests.iter().find(|manifest| manifest["kind"] == kind);
    let found = found.with_context(|| format!("no {kind} among the manifests"))?;
    serde_json::from_value(found.clone()).with_context(|| format!("{kind} is malformed"))
}
