//! Documents keep their word: the commands they name exist, and their links lead somewhere.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use cargo_metadata::MetadataCommand;
use regex::Regex;

use super::{TextFile, expect_none, files, root, text_files};

#[test]
fn make_targets_that_documents_name_exist() -> Result<()> {
    let makefile = std::fs::read_to_string(root().join("Makefile"))?;
    let targets = targets(&makefile)?;
    let mut named = 0;
    let mut breaches = Vec::new();
    for file in documents()? {
        for target in make_commands(&file.text)? {
            named += 1;
            if !targets.contains(&target) {
                breaches.push(format!("{}: make {target}", file.path));
            }
        }
    }
    ensure!(named > 0, "no document names a make target; mend the rule");
    expect_none(&breaches, "add the target to the Makefile, or mend the document");
    Ok(())
}

#[test]
fn cargo_commands_that_documents_name_exist() -> Result<()> {
    let manifest = root().join("Cargo.toml");
    let metadata = MetadataCommand::new().manifest_path(manifest).no_deps().exec()?;
    let packages = metadata.packages.iter().map(|package| package.name.as_str());
    let targets = metadata.packages.iter().flat_map(|package| &package.targets);
    let known: BTreeSet<&str> = packages.chain(targets.map(|it| it.name.as_str())).collect();
    let mut breaches = Vec::new();
    for file in documents()? {
        let names = cargo_names(&file.text)?.into_iter();
        let unknown = names.filter(|name| !known.contains(name.as_str()));
        breaches.extend(unknown.map(|name| format!("{}: cargo … {name}", file.path)));
    }
    expect_none(&breaches, "name a package or target of the workspace");
    Ok(())
}

#[test]
fn links_between_documents_lead_somewhere() -> Result<()> {
    let mut breaches = Vec::new();
    for file in documents()? {
        let path = root().join(&file.path);
        let dir = path.parent().unwrap_or(&path);
        let dead = links(&file.text)?.into_iter().filter(|link| !dir.join(link).exists());
        breaches.extend(dead.map(|link| format!("{}: {link}", file.path)));
    }
    expect_none(&breaches, "mend the link, or add what it leads to");
    Ok(())
}

#[test]
fn files_that_documents_name_exist() -> Result<()> {
    let all = files()?;
    let mut breaches = Vec::new();
    for file in documents()? {
        let unknown = paths(&file.text)?.into_iter().filter(|path| !is_there(path, &all));
        breaches.extend(unknown.map(|path| format!("{}: {path}", file.path)));
    }
    expect_none(&breaches, "name a file of the repository, by its name or the end of its path");
    Ok(())
}

/// True when a path is a file's or the end of one, or one without its extension.
fn is_there(path: &str, all: &[String]) -> bool {
    all.iter().any(|file| {
        let stem = file.rsplit_once('.').map_or(file.as_str(), |(stem, _)| stem);
        let ends = |whole: &str| whole == path || whole.ends_with(&format!("/{path}"));
        ends(file)
            || (path.contains('/')
                && (ends(stem) || format!("/{file}").contains(&format!("/{path}/"))))
    })
}

fn documents() -> Result<Vec<TextFile>> {
    text_files(|path| path.ends_with(".md"))
}

fn targets(makefile: &str) -> Result<BTreeSet<String>> {
    let line = Regex::new(r"(?m)^([a-z][a-z -]*):")?;
    let names = line
        .captures_iter(makefile)
        .flat_map(|parts| parts[1].split(' ').map(str::to_owned).collect::<Vec<_>>());
    Ok(names.collect())
}

/// Targets named in code: `make x` between backticks, or at the start of a line of a code block.
fn make_commands(text: &str) -> Result<Vec<String>> {
    let command = Regex::new(r"(?m)(?:`|^\s*\$? ?)make ([a-z][a-z-]*)(?:`|\s|$)")?;
    let mut in_block = false;
    let mut found = Vec::new();
    for line in text.lines() {
        in_block ^= line.trim_start().starts_with("```");
        let code = in_block || line.starts_with("    ") || line.contains('`');
        let commands = command.captures_iter(line).filter(|_| code);
        found.extend(commands.map(|parts| parts[1].to_owned()));
    }
    Ok(found)
}

/// Packages and targets that cargo's options name.
fn cargo_names(text: &str) -> Result<Vec<String>> {
    let option = Regex::new(r"(?:-p|--package|--bin|--bench|--example|--test)[ =]([a-z][\w-]*)")?;
    let lines = text.lines().filter(|line| line.contains("cargo "));
    let found = lines.flat_map(|line| option.captures_iter(line));
    Ok(found.map(|parts| parts[1].to_owned()).collect())
}

/// Sources and documents between backticks, and modules of the planner and of sessions.
fn paths(text: &str) -> Result<Vec<String>> {
    let path = Regex::new(
        r"`([\w./-]+\.(?:rs|proto|toml|md)|(?:pack|place|offers|answer|bound|topology|disrupt|explain|model|session)/[\w/]+)`",
    )?;
    let found = path.captures_iter(text).map(|parts| parts[1].to_owned());
    Ok(found.filter(|path| !path.contains("NNNN")).collect())
}

/// Targets of relative links, without their anchors.
fn links(text: &str) -> Result<Vec<String>> {
    let link = Regex::new(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")?;
    Ok(link.captures_iter(text).map(|parts| parts[1].to_owned()).collect())
}

#[test]
fn commands_and_links_are_found() -> Result<()> {
    let text = "Run `make one`.\n\n    make two\n\n```\n$ make three  # now\n```\nThat will make sense.\n\
                [a](b/c.md#d) [e](https://f) [g](#h)\n";
    assert_eq!(make_commands(text)?, ["one", "two", "three"]);
    assert_eq!(cargo_names("`cargo test -p one --test two`\n-p three")?, ["one", "two"]);
    assert_eq!(links(text)?, ["b/c.md"]);
    let named = paths("`a/b.rs` `pack/lp` `docs/NNNN-name.md` `c.d`")?;
    assert_eq!(named, ["a/b.rs", "pack/lp"]);
    let all = ["x/pack/lp.rs".to_owned(), "y/a/b.rs".to_owned()];
    assert!(named.iter().all(|path| is_there(path, &all)) && !is_there("b", &all));
    let makefile = "one two: three ## x\n\techo a:\nTHREE := 1\nfour:\n";
    assert_eq!(targets(makefile)?.into_iter().collect::<Vec<_>>(), ["four", "one", "two"]);
    Ok(())
}
