//! Pods on nodes that kubelets serve.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use longshore_lab::cluster::{Cluster, ClusterConfig, ClusterHandle};
use longshore_lab::kubelet::capacity::Amounts;
use longshore_lab::kubelet::{KubeletConfig, Kubelets, RUNS_FOR, STOPS_AFTER, StaticNode};
use serde_json::json;

use crate::support::{create, deployment, names, node_of, pod, until};

/// A cluster that leaves the end of pods to kubelets, with `nodes` static nodes.
async fn cluster(nodes: usize) -> (ClusterHandle, kube::Client, Kubelets) {
    let config = ClusterConfig { reaps_pods_after_grace: false, ..ClusterConfig::default() };
    let cluster = Cluster::start(config).await.unwrap();
    let client = cluster.client().unwrap();
    let config = KubeletConfig::new("lab", "us-east-1");
    let mut kubelets = Kubelets::without_instances(client.clone(), config);
    for index in 0..nodes {
        let room = Amounts {
            cpu_millis: 16_000,
            memory_bytes: 64 << 30,
            storage_bytes: 1 << 34,
            pods: 110,
        };
        let name = format!("managed-{index}");
        kubelets.add_static_node(StaticNode::managed(&name, "us-east-1a", "system", room));
    }
    (cluster, client, kubelets)
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    let is_true = |kind: &str| {
        conditions.into_iter().flatten().any(|c| c.type_ == kind && c.status == "True")
    };
    is_true("Ready")
}

#[tokio::test]
async fn a_deployment_runs_and_scales_from_4_to_100_and_back() {
    let (cluster, client, kubelets) = cluster(7).await;
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    create(&deployments, deployment("web", 4, "1")).await;
    let running =
        until(&pods, "four ready pods", |pods| pods.len() == 4 && pods.iter().all(is_ready)).await;
    let status = running[0].status.as_ref().unwrap();
    assert_eq!(status.phase.as_deref(), Some("Running"));
    assert!(status.pod_ip.is_some() && status.start_time.is_some());
    assert_eq!(status.container_statuses.as_ref().unwrap().len(), 1);
    for replicas in [100, 4] {
        let scale = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
        deployments.patch_scale("web", &PatchParams::default(), &scale).await.unwrap();
        until(&deployments, "all replicas are available", |all| {
            let status = all[0].status.clone().unwrap_or_default();
            status.available_replicas == Some(replicas) && status.replicas == Some(replicas)
        })
        .await;
    }
    until(&pods, "four pods are left", |pods| pods.len() == 4).await;
    kubelets.stop().await;
    cluster.stop().await;
}

#[tokio::test]
async fn jobs_complete_and_pods_run_as_long_as_their_annotation_says() {
    let (cluster, client, kubelets) = cluster(1).await;
    let jobs: Api<Job> = Api::default_namespaced(client.clone());
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let mut spec = pod("task", "1")["spec"].clone();
    spec["restartPolicy"] = json!("Never");
    let metadata = json!({ "annotations": { RUNS_FOR: "1ms" } });
    let template = json!({ "metadata": metadata, "spec": spec });
    create(
        &jobs,
        json!({
            "metadata": { "name": "batch" },
            "spec": { "completions": 5, "parallelism": 2, "template": template },
        }),
    )
    .await;
    until(&jobs, "the job is complete", |jobs| {
        jobs[0].status.as_ref().is_some_and(|status| status.completion_time.is_some())
    })
    .await;
    let ended = pods.list(&Default::default()).await.unwrap().items;
    assert_eq!(ended.len(), 5);
    let phases = ended.iter().map(|pod| pod.status.as_ref().unwrap().phase.as_deref());
    assert!(phases.into_iter().all(|phase| phase == Some("Succeeded")));
    kubelets.stop().await;
    cluster.stop().await;
}

#[tokio::test]
async fn a_pod_that_stops_slowly_is_confirmed_gone_by_its_kubelet() {
    let (cluster, client, kubelets) = cluster(1).await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let mut slow = pod("slow", "1");
    slow["metadata"]["annotations"] = json!({ STOPS_AFTER: "10m" });
    slow["spec"]["terminationGracePeriodSeconds"] = json!(600);
    create(&pods, slow).await;
    create(&pods, pod("quick", "1")).await;
    until(&pods, "both run", |pods| pods.len() == 2 && pods.iter().all(is_ready)).await;
    for name in ["slow", "quick"] {
        pods.delete(name, &DeleteParams::default()).await.unwrap();
    }
    let left = until(&pods, "one is gone", |pods| pods.len() == 1).await;
    assert_eq!(names(&left), ["slow"]);
    assert!(left[0].metadata.deletion_timestamp.is_some());
    kubelets.stop().await;
    cluster.stop().await;
}

#[tokio::test]
async fn pods_are_ready_again_once_their_node_is() {
    let (cluster, client, kubelets) = cluster(1).await;
    let nodes: Api<Node> = Api::all(client.clone());
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    create(&pods, pod("web", "1")).await;
    until(&pods, "it is ready", |pods| pods.iter().any(is_ready)).await;
    for (status, ready) in [("Unknown", false), ("True", true)] {
        let conditions =
            json!({ "status": { "conditions": [{ "type": "Ready", "status": status }] } });
        let patch = Patch::Strategic(&conditions);
        nodes.patch_status("managed-0", &PatchParams::default(), &patch).await.unwrap();
        until(&pods, "it is as its node", |pods| pods.iter().any(is_ready) == ready).await;
    }
    kubelets.stop().await;
    cluster.stop().await;
}

#[tokio::test]
async fn a_fargate_node_keeps_ordinary_pods_away() {
    let (cluster, client, mut kubelets) = cluster(0).await;
    let nodes: Api<Node> = Api::all(client.clone());
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    kubelets.add_static_node(StaticNode::fargate("fargate-1", "us-east-1a", 2_000, 4 << 30));
    create(&pods, pod("ordinary", "100m")).await;
    let mut system = pod("system", "100m");
    system["spec"]["tolerations"] =
        json!([{ "key": "eks.amazonaws.com/compute-type", "value": "fargate" }]);
    create(&pods, system).await;
    let seen = until(&pods, "the tolerating pod runs", |pods| pods.iter().any(is_ready)).await;
    let running = seen.iter().find(|pod| is_ready(pod)).unwrap();
    assert_eq!((running.metadata.name.as_deref(), node_of(running)), (Some("system"), "fargate-1"));
    let labelled =
        kube::api::ListParams::default().labels("eks.amazonaws.com/compute-type=fargate");
    assert_eq!(names(&nodes.list(&labelled).await.unwrap().items), ["fargate-1"]);
    assert_eq!(node_of(&pods.get("ordinary").await.unwrap()), "");
    kubelets.stop().await;
    cluster.stop().await;
}
