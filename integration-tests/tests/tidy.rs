//! House rules that a linter does not know.
//!
//! Invariant: a rule is a pure function over text with an example that breaks it; its test applies
//! it to the repository, and ends in what to do when it fails.

mod agreement;
mod dependencies;
mod documents;
mod lint_settings;
mod modules;
mod names;
mod repository;
mod rooms;
mod simulation;
mod sources;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Top of the checkout.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A file of the repository that holds text.
struct TextFile {
    /// From the top of the checkout, with `/`.
    path: String,
    text: String,
}

/// Paths, from the top of the checkout, of all files that are or would be committed.
fn files() -> Result<Vec<String>> {
    let list = run("git", &["ls-files", "--cached", "--others", "--exclude-standard"])?;
    Ok(list.lines().filter(|path| root().join(path).is_file()).map(str::to_owned).collect())
}

/// All text files whose path satisfies `wanted`.
fn text_files(wanted: impl Fn(&str) -> bool) -> Result<Vec<TextFile>> {
    let mut found = Vec::new();
    for path in files()?.into_iter().filter(|path| wanted(path)) {
        let bytes = fs::read(root().join(&path)).with_context(|| format!("cannot read {path}"))?;
        if let Ok(text) = String::from_utf8(bytes) {
            found.push(TextFile { path, text });
        }
    }
    ensure!(!found.is_empty(), "no file to look at; run this in a git checkout");
    Ok(found)
}

/// All Rust sources.
fn rust_files() -> Result<Vec<TextFile>> {
    text_files(|path| path.ends_with(".rs"))
}

/// What a command prints when run at the top of the checkout.
fn run(program: &str, args: &[&str]) -> Result<String> {
    let output = Command::new(program).args(args).current_dir(root()).output()?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program} {}: {error}", args.join(" "));
    Ok(String::from_utf8(output.stdout)?)
}

/// Fails with all `breaches` of a rule and what to do about them.
#[track_caller]
fn expect_none(breaches: &[String], what_to_do: &str) {
    let list = breaches.join("\n  ");
    assert!(breaches.is_empty(), "\n  {list}\n{} in all. To do: {what_to_do}\n", breaches.len());
}
