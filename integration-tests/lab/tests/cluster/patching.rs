//! JSON patches, as controllers send them that write beside others.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams};
use kube::core::Status;
use serde_json::{Value, json};

use super::support::{cluster, create, refusal};

async fn send(maps: &Api<ConfigMap>, operations: Value) -> Result<ConfigMap, Status> {
    let patch = Patch::<ConfigMap>::Json(serde_json::from_value(operations).unwrap());
    maps.patch("m", &PatchParams::default(), &patch).await.map_err(refusal)
}

fn test(path: &str, value: &Value) -> Value {
    json!({ "op": "test", "path": path, "value": value })
}

#[tokio::test]
async fn a_json_patch_is_done_whole_when_its_tests_hold() {
    let (cluster, client) = cluster().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let made = create(&maps, json!({ "metadata": { "name": "m" }, "data": { "a": "1" } })).await;
    let patched = send(
        &maps,
        json!([
            test("/metadata/uid", &json!(made.metadata.uid)),
            test("/data/a", &json!("1")),
            test("/data/b~1c", &Value::Null),
            test("/metadata/labels", &Value::Null),
            { "op": "replace", "path": "/data/a", "value": "2" },
            { "op": "add", "path": "/data/b~1c", "value": "3" },
            { "op": "add", "path": "/metadata/labels", "value": { "x": "1" } },
        ]),
    )
    .await
    .unwrap();
    let data: Vec<_> = patched.data.unwrap().into_iter().collect();
    assert_eq!(data, [("a".into(), "2".into()), ("b/c".into(), "3".into())]);
    assert_eq!(patched.metadata.labels.unwrap()["x"], "1");
    cluster.stop().await;
}

#[tokio::test]
async fn a_json_patch_that_does_not_fit_is_refused_whole() {
    let (cluster, client) = cluster().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let made = create(&maps, json!({ "metadata": { "name": "m" }, "data": { "a": "1" } })).await;
    let write = json!({ "op": "add", "path": "/data/a", "value": "2" });
    for refused in [
        test("/data/a", &json!("9")),
        test("/data/a", &Value::Null),
        test("/data/absent", &json!("1")),
        test("/metadata/labels/x", &Value::Null),
        json!({ "op": "remove", "path": "/data/absent" }),
        json!({ "op": "add", "path": "/metadata/labels/x", "value": "1" }),
    ] {
        let status = send(&maps, json!([write, refused])).await.unwrap_err();
        assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"), "{refused}");
        let text = "the server rejected our request due to an error in our request";
        assert_eq!(status.message, text);
    }
    let many = vec![write; 10_001];
    let status = send(&maps, Value::Array(many)).await.unwrap_err();
    assert_eq!((status.code, status.reason.as_str()), (413, "RequestEntityTooLarge"));
    let now = maps.get("m").await.unwrap();
    assert_eq!(now.metadata.resource_version, made.metadata.resource_version);
    cluster.stop().await;
}
