//! What happens to nodes, by their user or by themselves.
//!
//! Invariant: everything goes through the Kubernetes API; each act names the nodes that have to go
//! for it.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams,
};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::stage::eyes;

/// For so long a node has said what is wrong with it.
const AILED: Duration = Duration::from_secs(3_600);

/// Deletes every NodeClaim, as `kubectl delete nodeclaims --all --wait=false` does.
pub async fn delete_claims(client: &Client) -> Result<Vec<String>> {
    let kind = GroupVersionKind::gvk("karpenter.sh", "v1", "NodeClaim");
    let resource = ApiResource::from_gvk_with_plural(&kind, "nodeclaims");
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let mut nodes = Vec::new();
    for claim in eyes::claims(client).await? {
        api.delete(&claim.name_any(), &DeleteParams::default()).await?;
        let node = claim.data.pointer("/status/nodeName").and_then(Value::as_str);
        nodes.extend(node.map(str::to_owned));
    }
    Ok(nodes)
}

/// Has the first node say that its network is broken, as EKS's node monitoring agent does.
pub async fn ail(client: &Client) -> Result<Vec<String>> {
    let nodes = eyes::pool_nodes(client).await?;
    let names: BTreeSet<String> = nodes.iter().map(kube::ResourceExt::name_any).collect();
    let name = names.first().context("no node of a pool")?;
    let condition = json!({
        "type": "NetworkingReady", "status": "False", "reason": "InterfaceNotRunning",
        "message": "the network interface is not running",
        "lastTransitionTime": (Timestamp::now() - AILED).strftime("%FT%TZ").to_string(),
    });
    let status = json!({ "status": { "conditions": [condition] } });
    let api: Api<Node> = Api::all(client.clone());
    api.patch_status(name, &PatchParams::default(), &Patch::Strategic(status)).await?;
    Ok(vec![name.clone()])
}
