//! The node that is no simulation.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::PostParams;
use longshore_it::parts::node::{Machine, NAME, Node, PAUSE};
use longshore_it::parts::{ControlPlane, ControlPlaneOptions, poll};
use serde_json::json;

/// Longest on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a machine of its own: make install-test"]
async fn a_pod_runs_on_the_real_node() -> Result<()> {
    let machine = Machine::own()?;
    let options =
        ControlPlaneOptions { address: machine.address, ..ControlPlaneOptions::default() };
    let plane = ControlPlane::start(options).await?;
    let _node = Node::start(&machine, &plane, "test.longshore.dev/node=real").await?;
    let pods: Api<Pod> = Api::default_namespaced(plane.client());
    let pod = serde_json::from_value(json!({
        "metadata": { "name": "idle" },
        "spec": {
            "tolerations": [{ "key": "CriticalAddonsOnly", "operator": "Exists" }],
            "nodeSelector": { "test.longshore.dev/node": "real" },
            "containers": [{
                "name": "idle",
                "image": PAUSE,
                "resources": { "limits": { "cpu": "50m", "memory": "32Mi" } },
                "securityContext": {
                    "allowPrivilegeEscalation": false,
                    "capabilities": { "drop": ["ALL"] },
                    "readOnlyRootFilesystem": true,
                    "runAsNonRoot": true,
                    "runAsUser": 65_532,
                    "seccompProfile": { "type": "RuntimeDefault" },
                },
            }],
        },
    }))?;
    pods.create(&PostParams::default(), &pod).await?;
    poll::until("the pod runs", LIMIT, || async {
        let pod = pods.get("idle").await?;
        let status = pod.status.unwrap_or_default();
        ensure!(status.phase.as_deref() == Some("Running"), "{status:?}");
        ensure!(pod.spec.is_some_and(|spec| spec.node_name.as_deref() == Some(NAME)), "elsewhere");
        ensure!(status.pod_ip.is_some(), "it has no address");
        Ok(())
    })
    .await
}
