//! Where programs are: the installed parts, and those of this workspace.
//!
//! Invariant: a path that is returned names a file that exists; a missing one is an error that says
//! which command makes it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

/// Top of the checkout.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Path of `program` in the installed `part`, both as named in `tools/parts/versions`
/// (`part_program("kubernetes", "kubectl")`).
///
/// # Errors
/// When there is no such part, or it is not installed.
pub fn part_program(part: &str, program: &str) -> Result<PathBuf> {
    let setup = Path::new(ROOT).join("tools/setup.sh");
    let output = Command::new(&setup)
        .args(["--dir", part])
        .output()
        .with_context(|| format!("cannot run {}", setup.display()))?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    let dir = PathBuf::from(String::from_utf8(output.stdout)?.trim());
    if !dir.join(".complete").exists() {
        bail!("{part} is not installed in {}; run `tools/setup.sh {part}`", dir.display());
    }
    existing(dir.join("bin").join(program), "name a program that the part has")
}

/// Path of a program of this workspace (`workspace_program("longshore-watcher")`): beside the
/// running one, so that a test or the demo uses what was built with it.
///
/// # Errors
/// When the program has not been built.
pub fn workspace_program(name: &str) -> Result<PathBuf> {
    let own = std::env::current_exe().context("cannot tell where the running program is")?;
    let dir = own.ancestors().skip(1).find(|dir| !dir.ends_with("deps"));
    let dir = dir.context("the running program is in no folder")?;
    existing(dir.join(name), "run `cargo build --workspace --all-targets`")
}

/// A command that starts such a program as the chart does: with the same word to its allocator.
///
/// # Errors
/// When the program has not been built.
pub fn workspace_command(name: &str) -> Result<Command> {
    let mut command = Command::new(workspace_program(name)?);
    if ["longshore", "longshore-watcher"].contains(&name) {
        command.env("MIMALLOC_PURGE_DELAY", "0");
    }
    Ok(command)
}

fn existing(path: PathBuf, way_out: &str) -> Result<PathBuf> {
    ensure!(path.exists(), "{} is not there; {way_out}", path.display());
    Ok(path)
}
