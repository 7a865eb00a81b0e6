//! Field managers and server-side apply.

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use super::support::{cluster, create, pod, refusal};

fn config(data: Value) -> Patch<Value> {
    let metadata = json!({ "name": "m" });
    let (version, kind) = ("v1", "ConfigMap");
    Patch::Apply(json!({ "apiVersion": version, "kind": kind, "metadata": metadata, "data": data }))
}

#[tokio::test]
async fn apply_creates_merges_drops_and_guards() {
    let (cluster, client) = cluster().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let (one, two) = (PatchParams::apply("one"), PatchParams::apply("two"));
    maps.patch("m", &one, &config(json!({ "a": "1", "b": "1" }))).await.unwrap();
    maps.patch("m", &two, &config(json!({ "c": "2" }))).await.unwrap();
    let status = refusal(maps.patch("m", &two, &config(json!({ "a": "9" }))).await.unwrap_err());
    assert_eq!(status.code, 409);
    assert!(status.message.contains("conflict with \"one\": .data.a"), "{}", status.message);
    let merged = maps.patch("m", &one, &config(json!({ "a": "1" }))).await.unwrap();
    let data: Vec<_> = merged.data.unwrap().into_iter().collect();
    assert_eq!(data, [("a".into(), "1".into()), ("c".into(), "2".into())], "b was given up");
    let forced = maps.patch("m", &two.clone().force(), &config(json!({ "a": "9" }))).await.unwrap();
    assert_eq!(forced.data.unwrap()["a"], "9");
    cluster.stop().await;
}

#[tokio::test]
async fn a_nomination_is_recorded_under_its_manager_until_somebody_withdraws_it() {
    let (cluster, client) = cluster().await;
    let pods: Api<Pod> = Api::default_namespaced(client);
    let mut gated = pod("p", "1");
    gated["spec"]["schedulingGates"] = json!([{ "name": "lab.example/wait" }]);
    create(&pods, gated).await;
    let nomination = json!({ "status": { "nominatedNodeName": "n" } });
    let ours = PatchParams { field_manager: Some("longshore".into()), ..Default::default() };
    let nominated = pods.patch_status("p", &ours, &Patch::Merge(nomination)).await.unwrap();
    let entries = nominated.metadata.managed_fields.unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].manager.as_deref(), Some("longshore"));
    assert_eq!(entries[0].subresource.as_deref(), Some("status"));
    let fields = &entries[0].fields_v1.as_ref().unwrap().0;
    assert_eq!(*fields, json!({ "f:status": { "f:nominatedNodeName": {} } }));
    let withdrawn = json!({ "status": { "nominatedNodeName": null } });
    let after = pods.patch_status("p", &PatchParams::default(), &Patch::Merge(withdrawn)).await;
    assert_eq!(after.unwrap().metadata.managed_fields, None);
    cluster.stop().await;
}
