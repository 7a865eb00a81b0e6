//! The command lines of the control plane's programs.
//!
//! Invariant: every limit on requests is far above what a test sends, so that what a test measures
//! is ours and not a default of theirs.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::Controllers;
use super::credentials::Credentials;
use crate::parts::binary::part_program;

/// kube-apiserver, with tokens and RBAC. Beyond loopback there may be pods that speak with it: they
/// get their accounts, and find it at the Service `kubernetes`.
pub(super) fn api_server(credentials: &Credentials, etcd: &[String]) -> Result<Command> {
    let address = credentials.address();
    let mut command = Command::new(part_program("kubernetes", "kube-apiserver")?);
    command.arg(format!("--etcd-servers={}", etcd.join(",")));
    command.arg(format!("--bind-address={}", address.ip()));
    command.arg(format!("--secure-port={}", address.port()));
    command.arg("--tls-cert-file").arg(credentials.server_cert());
    command.arg("--tls-private-key-file").arg(credentials.server_key());
    command.arg("--token-auth-file").arg(credentials.tokens());
    command.arg("--service-account-key-file").arg(credentials.account_public_key());
    command.arg("--service-account-signing-key-file").arg(credentials.account_key());
    command.arg(format!("--service-account-issuer={}", credentials.url()));
    command.args([
        "--service-cluster-ip-range=10.96.0.0/16",
        "--authorization-mode=RBAC,Node",
        "--enable-priority-and-fairness=false",
        "--max-requests-inflight=3000",
        "--max-mutating-requests-inflight=1500",
    ]);
    if address.ip().is_loopback() {
        command.args([
            // Pods are created without waiting for the default account of their namespace.
            "--disable-admission-plugins=ServiceAccount",
            "--endpoint-reconciler-type=none",
        ]);
    } else {
        command.arg(format!("--advertise-address={}", address.ip()));
        // Nobody resolves the names of nodes.
        command.arg("--kubelet-preferred-address-types=InternalIP");
    }
    Ok(command)
}

/// kube-scheduler with its stock plugins.
pub(super) fn scheduler(credentials: &Credentials, dir: &Path) -> Result<Command> {
    let config = dir.join("kube-scheduler.json");
    let content = serde_json::json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {
            "kubeconfig": credentials.admin_kubeconfig(),
            "qps": 1000,
            "burst": 2000,
        },
        "leaderElection": { "leaderElect": false },
    });
    fs::write(&config, serde_json::to_vec_pretty(&content)?)?;
    let mut command = Command::new(part_program("kubernetes", "kube-scheduler")?);
    command.arg("--config").arg(&config).arg("--secure-port=0");
    Ok(command)
}

/// kube-controller-manager.
pub(super) fn controller_manager(
    credentials: &Credentials,
    controllers: Controllers,
) -> Result<Command> {
    let mut command = Command::new(part_program("kubernetes", "kube-controller-manager")?);
    command.arg("--kubeconfig").arg(credentials.admin_kubeconfig());
    if !credentials.address().ip().is_loopback() {
        command.arg("--root-ca-file").arg(credentials.authority());
    }
    command.args([
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
        "--leader-elect=false",
        "--secure-port=0",
        // Kubelets share this machine's cores: that one is late says nothing about its node.
        "--node-monitor-grace-period=5m",
        "--node-startup-grace-period=5m",
    ]);
    if let Controllers::Only(one) = controllers {
        command.arg(format!("--controllers={one}"));
    }
    Ok(command)
}
