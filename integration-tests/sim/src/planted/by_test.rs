//! Tests that find planted defects: each must be green as it is, and red with its defect.
//!
//! Invariant: a test that is not run fails the command, and one that stays green counts as missing.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::{By, PLANTED};

/// Which tests are built: all of these at once, so that every crate has the simulation's features,
/// of which `planted` is one.
const BUILT: [&str; 7] =
    ["test", "--workspace", "--no-fail-fast", "--lib", "--test=planner", "--test=watcher", "--"];
/// Where a test reads which defect it is to meet.
const NAMES: &str = "LONGSHORE_PLANTED";

/// What came of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Colour {
    Green,
    Red,
}

/// Runs the test of each planted defect that has one, without and with it; the number of those that
/// do not find theirs.
///
/// # Errors
/// When a test cannot be run.
#[allow(clippy::print_stdout, reason = "the report is what the command is for")]
pub fn run(only: &[String]) -> Result<usize> {
    let (mut red, mut missing) = (0, 0);
    let wanted = |name: &str| only.is_empty() || only.iter().any(|one| one == name);
    for (name, what, by) in PLANTED.iter().filter(|(name, ..)| wanted(name)) {
        let By::Test(test) = by else { continue };
        let verdict = match (colour(test, "")?, colour(test, name)?) {
            (Colour::Green, Colour::Red) => "red, as it must be",
            (Colour::Green, Colour::Green) => "GREEN with the defect",
            (Colour::Red, _) => "RED WITHOUT the defect",
        };
        println!("{name}: {test}: {verdict}: {what}");
        let finds = verdict.starts_with("red");
        red += usize::from(finds);
        missing += usize::from(!finds);
    }
    println!("{red} found by their tests, {missing} missing");
    Ok(missing)
}

fn colour(test: &str, defect: &str) -> Result<Colour> {
    let output = Command::new("cargo")
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .args(BUILT)
        .arg(test)
        .env(NAMES, defect)
        .output()
        .context("running cargo test")?;
    let said = String::from_utf8_lossy(&output.stdout);
    let ran = said.lines().any(|line| line.starts_with("test ") && line.contains(test));
    let why = String::from_utf8_lossy(&output.stderr);
    ensure!(ran, "test {test} was not run:\n{why}");
    Ok(if output.status.success() { Colour::Green } else { Colour::Red })
}
