//! Reading and writing objects.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::core::{DynamicObject, GroupVersionKind};
use longshore_lab::cluster::{error::ApiError, faults::Denial};
use serde_json::json;

use super::support::{cluster, create, object, pod, refusal};

#[tokio::test]
async fn a_stale_update_conflicts_and_a_fresh_one_does_not() {
    let (cluster, client) = cluster().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let first = create(&maps, json!({ "metadata": { "name": "m" }, "data": { "a": "1" } })).await;
    let mut newer = first.clone();
    newer.data = Some([("a".to_owned(), "2".to_owned())].into());
    maps.replace("m", &PostParams::default(), &newer).await.unwrap();
    let stale = maps.replace("m", &PostParams::default(), &first).await.unwrap_err();
    let status = refusal(stale);
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    assert!(status.message.contains("the object has been modified"), "{}", status.message);
    cluster.stop().await;
}

#[tokio::test]
async fn names_are_generated_and_taken_names_refused() {
    let (cluster, client) = cluster().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let made = create(&maps, json!({ "metadata": { "generateName": "job-" } })).await;
    let name = made.metadata.name.unwrap();
    assert!(name.starts_with("job-") && name.len() == "job-".len() + 5, "{name}");
    let again = object(json!({ "metadata": { "name": name } }));
    let status = refusal(maps.create(&PostParams::default(), &again).await.unwrap_err());
    assert_eq!((status.code, status.reason.as_str()), (409, "AlreadyExists"));
    let status = refusal(maps.get("absent").await.unwrap_err());
    assert_eq!((status.code, status.message.as_str()), (404, "configmaps \"absent\" not found"));
    cluster.stop().await;
}

#[tokio::test]
async fn lists_page_and_select() {
    let (cluster, client) = cluster().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    for index in 0..5 {
        let tier = if index % 2 == 0 { "even" } else { "odd" };
        let name = format!("m{index}");
        create(&maps, json!({ "metadata": { "name": name, "labels": { "tier": tier } } })).await;
    }
    let page = maps.list(&ListParams::default().limit(2)).await.unwrap();
    assert_eq!(page.items.len(), 2);
    assert_eq!(page.metadata.remaining_item_count, Some(3));
    let token = page.metadata.continue_.unwrap();
    let rest = maps.list(&ListParams::default().continue_token(&token)).await.unwrap();
    assert_eq!(rest.items.len(), 3);
    let selected = maps.list(&ListParams::default().labels("tier in (odd),!absent")).await.unwrap();
    assert_eq!(selected.items.len(), 2);
    let one = maps.list(&ListParams::default().fields("metadata.name=m3")).await.unwrap();
    assert_eq!(one.items.len(), 1);
    cluster.stop().await;
}

#[tokio::test]
async fn patches_of_all_kinds_do_what_they_say() {
    let (cluster, client) = cluster().await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let pp = PatchParams::default();
    create(&pods, pod("p", "100m")).await;
    let merge = json!({ "metadata": { "labels": { "app": null, "x": "1" } } });
    let patched = pods.patch("p", &pp, &Patch::Merge(merge)).await.unwrap();
    assert_eq!(
        patched.metadata.labels.unwrap().into_iter().collect::<Vec<_>>(),
        [("x".into(), "1".into())]
    );
    for kind in ["Ready", "Custom"] {
        let status = json!({ "status": { "conditions": [{ "type": kind, "status": "True" }] } });
        pods.patch_status("p", &pp, &Patch::Strategic(status)).await.unwrap();
    }
    let conditions = pods.get("p").await.unwrap().status.unwrap().conditions.unwrap();
    let kinds: Vec<&str> = conditions.iter().map(|c| c.type_.as_str()).collect();
    assert!(kinds.contains(&"Ready") && kinds.contains(&"Custom"), "{kinds:?}");
    let immutable = json!({ "spec": { "priority": 7 } });
    let status = refusal(pods.patch("p", &pp, &Patch::Merge(immutable)).await.unwrap_err());
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    let before = pods.get("p").await.unwrap().metadata.resource_version;
    let nothing = json!({ "metadata": { "labels": { "x": "1" } } });
    let same = pods.patch("p", &pp, &Patch::Merge(nothing)).await.unwrap();
    assert_eq!(same.metadata.resource_version, before, "a patch that changes nothing is no write");
    cluster.stop().await;
}

#[tokio::test]
async fn generation_follows_the_spec_and_status_has_its_own_door() {
    let (cluster, client) = cluster().await;
    let deployments: Api<Deployment> = Api::default_namespaced(client);
    let pp = PatchParams::default();
    let made = create(&deployments, super::support::deployment("d", 0, "1")).await;
    assert_eq!(made.metadata.generation, Some(1));
    let both =
        json!({ "spec": { "replicas": 0, "minReadySeconds": 3 }, "status": { "replicas": 9 } });
    let patched = deployments.patch("d", &pp, &Patch::Merge(both)).await.unwrap();
    assert_eq!(patched.metadata.generation, Some(2));
    assert_ne!(patched.status.and_then(|status| status.replicas), Some(9));
    let two = Patch::Merge(json!({ "spec": { "replicas": 2 } }));
    let scale = deployments.patch_scale("d", &pp, &two).await.unwrap();
    assert_eq!(scale.spec.unwrap().replicas, Some(2));
    assert_eq!(deployments.get("d").await.unwrap().spec.unwrap().replicas, Some(2));
    cluster.stop().await;
}

#[tokio::test]
async fn custom_resources_are_served_pruned_and_defaulted() {
    let (cluster, client) = cluster().await;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    create(&definitions, widget_definition()).await;
    let kind = GroupVersionKind::gvk("lab.example", "v1", "Widget");
    let (resource, _) = kube::discovery::pinned_kind(&client, &kind).await.unwrap();
    let widgets: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let made = create(
        &widgets,
        json!({
            "apiVersion": "lab.example/v1",
            "kind": "Widget",
            "metadata": { "name": "w" },
            "spec": { "size": 3, "limit": { "cpu": 1 }, "free": { "any": "thing" } },
            "status": { "seen": true },
        }),
    )
    .await;
    assert_eq!(made.data["spec"], json!({ "size": 3, "color": "red", "free": { "any": "thing" } }));
    assert_eq!(made.data.get("status"), None);
    let status = json!({ "status": { "seen": true }, "spec": { "size": 9 } });
    let patched = widgets.patch_status("w", &PatchParams::default(), &Patch::Merge(status)).await;
    let patched = patched.unwrap();
    assert_eq!(
        (&patched.data["spec"]["size"], &patched.data["status"]["seen"]),
        (&json!(3), &json!(true))
    );
    assert_eq!(patched.metadata.generation, Some(1));
    let beta = kube::core::ApiResource {
        version: "v1beta1".into(),
        api_version: "lab.example/v1beta1".into(),
        ..resource
    };
    let read = Api::<DynamicObject>::all_with(client, &beta).get("w").await.unwrap();
    assert_eq!(read.types.unwrap().api_version, "lab.example/v1beta1");
    cluster.stop().await;
}

#[tokio::test]
async fn unknown_fields_are_refused_when_the_client_asks_for_strictness() {
    let (cluster, client) = cluster().await;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    create(&definitions, widget_definition()).await;
    let body = json!({
        "apiVersion": "lab.example/v1",
        "kind": "Widget",
        "metadata": { "name": "w" },
        "spec": { "size": 3, "limit": 1 },
    });
    let post = |validation: &str| {
        let uri = format!("/apis/lab.example/v1/widgets?fieldValidation={validation}");
        http::Request::post(uri).body(body.to_string().into_bytes()).unwrap()
    };
    let strict = client.request::<serde_json::Value>(post("Strict")).await.unwrap_err();
    let status = refusal(strict);
    assert_eq!(status.code, 400);
    assert!(status.message.contains("unknown field \"spec.limit\""), "{}", status.message);
    let warned = client.send(post("Warn").map(kube::client::Body::from)).await.unwrap();
    let warning = warned.headers().get("warning").unwrap().to_str().unwrap();
    assert_eq!(warning, r#"299 - "unknown field \"spec.limit\"""#);
    cluster.stop().await;
}

fn widget_definition() -> serde_json::Value {
    let schema = json!({ "openAPIV3Schema": { "type": "object", "properties": {
        "spec": { "type": "object", "properties": {
            "size": { "type": "integer" },
            "color": { "type": "string", "default": "red" },
            "free": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
        } },
        "status": { "type": "object", "properties": { "seen": { "type": "boolean" } } },
    } } });
    let version = |name: &str, storage: bool| {
        json!({
            "name": name,
            "served": true,
            "storage": storage,
            "schema": schema,
            "subresources": { "status": {} },
        })
    };
    json!({
        "metadata": { "name": "widgets.lab.example" },
        "spec": {
            "group": "lab.example",
            "scope": "Cluster",
            "names": { "plural": "widgets", "singular": "widget", "kind": "Widget" },
            "versions": [version("v1", true), version("v1beta1", false)],
        },
    })
}

#[tokio::test]
async fn namespaces_must_exist_and_take_their_content_with_them() {
    let (cluster, client) = cluster().await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "team");
    let map = object(json!({ "metadata": { "name": "m" } }));
    let status = refusal(maps.create(&PostParams::default(), &map).await.unwrap_err());
    assert_eq!(status.message, "namespaces \"team\" not found");
    let namespaces: Api<Namespace> = Api::all(client);
    create(&namespaces, json!({ "metadata": { "name": "team" } })).await;
    maps.create(&PostParams::default(), &map).await.unwrap();
    namespaces.delete("team", &Default::default()).await.unwrap();
    super::support::until(&namespaces, "the namespace is gone", |all| {
        !super::support::names(all).contains(&"team".to_owned())
    })
    .await;
    assert_eq!(maps.list(&ListParams::default()).await.unwrap().items.len(), 0);
    cluster.stop().await;
}

#[tokio::test]
async fn scripted_faults_reach_the_client_as_real_refusals() {
    let (cluster, client) = cluster().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let denial =
        Denial { verb: "create".into(), resource: "configmaps".into(), ..Denial::default() };
    cluster.faults().deny(denial);
    let map = object(json!({ "metadata": { "name": "m" } }));
    let status = refusal(maps.create(&PostParams::default(), &map).await.unwrap_err());
    assert_eq!((status.code, status.reason.as_str()), (403, "Forbidden"));
    cluster.faults().clear();
    cluster.faults().fail("configmaps", 1, ApiError::Internal("scripted".into()));
    let status = refusal(maps.create(&PostParams::default(), &map).await.unwrap_err());
    assert_eq!((status.code, status.message.as_str()), (500, "scripted"));
    maps.create(&PostParams::default(), &map).await.unwrap();
    cluster.stop().await;
}

#[tokio::test]
async fn the_in_process_client_and_the_kubeconfig_reach_the_same_cluster() {
    let (cluster, _) = cluster().await;
    let near: Api<ConfigMap> = Api::default_namespaced(cluster.in_process_client());
    create(&near, json!({ "metadata": { "name": "m" } })).await;
    let (kubeconfig, options) = (cluster.kubeconfig().unwrap(), Default::default());
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    let client = kube::Client::try_from(config).unwrap();
    let far: Api<ConfigMap> = Api::default_namespaced(client.clone());
    assert!(far.get("m").await.is_ok());
    assert_eq!(client.apiserver_version().await.unwrap().minor, "35");
    cluster.stop().await;
}
