//! What a user does to a cluster: apply manifests, scale.
//!
//! Invariant: everything goes through the Kubernetes API with an ordinary client.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams};
use kube::discovery::{self, Scope};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use crate::parts::poll;

/// How long the API server may take to serve a new kind.
const ESTABLISHED_LIMIT: Duration = Duration::from_secs(60);
/// Field manager of the stage's own writes.
pub const MANAGER: &str = "stage";

/// Documents of every YAML file in a folder, in order of file name.
///
/// # Errors
/// When a file cannot be read as YAML; the message names it.
pub fn manifests(dir: &Path) -> Result<Vec<Value>> {
    let entries =
        std::fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))?;
    let mut files: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    let mut all = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file)?;
        let documents: Vec<Value> = serde_saphyr::from_multiple(&text)
            .with_context(|| format!("{} is not YAML", file.display()))?;
        all.extend(documents.into_iter().filter(|document| !document.is_null()));
    }
    Ok(all)
}

/// Applies objects in order, as a client-side `kubectl apply --validate=warn` does: what is missing
/// is created, what exists is merged.
///
/// # Errors
/// When the API server refuses one; the message names it.
pub async fn apply(client: &Client, objects: &[Value]) -> Result<()> {
    for object in objects {
        apply_one(client, object).await?;
    }
    Ok(())
}

/// Waits until every definition that was applied is served.
///
/// # Errors
/// When one is not served in time.
pub async fn established(client: &Client) -> Result<()> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    poll::until("the definitions are served", ESTABLISHED_LIMIT, || async {
        let pending =
            api.list(&ListParams::default()).await?.items.into_iter().find(|definition| {
                let status = definition.status.as_ref();
                let conditions = status.and_then(|status| status.conditions.as_ref());
                !conditions
                    .into_iter()
                    .flatten()
                    .any(|c| c.type_ == "Established" && c.status == "True")
            });
        pending.map_or(Ok(()), |pending| anyhow::bail!("{} is not", pending.name_any()))
    })
    .await
}

async fn apply_one(client: &Client, object: &Value) -> Result<()> {
    let object: DynamicObject = serde_json::from_value(object.clone())?;
    let name = object.name_any();
    let types = object.types.clone().context("object without apiVersion and kind")?;
    let kind = GroupVersionKind::try_from(&types)?;
    let (resource, capabilities) = discovery::pinned_kind(client, &kind).await?;
    let api: Api<DynamicObject> = if capabilities.scope == Scope::Namespaced {
        let namespace = object.namespace().unwrap_or_else(|| "default".to_owned());
        Api::namespaced_with(client.clone(), &namespace, &resource)
    } else {
        Api::all_with(client.clone(), &resource)
    };
    let params = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
    let applied = match api.create(&params, &object).await {
        Err(kube::Error::Api(status)) if status.code == 409 => {
            api.patch(&name, &PatchParams::default(), &Patch::Merge(&object)).await
        }
        other => other,
    };
    applied.with_context(|| format!("cannot apply {} {name}", types.kind))?;
    Ok(())
}

/// Sets the replicas of a Deployment.
///
/// # Errors
/// When the API server refuses.
pub async fn scale(client: &Client, namespace: &str, name: &str, replicas: u32) -> Result<()> {
    let api: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let patch = json!({ "spec": { "replicas": replicas } });
    api.patch_scale(name, &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .with_context(|| format!("cannot scale {namespace}/{name} to {replicas}"))?;
    Ok(())
}
