//! A crate's own `clippy.toml` replaces the root's: it must repeat what the root says.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use regex::Regex;

use super::{expect_none, text_files};

#[test]
fn every_clippy_file_repeats_the_roots_values() -> Result<()> {
    let files = text_files(|path| path.ends_with("clippy.toml"))?;
    let wanted: BTreeSet<String> = files
        .iter()
        .filter(|it| it.path == "clippy.toml")
        .flat_map(|it| values(&it.text))
        .collect();
    ensure!(!wanted.is_empty(), "the root's clippy.toml says nothing; mend the rule");
    let mut breaches = Vec::new();
    for file in &files {
        let said: BTreeSet<String> = values(&file.text).collect();
        let missing = wanted.difference(&said);
        breaches.extend(missing.map(|it| format!("{} lacks {it}", file.path)));
    }
    expect_none(&breaches, "copy the line from the root's clippy.toml");
    Ok(())
}

/// Crates with lints of their own: the one function that stands for libc's cannot be written
/// without `unsafe`, which the workspace forbids for good.
const OWN_LINTS: [&str; 1] = ["integration-tests/sim/entropy/Cargo.toml"];

#[test]
fn every_crate_takes_the_workspace_lints() -> Result<()> {
    let takes = Regex::new(r"(?m)^\[lints\]\nworkspace = true$")?;
    let manifests = text_files(|path| path.ends_with("/Cargo.toml"))?;
    // A crate outside the workspace, for builds that nothing else wants, cannot take what it says.
    let members = manifests.into_iter().filter(|it| !it.text.contains("\n[workspace]\n"));
    let members = members.filter(|it| !OWN_LINTS.contains(&it.path.as_str()));
    let own = members.filter(|it| !takes.is_match(&it.text)).map(|it| it.path);
    expect_none(
        &own.collect::<Vec<_>>(),
        "write `[lints]` and `workspace = true` into the manifest",
    );
    Ok(())
}

/// Settings, and the standard library's banned paths (a crate need not ban what it cannot reach).
fn values(text: &str) -> impl Iterator<Item = String> + '_ {
    text.lines().filter_map(|line| {
        let setting = !line.starts_with(['#', ' ', ']']) && line.contains(" = ");
        match line.split_once("path = \"std::") {
            Some((_, path)) => path.split('"').next().map(|path| format!("std::{path}")),
            None => (setting && !line.ends_with('[')).then(|| line.to_owned()),
        }
    })
}

#[test]
fn values_are_settings_and_bans() {
    let text = "# a = 1\nlines = 50\nlist = [\n    { path = \"std::env::var\", reason = \"x\" },\n    \
                { path = \"tokio::spawn\" },\n]\n";
    assert_eq!(values(text).collect::<Vec<_>>(), ["lines = 50", "std::env::var"]);
}
