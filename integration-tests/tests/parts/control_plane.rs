//! A control plane without nodes: Deployments become pods, and the pods stay pending.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use kube::Api;
use kube::api::{ListParams, PostParams};
use longshore_it::parts::control_plane::Controllers;
use longshore_it::parts::{ControlPlane, ControlPlaneOptions, CutProxy, Process, binary, poll};
use serde_json::json;

const LIMIT: Duration = Duration::from_secs(60);
const REPLICAS: usize = 3;

#[tokio::test]
async fn a_deployment_becomes_pending_pods_and_survives_the_api_server() -> Result<()> {
    let mut control_plane = ControlPlane::start(ControlPlaneOptions::default()).await?;
    let deployments: Api<Deployment> = Api::default_namespaced(control_plane.client());
    deployments.create(&PostParams::default(), &deployment()?).await?;

    let pods: Api<Pod> = Api::default_namespaced(control_plane.client());
    poll::until("pods are unschedulable", LIMIT, || unschedulable(&pods)).await?;

    control_plane.kill_api_server()?;
    assert!(pods.list(&ListParams::default()).await.is_err(), "a killed API server answers");
    control_plane.restart_api_server().await?;
    assert_eq!(pods.list(&ListParams::default()).await?.items.len(), REPLICAS);
    control_plane.ensure_running()
}

#[tokio::test]
async fn each_kubeconfig_carries_its_own_rights() -> Result<()> {
    let options = ControlPlaneOptions {
        scheduler: false,
        controllers: Controllers::None,
        ..ControlPlaneOptions::default()
    };
    let control_plane = ControlPlane::start(options).await?;
    let admin = control_plane.kubeconfig_path();
    assert!(get_namespaces(&control_plane, "kubectl", &admin).await?.contains("kube-system"));

    let proxy = CutProxy::start(control_plane.address()).await?;
    let through = control_plane.kubeconfig_through("through", proxy.address())?;
    assert!(get_namespaces(&control_plane, "proxied", &through).await?.contains("kube-system"));
    assert!(proxy.connections_total() > 0, "kubectl went past the proxy");

    let account = control_plane.kubeconfig_for_token("account", &token(&control_plane).await?)?;
    let answer = get_namespaces(&control_plane, "powerless", &account).await?;
    assert!(answer.contains("Forbidden"), "{answer}");

    let stranger = control_plane.kubeconfig_for_token("stranger", "not-a-token")?;
    let answer = get_namespaces(&control_plane, "unknown", &stranger).await?;
    assert!(answer.contains("Unauthorized"), "{answer}");
    Ok(())
}

#[tokio::test]
async fn what_the_observed_user_asks_is_written_down_and_nothing_else() -> Result<()> {
    let options = ControlPlaneOptions {
        scheduler: false,
        controllers: Controllers::None,
        observes: true,
        ..ControlPlaneOptions::default()
    };
    let control_plane = ControlPlane::start(options).await?;
    let observed = control_plane.observed().context("nobody is observed")?;
    get_namespaces(&control_plane, "unseen", &control_plane.kubeconfig_path()).await?;
    let answer = get_namespaces(&control_plane, "seen", &observed.kubeconfig).await?;
    assert!(answer.contains("kube-system"), "{answer}");
    let log = poll::until("the request is in the audit log", LIMIT, || async {
        let log = std::fs::read_to_string(&observed.log)?;
        ensure!(log.contains("\"resource\":\"namespaces\""), "{log}");
        anyhow::Ok(log)
    });
    let log = log.await?;
    let others: Vec<_> = log.lines().filter(|it| !it.contains("\"observed\"")).collect();
    assert!(others.is_empty(), "{others:#?}");
    Ok(())
}

/// A token of a new service account, which has no rights.
async fn token(control_plane: &ControlPlane) -> Result<String> {
    let accounts: Api<ServiceAccount> = Api::default_namespaced(control_plane.client());
    let account = serde_json::from_value(json!({ "metadata": { "name": "powerless" } }))?;
    accounts.create(&PostParams::default(), &account).await?;
    let request = serde_json::from_value(json!({ "spec": { "audiences": [] } }))?;
    let params = PostParams::default();
    let answer = accounts.create_token_request("powerless", &params, &request).await?;
    Ok(answer.status.context("a token request without an answer")?.token)
}

/// What kubectl says, right or wrong.
async fn get_namespaces(
    control_plane: &ControlPlane,
    name: &str,
    kubeconfig: &Path,
) -> Result<String> {
    let kubectl = binary::part_program("kubernetes", "kubectl")?;
    let mut command = Command::new(kubectl);
    command.arg("--kubeconfig").arg(kubeconfig).args(["get", "namespaces", "--output=name"]);
    let mut kubectl = Process::start(name, command, control_plane.log_dir())?;
    kubectl.wait_for_exit(LIMIT).await?;
    kubectl.log()
}

async fn unschedulable(pods: &Api<Pod>) -> Result<()> {
    let pods = pods.list(&ListParams::default()).await?.items;
    let waiting = pods.iter().filter(|pod| is_unschedulable(pod)).count();
    ensure!(waiting == REPLICAS, "{waiting} of {REPLICAS} pods are unschedulable");
    Ok(())
}

fn is_unschedulable(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|it| it.reason.as_deref() == Some("Unschedulable"))
}

fn deployment() -> Result<Deployment> {
    Ok(serde_json::from_value(json!({
        "metadata": { "name": "waiting" },
        "spec": {
            "replicas": REPLICAS,
            "selector": { "matchLabels": { "app": "waiting" } },
            "template": {
                "metadata": { "labels": { "app": "waiting" } },
                "spec": { "containers": [{ "name": "main", "image": "example.com/none" }] },
            },
        },
    }))?)
}
