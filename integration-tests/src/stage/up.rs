//! `longshore up` as a process: watcher, scheduler and actuator in one.
//!
//! Invariant: it is started as a pod starts it, but for where AWS is and for its kubeconfig.
//! Without the name of a region it has to learn it from the nodes.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::services::Surroundings;
use crate::parts::Process;
use crate::parts::binary::workspace_command;

/// How long it may take to say where it serves.
const START_LIMIT: Duration = Duration::from_secs(60);
/// What it logs before the address of its metrics.
const METRICS: &str = "serving metrics and health address=";

/// The command, for a copy of this identity.
///
/// # Errors
/// When the program has not been built.
pub fn command(identity: &str, around: &Surroundings) -> Result<Command> {
    let any_port = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
    let mut command = workspace_command("longshore")?;
    command
        .args(["up", "--cluster-name", &around.cluster, "--interruption-queue", &around.queue])
        .args(["--identity", identity, "--metrics-listen", &any_port.to_string()])
        .args(["--listen", &any_port.to_string()])
        .arg("--kubeconfig")
        .arg(&around.kubeconfig)
        .env("AWS_ENDPOINT_URL", &around.region_url)
        .env("AWS_ACCESS_KEY_ID", &around.access_key)
        .env("AWS_SECRET_ACCESS_KEY", "lab")
        .env_remove("AWS_PROFILE")
        .env_remove("AWS_REGION")
        .env_remove("LONGSHORE_REGION");
    if !around.region.is_empty() {
        command.args(["--region", &around.region]);
    }
    Ok(command)
}

/// Where its metrics are, once it says so.
///
/// # Errors
/// When it ends, or does not say it in time.
pub async fn metrics(process: &mut Process) -> Result<SocketAddr> {
    let line = process.wait_for_line(METRICS, START_LIMIT).await?;
    address(&line, METRICS)
}

/// The address that stands in a line of a log after these words.
///
/// # Errors
/// When there is none.
pub fn address(line: &str, after: &str) -> Result<SocketAddr> {
    let text = line.split(after).nth(1).unwrap_or_default();
    let text = text.split_whitespace().next().unwrap_or_default();
    text.parse().with_context(|| format!("no address in {line:?}"))
}
