//! No orphan sources: rustc never compiles, and nobody misses, a file in no `mod` list.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use cargo_metadata::MetadataCommand;
use regex::Regex;

use super::{expect_none, root, rust_files};

#[test]
fn every_source_is_compiled() -> Result<()> {
    let top = root().canonicalize()?;
    let sources = rust_files()?;
    let known: BTreeSet<PathBuf> = sources.iter().map(|file| top.join(&file.path)).collect();

    let mut reached = BTreeSet::new();
    let mut open: Vec<(PathBuf, bool)> = crate_roots()?.into_iter().map(|it| (it, true)).collect();
    while let Some((file, is_root)) = open.pop() {
        let Ok(text) = std::fs::read_to_string(&file) else { continue };
        let children = children(&file, is_root, &text)?;
        open.extend(children.into_iter().filter(|it| known.contains(it)).map(|it| (it, false)));
        reached.insert(file);
    }
    ensure!(!reached.is_disjoint(&known), "no crate root found; mend the rule");
    let orphans: Vec<String> =
        known.difference(&reached).map(|it| it.display().to_string()).collect();
    expect_none(&orphans, "name the file in a `mod` line, or delete it");
    Ok(())
}

/// The first file of each library, program, test, benchmark, example and build script.
fn crate_roots() -> Result<Vec<PathBuf>> {
    let mut roots = Vec::new();
    for manifest in ["Cargo.toml", "fuzz/Cargo.toml"] {
        let manifest = root().join(manifest).canonicalize()?;
        let metadata = MetadataCommand::new().manifest_path(manifest).no_deps().exec()?;
        let targets = metadata.packages.iter().flat_map(|package| &package.targets);
        roots.extend(targets.map(|target| target.src_path.clone().into_std_path_buf()));
    }
    Ok(roots)
}

/// Where the modules that `text` names may be: beside a root or a `mod.rs`, below any other file.
fn children(file: &Path, is_root: bool, text: &str) -> Result<Vec<PathBuf>> {
    let line =
        Regex::new(r#"(?m)^\s*(?:#\[path = "([^"]+)"\]\s*)?(?:pub(?:\([^)]*\))? )?mod (\w+);"#)?;
    let dir = file.parent().unwrap_or(file);
    let stem = file.file_stem().unwrap_or_default();
    let own = if is_root || stem == "mod" { dir.to_owned() } else { dir.join(stem) };
    let mut found = Vec::new();
    for parts in line.captures_iter(text) {
        match parts.get(1) {
            Some(path) => found.push(dir.join(path.as_str())),
            None => {
                found.push(own.join(format!("{}.rs", &parts[2])));
                found.push(own.join(&parts[2]).join("mod.rs"));
            }
        }
    }
    Ok(found)
}

#[test]
fn module_lines_lead_to_files() -> Result<()> {
    let text = "pub mod one;\n#[cfg(test)]\nmod tests;\n#[path = \"far/two.rs\"]\nmod two;\nmod in_line {}\n";
    let paths = |file: &str, is_root| -> Result<Vec<String>> {
        let found = children(Path::new(file), is_root, text)?;
        Ok(found.into_iter().map(|it| it.display().to_string()).collect())
    };
    let beside = ["a/one.rs", "a/one/mod.rs", "a/tests.rs", "a/tests/mod.rs", "a/far/two.rs"];
    assert_eq!(paths("a/lib.rs", true)?, beside);
    assert_eq!(paths("a/mod.rs", false)?, beside);
    let below =
        ["a/b/one.rs", "a/b/one/mod.rs", "a/b/tests.rs", "a/b/tests/mod.rs", "a/far/two.rs"];
    assert_eq!(paths("a/b.rs", false)?, below);
    Ok(())
}
