//! A capacity buffer from its object to the view and back to its status.

use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use longshore_proto::cluster::v1::directive::Action;
use longshore_proto::cluster::v1::{Condition, DirectiveStatus, SetConditions};
use longshore_proto::types::v1::object::Kind;
use longshore_proto::types::v1::{CapacityBuffer as Row, ObjectKind, ObjectRef};
use longshore_watcher::api::CapacityBuffer;
use serde_json::{Value, json};

use super::scheduler::View;
use super::support::{World, create, patch, until};

fn buffer(name: &str, workload: &str) -> Value {
    json!({
        "apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer",
        "metadata": { "name": name },
        "spec": {
            "scalableRef": { "apiGroup": "apps", "kind": "Deployment", "name": workload },
            "percentage": 50,
        },
    })
}

fn row<'a>(view: &'a View, name: &str) -> Option<&'a Row> {
    let rows = view
        .objects
        .values()
        .filter_map(|kind| if let Kind::CapacityBuffer(row) = kind { Some(row) } else { None });
    rows.into_iter().find(|row| row.name == name)
}

/// Status and reason of a condition of a buffer.
fn said(buffer: Option<&CapacityBuffer>, kind: &str) -> Option<(String, String)> {
    let conditions = &buffer?.status.as_ref()?.conditions;
    let found = conditions.iter().find(|condition| condition.type_ == kind)?;
    Some((found.status.clone(), found.reason.clone()))
}

fn is(status: &str, reason: &str) -> Option<(String, String)> {
    Some((status.to_owned(), reason.to_owned()))
}

#[tokio::test]
async fn a_buffer_is_resolved_and_says_what_became_of_it() {
    let mut world = World::start().await;
    let workloads: Api<Deployment> = Api::default_namespaced(world.client.clone());
    let labels = json!({ "app": "web" });
    let pod = json!({
        "metadata": { "labels": labels },
        "spec": { "containers": [{ "name": "c", "resources": { "requests": { "cpu": "1" } } }] },
    });
    let spec = json!({ "replicas": 4, "selector": { "matchLabels": labels }, "template": pod });
    create(&workloads, json!({ "metadata": { "name": "web" }, "spec": spec })).await;
    let buffers: Api<CapacityBuffer> = Api::default_namespaced(world.client.clone());
    create(&buffers, buffer("good", "web")).await;
    create(&buffers, buffer("lost", "nothing")).await;
    let (_, mut session) = world.scheduler.session().await;
    session.until("the buffer", |view| row(view, "good").is_some()).await;
    assert_eq!(row(&session.view, "good").unwrap().replicas, 2);
    assert_eq!(row(&session.view, "lost"), None);
    until(&buffers, "lost", "why it is not ready", |buffer: Option<&CapacityBuffer>| {
        said(buffer, "ReadyForProvisioning") == is("False", "ScalableRefNotFound")
    })
    .await;
    let ready = until(&buffers, "good", "that it is ready", |buffer: Option<&CapacityBuffer>| {
        said(buffer, "ReadyForProvisioning") == is("True", "Resolved")
    });
    assert_eq!(ready.await.unwrap().status.unwrap().replicas, Some(2));
    let set = SetConditions {
        about: Some(ObjectRef {
            kind: ObjectKind::CapacityBuffer.into(),
            key: "default/good".to_owned(),
        }),
        conditions: vec![Condition {
            r#type: "Provisioning".to_owned(),
            status: Some(true),
            reason: "FitsExistingCapacity".to_owned(),
            message: String::new(),
        }],
    };
    let result = session.direct(Action::SetConditions(set)).await;
    assert_eq!(result.status(), DirectiveStatus::Done, "{result:?}");
    let now = buffers.get("good").await.unwrap();
    assert_eq!(said(Some(&now), "Provisioning"), is("True", "FitsExistingCapacity"));
    patch(&buffers, "good", json!({ "spec": { "replicas": 7 } })).await;
    session
        .until("more replicas", |view| row(view, "good").is_some_and(|row| row.replicas == 7))
        .await;
    world.stop().await;
}
