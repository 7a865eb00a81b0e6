//! Writing down what one user, and the chart's service account, ask of the API server.
//!
//! Invariant: requests of nobody else are written, so that nobody else is slowed down; of a request
//! its metadata alone, and nothing before there is an answer.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use serde_json::json;

use super::Observed;
use super::credentials::Credentials;

/// The user.
const USER: &str = "observed";
/// The service account that the chart makes for the watcher, under the name of its release.
pub const ACCOUNT: &str = "system:serviceaccount:kube-system:longshore";
/// How long a request may wait to be written.
const WRITTEN_WITHIN: &str = "1s";
/// Requests that may wait to be written: far more than arrive in the time of a write, as what does
/// not fit is lost.
const WAITING_MAX: u32 = 100_000;
/// Far above what is written: a log that is full would be continued in another file.
const FILE_MIB_MAX: u32 = 10_000;

/// Makes the user and the policy; for before the API server starts.
pub(super) fn observe(credentials: &Credentials, dir: &Path) -> Result<Observed> {
    let policy = json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [{ "level": "Metadata", "users": [USER, ACCOUNT] }, { "level": "None" }],
    });
    fs::write(policy_file(dir), serde_json::to_vec_pretty(&policy)?)?;
    let kubeconfig = credentials.add_user(USER)?;
    Ok(Observed { kubeconfig, log: dir.join("audit.jsonl") })
}

/// Flags of the API server that writes an observed user's requests down.
pub(super) fn add_flags(command: &mut Command, observed: Option<&Observed>, dir: &Path) {
    let Some(observed) = observed else { return };
    command.arg("--audit-policy-file").arg(policy_file(dir));
    command.arg("--audit-log-path").arg(&observed.log);
    command.arg("--audit-log-mode=batch");
    command.arg(format!("--audit-log-batch-max-wait={WRITTEN_WITHIN}"));
    command.arg(format!("--audit-log-batch-buffer-size={WAITING_MAX}"));
    command.arg(format!("--audit-log-maxsize={FILE_MIB_MAX}"));
}

fn policy_file(dir: &Path) -> PathBuf {
    dir.join("audit-policy.json")
}
