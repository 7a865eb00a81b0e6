//! Who may depend on whom. `deny.toml` guards the libraries of others; this guards our own crates,
//! and the purity of the planner.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use cargo_metadata::{DependencyKind, MetadataCommand};

use super::{expect_none, root, run};

/// For each of our crates, those of ours that it may use.
const MAY_USE: [(&str, &[&str]); 16] = [
    ("longshore-proto", &[]),
    ("longshore-planted", &[]),
    ("longshore-runtime", &["longshore-planted"]),
    ("longshore-authority", &["longshore-runtime"]),
    ("longshore-core", &["longshore-planted"]),
    ("longshore-ec2-data", &[]),
    ("longshore-scheduler", &["longshore-core", "longshore-proto", "longshore-runtime"]),
    ("longshore-watcher", &["longshore-proto", "longshore-runtime"]),
    ("longshore-manifests", &["longshore-proto", "longshore-watcher"]),
    ("longshore-actuator", &["longshore-ec2-data", "longshore-proto", "longshore-runtime"]),
    ("longshore-lab", &["longshore-ec2-data"]),
    ("longshore-standalone", &THE_THREE),
    ("longshore", &EVERY_PROGRAM),
    ("longshore-it", &EVERYTHING),
    ("longshore-sim", &SIMULATION),
    ("longshore-sim-entropy", &[]),
];

/// The services, and what is between them.
const THE_THREE: [&str; 4] =
    ["longshore-actuator", "longshore-runtime", "longshore-scheduler", "longshore-watcher"];

const EVERY_PROGRAM: [&str; 10] = [
    "longshore-actuator",
    "longshore-authority",
    "longshore-core",
    "longshore-ec2-data",
    "longshore-manifests",
    "longshore-proto",
    "longshore-runtime",
    "longshore-scheduler",
    "longshore-standalone",
    "longshore-watcher",
];

const SIMULATION: [&str; 11] = [
    "longshore-actuator",
    "longshore-core",
    "longshore-ec2-data",
    "longshore-lab",
    "longshore-planted",
    "longshore-proto",
    "longshore-runtime",
    "longshore-scheduler",
    "longshore-sim-entropy",
    "longshore-standalone",
    "longshore-watcher",
];

const EVERYTHING: [&str; 11] = [
    "longshore",
    "longshore-actuator",
    "longshore-authority",
    "longshore-core",
    "longshore-ec2-data",
    "longshore-lab",
    "longshore-manifests",
    "longshore-proto",
    "longshore-runtime",
    "longshore-scheduler",
    "longshore-watcher",
];

/// What a crate's tests may use besides.
const TESTS_MAY_USE: &str = "longshore-lab";

/// Everything that is linked into the planner: no runtime, no client, no clock, no randomness.
const CORE_LINKS: [&str; 6] =
    ["equivalent", "hashbrown", "indexmap", "longshore-planted", "serde_core", "thiserror"];

#[test]
fn our_crates_keep_their_places() -> Result<()> {
    let manifest = root().join("Cargo.toml");
    let metadata = MetadataCommand::new().manifest_path(manifest).no_deps().exec()?;
    let ours: BTreeSet<&str> = metadata.packages.iter().map(|it| it.name.as_str()).collect();
    let mut breaches = Vec::new();
    for package in &metadata.packages {
        let row = MAY_USE.iter().find(|(name, _)| *name == package.name.as_str());
        let (name, allowed) = row.with_context(|| format!("{} is in no row", package.name))?;
        let used = package.dependencies.iter().filter(|it| ours.contains(it.name.as_str()));
        for used in used {
            if !may_use(allowed, &used.name, used.kind) {
                breaches.push(format!("{name} depends on {}", used.name));
            }
        }
    }
    expect_none(&breaches, "move the code to where it may be, or argue for a new row in MAY_USE");
    Ok(())
}

#[test]
fn the_planner_links_nothing_that_could_do_io() -> Result<()> {
    let args =
        ["tree", "--package=longshore-core", "--edges=normal,no-proc-macro", "--prefix=none"];
    let tree = run(env!("CARGO"), &args)?;
    let names = tree.lines().filter_map(|line| line.split_whitespace().next());
    let linked: BTreeSet<&str> = names.filter(|name| *name != "longshore-core").collect();
    let allowed = BTreeSet::from(CORE_LINKS);
    let more = linked.difference(&allowed).map(|name| format!("{name} is linked into core"));
    let less = allowed.difference(&linked).map(|name| format!("{name} is not linked any more"));
    let breaches: Vec<String> = more.chain(less).collect();
    expect_none(&breaches, "drop the dependency; if it is pure, name it in CORE_LINKS");
    Ok(())
}

fn may_use(allowed: &[&str], used: &str, kind: DependencyKind) -> bool {
    allowed.contains(&used) || (kind == DependencyKind::Development && used == TESTS_MAY_USE)
}

#[test]
fn only_tests_may_use_the_lab() {
    assert!(may_use(&["a"], "a", DependencyKind::Normal));
    assert!(!may_use(&["a"], "b", DependencyKind::Normal));
    assert!(may_use(&[], TESTS_MAY_USE, DependencyKind::Development));
    assert!(!may_use(&[], TESTS_MAY_USE, DependencyKind::Normal));
}
