//! Rules that keep the simulation honest: services take nothing from thin air, no queue of theirs
//! grows without end, and each defect that the code can commit again is one that the simulation
//! knows.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use regex::Regex;

use super::{TextFile, expect_none, rust_files};

/// Where the services' code lies.
const SERVICES: [&str; 5] =
    ["scheduler/src/", "watcher/src/", "actuator/src/", "runtime/src/", "cli/standalone/src/"];
/// What takes time, randomness, threads or sockets from thin air.
const THIN_AIR: &str = r"SystemTime::now|Timestamp::now\(|std::time::Instant|rand::rng\(|rand::random|thread_rng|spawn_blocking|std::thread::|Uuid::new_v4|TcpStream::connect|TcpListener::bind|(Platform|Entropy|Clock)::system\(";
/// Where the world outside is taken in, once, to be handed down; and AWS's clients, which a
/// simulation does without.
const EDGES: [&str; 10] = [
    "runtime/src/clock.rs",
    "runtime/src/entropy.rs",
    "runtime/src/net.rs",
    "runtime/src/platform.rs",
    "runtime/src/process.rs",
    "runtime/src/server.rs",
    "runtime/src/workers.rs",
    "watcher/src/args.rs",
    "watcher/src/service.rs",
    "actuator/src/ec2/client.rs",
];
/// Queues without an end: what comes faster than it goes fills the memory.
const ENDLESS: &str = r"\bunbounded(_channel)?(::<.*>)?\(|\bUnbounded(Sender|Receiver)\b";
/// Where the simulation lists what can be planted.
const LIST: &str = "integration-tests/sim/src/planted.rs";

#[test]
fn services_take_nothing_from_thin_air() -> Result<()> {
    let breaches = in_services(THIN_AIR, &EDGES)?;
    let what_to_do =
        "take it from the Platform that the Supervisor carries, so that a simulation can stand in";
    expect_none(&breaches, what_to_do);
    Ok(())
}

#[test]
fn queues_of_services_have_an_end() -> Result<()> {
    let breaches = in_services(ENDLESS, &[])?;
    expect_none(&breaches, "give the channel a size, and say what happens when it is full");
    Ok(())
}

#[test]
fn the_simulation_knows_each_planted_defect() -> Result<()> {
    let committed = Regex::new(r#"planted::is\("([A-Za-z0-9]+)"\)"#)?;
    let listed = Regex::new(r#"\(\s*"(S[A-Za-z0-9]+)","#)?;
    let files = rust_files()?;
    let list = files.iter().find(|file| file.path == LIST).context("the list has moved")?;
    let listed = names(&listed, &list.text);
    let all = files.iter().filter(|file| file.path != LIST && !is_test(&file.path));
    let committed: BTreeSet<String> = all.flat_map(|file| names(&committed, &file.text)).collect();
    let differences: Vec<String> = listed.symmetric_difference(&committed).cloned().collect();
    expect_none(
        &differences,
        "planted::is in the code and PLANTED of the simulation must name the same",
    );
    Ok(())
}

#[test]
fn each_test_that_finds_a_planted_defect_is_there() -> Result<()> {
    let named = Regex::new(r#"By::Test\(\s*"([a-z0-9_]+)""#)?;
    let files = rust_files()?;
    let list = files.iter().find(|file| file.path == LIST).context("the list has moved")?;
    let named = names(&named, &list.text);
    anyhow::ensure!(!named.is_empty(), "the pattern finds nothing in {LIST}");
    let is_there = |name: &String| {
        let head = format!("fn {name}()");
        files.iter().any(|file| file.path != LIST && file.text.contains(&head))
    };
    let gone: Vec<String> = named.iter().filter(|name| !is_there(name)).cloned().collect();
    expect_none(&gone, "PLANTED of the simulation names tests: name the one that took its place");
    Ok(())
}

/// Places of a pattern in what services ship, but for some files.
fn in_services(pattern: &str, but_for: &[&str]) -> Result<Vec<String>> {
    let pattern = Regex::new(pattern)?;
    let code = |file: &&TextFile| {
        SERVICES.iter().any(|folder| file.path.starts_with(folder))
            && !but_for.contains(&file.path.as_str())
            && !is_test(&file.path)
    };
    Ok(rust_files()?.iter().filter(code).flat_map(|file| found(&pattern, file)).collect())
}

/// Places of a pattern outside test modules and comments.
fn found(pattern: &Regex, file: &TextFile) -> Vec<String> {
    let code = file.text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let lines = code.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"));
    let hits = lines.filter(|(_, line)| pattern.is_match(line));
    hits.map(|(number, line)| format!("{}:{}: {}", file.path, number + 1, line.trim())).collect()
}

fn names(pattern: &Regex, text: &str) -> BTreeSet<String> {
    pattern.captures_iter(text).map(|found| found[1].to_owned()).collect()
}

/// Whether a whole file is test code.
fn is_test(path: &str) -> bool {
    path.ends_with("tests.rs")
        || path.contains("/tests/")
        || path.ends_with("testing.rs")
        || path.contains("/simulated")
}

#[test]
fn the_patterns_find_what_they_are_for() -> Result<()> {
    let breaks = |pattern: &str, line: &str| -> Result<usize> {
        let text = format!("fn a() {{ {line} }}\n#[cfg(test)]\nmod tests {{ {line} }}\n");
        let file = TextFile { path: "a.rs".to_owned(), text };
        Ok(found(&Regex::new(pattern)?, &file).len())
    };
    assert_eq!(breaks(THIN_AIR, "let now = jiff::Timestamp::now();")?, 1);
    assert_eq!(breaks(ENDLESS, "let (to, from) = mpsc::unbounded_channel::<Vec<u8>>();")?, 1);
    assert_eq!(breaks(ENDLESS, "let (to, from) = mpsc::channel(8);")?, 0);
    Ok(())
}
