//! What `longshore doctor --takeover` says, run as a user runs it.
//!
//! Invariant: it reads; what it says is held against what then happens.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use longshore_it::parts::binary::workspace_program;
use longshore_lab::region::CLUSTER;
use serde_json::Value;

use super::estate::{Estate, NODES};

/// Exit code of a report with something that needs attention.
const ATTENTION: i32 = 3;

/// Karpenter runs, its nodes would be taken over, that of the first API would not.
pub async fn beside_karpenter(estate: &Estate) -> Result<()> {
    std::fs::write(estate.around.dir.join("doctor.txt"), text(estate).await?)?;
    let (code, report) = report(estate).await?;
    ensure!(code == ATTENTION, "exit code {code}: {report:#}");
    ensure!(report["karpenter"].as_array().is_some_and(|it| it.len() == 1), "{report:#}");
    ensure!(report["unread"] == serde_json::json!([]), "not all was read: {report:#}");
    rows(&report)
}

/// Nothing has become different by the takeover but that Karpenter is gone.
pub async fn afterwards(estate: &Estate) -> Result<()> {
    let (_, report) = report(estate).await?;
    ensure!(report["karpenter"] == serde_json::json!([]), "{report:#}");
    rows(&report)
}

fn rows(report: &Value) -> Result<()> {
    let rows: Vec<&Value> = report["rows"].as_array().into_iter().flatten().collect();
    let starts = |row: &Value, kind: &str| {
        row["object"].as_str().is_some_and(|object| object.starts_with(kind))
    };
    let of = |kind: &'static str| rows.iter().filter(move |row| starts(row, kind));
    let claims = of("NodeClaim/").filter(|row| row["verdict"] == "adopted").count();
    ensure!(claims >= NODES, "{claims} claims are taken over: {report:#}");
    ensure!(of("NodeClaim/").all(|row| row["verdict"] == "adopted"), "{report:#}");
    let alone: Vec<_> = of("Node/").collect();
    ensure!(alone.len() == 1 && alone[0]["verdict"] == "left-alone", "{alone:#?}");
    let why = alone[0]["why"].as_str().unwrap_or_default();
    ensure!(why.contains("first API"), "{why}");
    Ok(())
}

async fn report(estate: &Estate) -> Result<(i32, Value)> {
    let output = run(estate, &["--output", "json"]).await?;
    let text = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    let report = serde_json::from_str(&text).with_context(|| format!("{text}{error}"))?;
    Ok((output.status.code().context("killed")?, report))
}

async fn text(estate: &Estate) -> Result<String> {
    let output = run(estate, &[]).await?;
    let error = String::from_utf8_lossy(&output.stderr);
    Ok(format!("{}{error}", String::from_utf8_lossy(&output.stdout)))
}

async fn run(estate: &Estate, flags: &[&str]) -> Result<std::process::Output> {
    let around = &estate.around;
    let mut command = Command::new(workspace_program("longshore")?);
    command
        .args(["doctor", "--takeover", "--cluster-name", CLUSTER, "--region", &around.region])
        .args(flags)
        .arg("--kubeconfig")
        .arg(&around.kubeconfig)
        .env("AWS_ENDPOINT_URL", &around.region_url)
        .env("AWS_ACCESS_KEY_ID", &around.access_key)
        .env("AWS_SECRET_ACCESS_KEY", "lab")
        .env_remove("AWS_PROFILE");
    Ok(tokio::task::spawn_blocking(move || command.output()).await??)
}
