//! Clients of other platforms: the protocol is all they know of Longshore.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use longshore_it::parts::{binary, poll};
use longshore_it::stage::world::{ROOT, World, WorldConfig};
use longshore_it::stage::{eyes, hands};
use longshore_lab::region::{CLUSTER, RegionConfig};
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(60);
const REGION: &str = "us-east-1";

#[tokio::test(flavor = "multi_thread")]
async fn a_python_client_computes_a_plan_and_explains_a_pod() -> Result<()> {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let config = WorldConfig::new(RegionConfig::simple(REGION)?, CLUSTER, dir.path());
    let world = World::start(config).await?;
    let manifests = hands::manifests(&Path::new(ROOT).join("integration-tests/demo"))?;
    hands::apply(&world.client, &manifests).await?;
    poll::until("the pods run", LIMIT, || async {
        let sight = eyes::look(&world.client, "default", "app=web").await?;
        ensure!(sight.running == 4, "{sight:?}");
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    let pods: Api<Pod> = Api::default_namespaced(world.client.clone());
    let pods = pods.list(&ListParams::default()).await?.items;
    let pod = pods.first().context("no pod")?.name_any();
    let address = world.scheduler.address.to_string();
    let keys = world.keys.sign(&"longshore://client/test".parse()?)?.tls_cert.context("no file")?;
    let answer = tokio::task::spawn_blocking(move || ask(&keys, &address, &pod)).await??;
    let plan = &answer["plan"];
    ensure!(plan["priceMicroUsdPerHour"] == "300000", "10 pods need 3 nodes: {plan:#}");
    ensure!(plan["bound"]["certificateChecked"] == true, "the proof was not checked: {plan:#}");
    let node = &answer["explained"]["placement"]["node"];
    ensure!(node.is_string(), "the pod runs on a node: {:#}", answer["explained"]);
    ensure!(answer["refused"] == "NOT_FOUND", "an unknown cluster: {:#}", answer["refused"]);
    Ok(())
}

/// Runs the client as a user would, and reads what it prints.
fn ask(certificate: &Path, address: &str, pod: &str) -> Result<Value> {
    let root = Path::new(ROOT);
    let output = Command::new(binary::part_program("grpcio", "python")?)
        .arg(root.join("integration-tests/clients/ask.py"))
        .arg(root.join("proto"))
        .arg(certificate.parent().context("a file without a folder")?)
        .args([address, CLUSTER, pod])
        .output()?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "the client failed: {error}");
    serde_json::from_slice(&output.stdout).context("the client's answer is not JSON")
}
