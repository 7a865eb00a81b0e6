//! Workload controllers.

use std::collections::BTreeSet;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

use super::support::{
    cluster, create, deployment, make_ready, names, node_of, pod, ready_node, until,
};

#[tokio::test]
async fn a_deployment_scales_up_and_back_down_preferring_pods_that_do_not_run() {
    let (cluster, client) = cluster().await;
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    for index in 0..5 {
        ready_node(&client, &format!("n{index}"), "2", json!({})).await;
    }
    create(&deployments, deployment("d", 4, "1")).await;
    let first = until(&pods, "four bound pods", |pods| {
        pods.len() == 4 && pods.iter().all(|pod| !node_of(pod).is_empty())
    })
    .await;
    let kept: BTreeSet<String> = names(&first).into_iter().collect();
    for name in &kept {
        make_ready(&pods, name).await;
    }
    let to = |replicas: i32| Patch::Merge(json!({ "spec": { "replicas": replicas } }));
    let pp = PatchParams::default();
    deployments.patch_scale("d", &pp, &to(100)).await.unwrap();
    until(&pods, "a hundred pods, ten of them bound", |pods| {
        pods.len() == 100 && pods.iter().filter(|pod| !node_of(pod).is_empty()).count() == 10
    })
    .await;
    deployments.patch_scale("d", &pp, &to(4)).await.unwrap();
    let left = until(&pods, "four active pods", |pods| {
        pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).count() == 4
    })
    .await;
    let left: BTreeSet<String> = left
        .iter()
        .filter(|pod| pod.metadata.deletion_timestamp.is_none())
        .filter_map(|pod| pod.metadata.name.clone())
        .collect();
    assert_eq!(left, kept, "ready pods outlive those that never ran");
    until(&deployments, "the status follows", |all| {
        let status = all[0].status.clone().unwrap_or_default();
        status.replicas == Some(4) && status.available_replicas == Some(4)
    })
    .await;
    cluster.stop().await;
}

#[tokio::test]
async fn a_new_template_rolls_out_without_losing_capacity() {
    let (cluster, client) = cluster().await;
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    ready_node(&client, "n", "16", json!({})).await;
    create(&deployments, deployment("d", 3, "1")).await;
    let old = until(&pods, "three pods", |pods| pods.len() == 3).await;
    for name in names(&old) {
        make_ready(&pods, &name).await;
    }
    let image =
        json!({ "spec": { "template": { "spec": { "terminationGracePeriodSeconds": 0 } } } });
    deployments.patch("d", &PatchParams::default(), &Patch::Merge(image)).await.unwrap();
    let old: BTreeSet<String> = names(&old).into_iter().collect();
    let mut done: BTreeSet<String> = BTreeSet::new();
    while done.len() < 3 {
        let fresh = |pod: &&Pod| {
            let name = pod.metadata.name.clone().unwrap_or_default();
            !old.contains(&name) && !done.contains(&name)
        };
        let seen = until(&pods, "another new pod", |pods| pods.iter().any(|p| fresh(&p))).await;
        let serving = seen.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).count();
        assert!(serving <= 4, "at most one pod above the replicas");
        let name = seen.iter().find(|pod| fresh(pod)).unwrap().metadata.name.clone().unwrap();
        make_ready(&pods, &name).await;
        done.insert(name);
    }
    until(&deployments, "the rollout is complete", |all| {
        let status = all[0].status.clone().unwrap_or_default();
        status.updated_replicas == Some(3) && status.available_replicas == Some(3)
    })
    .await;
    cluster.stop().await;
}

#[tokio::test]
async fn a_daemon_set_covers_the_nodes_it_tolerates() {
    let (cluster, client) = cluster().await;
    let sets: Api<DaemonSet> = Api::default_namespaced(client.clone());
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let nodes: Api<Node> = Api::all(client.clone());
    ready_node(&client, "open", "2", json!({})).await;
    let mut closed = super::support::node("closed", "2", json!({}));
    closed["spec"] = json!({ "taints": [{ "key": "k", "effect": "NoSchedule" }] });
    create(&nodes, closed).await;
    create(
        &sets,
        json!({
            "metadata": { "name": "agent" },
            "spec": {
                "selector": { "matchLabels": { "app": "agent" } },
                "template": {
                    "metadata": { "labels": { "app": "agent" } },
                    "spec": pod("agent", "100m")["spec"],
                },
            },
        }),
    )
    .await;
    until(&pods, "a pod on the open node", |pods| pods.iter().any(|pod| node_of(pod) == "open"))
        .await;
    let open = json!({ "spec": { "taints": null } });
    nodes.patch("closed", &PatchParams::default(), &Patch::Merge(open)).await.unwrap();
    until(&pods, "a pod on each node", |pods| {
        let on: BTreeSet<&str> = pods.iter().map(node_of).collect();
        on == BTreeSet::from(["closed", "open"]) && pods.len() == 2
    })
    .await;
    cluster.stop().await;
}

#[tokio::test]
async fn a_job_completes_with_its_pods() {
    let (cluster, client) = cluster().await;
    let jobs: Api<Job> = Api::default_namespaced(client.clone());
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let mut template = pod("j", "100m");
    template["spec"]["restartPolicy"] = json!("Never");
    create(&jobs, json!({
        "metadata": { "name": "j" },
        "spec": { "completions": 3, "parallelism": 2, "template": { "spec": template["spec"] } },
    }))
    .await;
    let mut ended: BTreeSet<String> = BTreeSet::new();
    while ended.len() < 3 {
        let seen = until(&pods, "a pod that has not ended", |pods| {
            names(pods).iter().any(|name| !ended.contains(name))
        })
        .await;
        assert!(seen.len() - ended.len() <= 2, "parallelism");
        let name = names(&seen).into_iter().find(|name| !ended.contains(name)).unwrap();
        let status = Patch::Merge(json!({ "status": { "phase": "Succeeded" } }));
        pods.patch_status(&name, &PatchParams::default(), &status).await.unwrap();
        ended.insert(name);
    }
    until(&jobs, "the job is complete", |jobs| {
        let conditions = jobs[0].status.clone().unwrap_or_default().conditions.unwrap_or_default();
        conditions.iter().any(|condition| condition.type_ == "Complete")
    })
    .await;
    cluster.stop().await;
}

#[tokio::test]
async fn a_stateful_set_counts_up_in_order_and_down_from_the_end() {
    let (cluster, client) = cluster().await;
    let sets: Api<StatefulSet> = Api::default_namespaced(client.clone());
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    create(
        &sets,
        json!({
            "metadata": { "name": "db" },
            "spec": {
                "replicas": 2,
                "serviceName": "db",
                "selector": { "matchLabels": { "app": "db" } },
                "template": {
                    "metadata": { "labels": { "app": "db" } },
                    "spec": pod("db", "100m")["spec"],
                },
            },
        }),
    )
    .await;
    let only = until(&pods, "the first pod", |pods| !pods.is_empty()).await;
    assert_eq!(names(&only), ["db-0"], "the second waits for the first");
    make_ready(&pods, "db-0").await;
    until(&pods, "the second pod", |pods| pods.len() == 2).await;
    make_ready(&pods, "db-1").await;
    let scale = Patch::Merge(json!({ "spec": { "replicas": 1 } }));
    sets.patch_scale("db", &PatchParams::default(), &scale).await.unwrap();
    let left = until(&pods, "one pod", |pods| pods.len() == 1).await;
    assert_eq!(names(&left), ["db-0"]);
    cluster.stop().await;
}
