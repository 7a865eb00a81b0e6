//! The rights in AWS that `longshore iam` gives an actuator.
//!
//! Invariant: as the program prints them.

use std::process::Command;

use anyhow::{Result, ensure};
use longshore_lab::region::ACCOUNT;
use serde_json::Value;

use crate::parts::binary::workspace_program;

/// The policy for some clusters, comma-separated, in the lab's account.
///
/// # Errors
/// When the program refuses.
pub fn policy(clusters: &str, flags: &[&str]) -> Result<Value> {
    let mut command = Command::new(workspace_program("longshore")?);
    command.args(["iam", "--account", ACCOUNT, "--cluster", clusters]).args(flags);
    let output = command.output()?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "longshore iam: {error}");
    Ok(serde_json::from_slice(&output.stdout)?)
}
