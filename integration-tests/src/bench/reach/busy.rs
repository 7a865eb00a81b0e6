//! The walkthrough W2 of two shapes, whose pods are pinned, on a machine that is busy with other
//! things.
//!
//! Invariant: each run is the test itself, started anew; a run counts when the test holds, and a
//! run that does not says why.

use std::hint::black_box;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::BusyArgs;
use super::quantity::Quantity;
use crate::bench::numbers::{count, float};
use crate::bench::tell;
use crate::parts::Process;

/// The test.
const TEST: &str = "walkthrough::shapes::walkthrough_w2_of_two_shapes";
/// What it prints of the places that were taken as planned.
const PLACES: &str = "pods run where planned";

/// Most characters of an error that a line of the table has room for.
const ERROR_SHOWN: usize = 300;

/// Runs the walkthrough again and again beside busy loops.
///
/// # Errors
/// When the test cannot be built or a busy loop does not start.
pub async fn measure(args: &BusyArgs) -> Result<Vec<Quantity>> {
    let test = test_program()?;
    let dir = tempfile::tempdir()?;
    let spin = |number: u32| {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["reach", "spin"]);
        Process::start(&format!("spin-{number}"), command, dir.path())
    };
    let _loops: Vec<Process> = (0..args.loops).map(spin).collect::<Result<_>>()?;
    let mut broken = Vec::new();
    for number in 1..=args.runs {
        let run = tokio::process::Command::new(&test)
            .args(["--exact", TEST, "--nocapture"])
            .output()
            .await?;
        let text = [run.stdout, run.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        ensure!(text.contains("running 1 test"), "{test} has no test {TEST}");
        let told = told(&text, run.status.success());
        tell(&format!("busy: run {number} of {}: {told}", args.runs));
        if !run.status.success() {
            broken.push(format!("run {number}: {told}"));
        }
    }
    let name = format!("runs of W2 beside {} busy loops that do not hold", args.loops);
    let held = count(args.runs as usize - broken.len());
    let detail = [vec![format!("{held} of {} hold", args.runs)], broken.clone()].concat();
    let measured = float(count(broken.len()));
    Ok(vec![Quantity::new(name, "", measured, (0.0, 0.0)).with(detail.join("; "), args.runs > 0)])
}

/// The program with all integration tests, built if need be.
fn test_program() -> Result<String> {
    let built = Command::new("cargo")
        .args(["test", "--workspace", "--test", "main", "--no-run", "--message-format=json"])
        .current_dir(crate::stage::world::ROOT)
        .output()?;
    ensure!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let text = String::from_utf8(built.stdout)?;
    let messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let of_ours = |message: &Value| {
        message["package_id"].as_str().is_some_and(|id| id.contains("longshore-it"))
            || message["manifest_path"]
                .as_str()
                .is_some_and(|path| path.contains("integration-tests/Cargo"))
    };
    let found = messages
        .filter(|message| message["target"]["name"] == "main" && of_ours(message))
        .find_map(|message| message["executable"].as_str().map(str::to_owned));
    found.context("cargo names no program with the integration tests")
}

/// What a run says of its places, and what broke it.
fn told(text: &str, held: bool) -> String {
    let places = text.lines().find(|line| line.contains(PLACES)).unwrap_or("no places counted");
    if held {
        return places.trim().to_owned();
    }
    let error = text.lines().find(|line| line.starts_with("Error:") || line.contains("panicked"));
    let error: String = error.unwrap_or("it says no error").chars().take(ERROR_SHOWN).collect();
    format!("{}; {error}", places.trim())
}

/// Keeps a processor busy until the process is ended.
pub fn spin() -> ! {
    let mut number = 0_u64;
    loop {
        number = black_box(number.wrapping_mul(31).wrapping_add(7));
    }
}
