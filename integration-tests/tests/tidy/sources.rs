//! Rules about the text of a Rust source: its opening, its size, its exceptions.

use anyhow::{Context as _, Result};
use regex::Regex;

use super::{TextFile, expect_none, rust_files};

const FILE_LINES_MAX: usize = 400;
const FUNCTION_LINES_P95_MAX: usize = 30;
/// How many of the longest functions a failure shows.
const LONGEST_SHOWN: usize = 15;

#[test]
fn every_source_says_what_it_is_for() -> Result<()> {
    let silent = rust_files()?.into_iter().filter(|file| !file.text.starts_with("//!"));
    let breaches: Vec<String> = silent.map(|file| file.path).collect();
    expect_none(&breaches, "open the file with `//!`: what it is for, and its invariant");
    Ok(())
}

#[test]
fn sources_stay_small() -> Result<()> {
    let code = rust_files()?.into_iter().filter(|file| !is_test(&file.path));
    let lengths = code.map(|file| (without_tests(&file.text).lines().count(), file.path));
    let mut lengths: Vec<(usize, String)> = lengths.collect();
    lengths.sort_unstable();
    let (lines, path) = lengths.last().context("no source found; mend the rule")?;
    println!("size: {} files, the longest {path} with {lines} lines", lengths.len());
    let planner = lengths.iter().filter(|(_, path)| path.starts_with("scheduler/core/src/"));
    let lines: usize = planner.map(|(lines, _)| lines).sum();
    println!("size: {lines} lines in the planner, comments and blank ones too, tests not");
    let long = lengths.iter().filter(|(lines, _)| *lines > FILE_LINES_MAX);
    let breaches: Vec<String> = long.map(|(lines, path)| format!("{path}: {lines}")).collect();
    expect_none(&breaches, "split the file along what it decides; 400 lines is the limit");
    Ok(())
}

#[test]
fn functions_stay_short() -> Result<()> {
    let mut lengths = Vec::new();
    for file in rust_files()?.iter().filter(|file| !is_test(&file.path)) {
        lengths.extend(function_lengths(file)?);
    }
    lengths.sort_unstable();
    let (median, p95) = (percentile(&lengths, 50), percentile(&lengths, 95));
    let (most, name) = lengths.last().context("no function found; mend the rule")?;
    let count = lengths.len();
    println!(
        "size: {count} functions, median {median} lines, 95th percentile {p95}, the longest {name} {most}"
    );
    let longest = lengths.iter().rev().take(LONGEST_SHOWN);
    let breaches: Vec<String> = longest.map(|(lines, name)| format!("{name}: {lines}")).collect();
    let breaches = if p95 > FUNCTION_LINES_P95_MAX { breaches } else { Vec::new() };
    expect_none(&breaches, "these are the longest; shorten some until 95 of 100 have 30 lines");
    Ok(())
}

#[test]
fn exceptions_give_a_reason() -> Result<()> {
    let mut breaches = Vec::new();
    for file in rust_files()? {
        let found = unreasoned(&file.text)?;
        breaches.extend(found.into_iter().map(|it| format!("{}: {it}", file.path)));
    }
    let what_to_do = "write `reason = \"…\"` into it, for ignore `#[ignore = \"…\"]`";
    expect_none(&breaches, what_to_do);
    Ok(())
}

/// Whether a whole file is test code.
fn is_test(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/")
}

/// The text up to an inline test module.
fn without_tests(text: &str) -> &str {
    let start = text.find("#[cfg(test)]\nmod ").filter(|at| text[*at..].contains(" {\n"));
    &text[..start.unwrap_or(text.len())]
}

/// Length in lines and name of each function, for text as rustfmt leaves it: a body ends in the
/// first closing brace that is indented like its function, and what has no body in its head.
fn function_lengths(file: &TextFile) -> Result<Vec<(usize, String)>> {
    let head = Regex::new(r"^( *)(?:pub(?:\([^)]*\))? )?(?:const |async |extern )*fn (\w+)")?;
    let lines: Vec<&str> = without_tests(&file.text).lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let Some(parts) = head.captures(line) else { continue };
        let (end, head_end) = (format!("{}}}", &parts[1]), format!("{})", &parts[1]));
        let ends = |it: &str| it == end || (it.starts_with(&head_end) && it.ends_with(';'));
        let body = &lines[start..];
        let one_line = line.ends_with('}') || line.ends_with(';');
        let length = body.iter().position(|it| ends(it)).filter(|_| !one_line).unwrap_or(0);
        found.push((length + 1, format!("{}:{} {}", file.path, start + 1, &parts[2])));
    }
    Ok(found)
}

/// The length that `percent` of 100 functions do not exceed.
fn percentile(sorted: &[(usize, String)], percent: usize) -> usize {
    sorted.get((sorted.len() * percent).div_ceil(100).saturating_sub(1)).map_or(0, |it| it.0)
}

/// Attributes that switch something off without saying why.
fn unreasoned(text: &str) -> Result<Vec<String>> {
    let attribute = Regex::new(r"(?m)^\s*#!?\[(?:(?:allow|expect)\([^\]]*\)|ignore[^\]]*)\]")?;
    let found = attribute.find_iter(text).map(|it| it.as_str().trim());
    Ok(found.filter(|it| !it.contains(" = \"")).map(str::to_owned).collect())
}

#[test]
fn the_rules_see_what_they_are_for() -> Result<()> {
    let text = "fn short() {}\n\nimpl X {\n    pub async fn long(\n        &self,\n    ) -> u8 {\n        \
                if true {\n        }\n        1\n    }\n}\n";
    let file = TextFile { path: "x.rs".to_owned(), text: text.to_owned() };
    let expected = [(1, "x.rs:1 short".to_owned()), (7, "x.rs:4 long".to_owned())];
    assert_eq!(function_lengths(&file)?, expected);
    assert_eq!((percentile(&expected, 50), percentile(&expected, 95)), (1, 7));
    let heads =
        "trait Y {\n    fn head(\n        &self,\n    ) -> u8;\n    fn next(&self) {\n    }\n}\n";
    let file = TextFile { path: "y.rs".to_owned(), text: heads.to_owned() };
    let expected = [(3, "y.rs:2 head".to_owned()), (2, "y.rs:5 next".to_owned())];
    assert_eq!(function_lengths(&file)?, expected, "what has no body ends with its head");

    let with_tests = "fn code() {}\n#[cfg(test)]\nmod tests {\n    fn test() {}\n}\n";
    assert_eq!(without_tests(with_tests), "fn code() {}\n");
    let apart = "fn code() {}\n#[cfg(test)]\nmod tests;\n";
    assert_eq!(without_tests(apart), apart);
    assert!(
        is_test("core/src/pack/tests.rs") && is_test("core/tests/a.rs") && !is_test("tests.rs")
    );

    let silent = "#[ignore]\n    #[allow(dead_code)]\n#![expect(\n    clippy::all\n)]\n";
    assert_eq!(unreasoned(silent)?.len(), 3);
    let said = "#[ignore = \"slow\"]\n#[expect(\n    clippy::all,\n    reason = \"x\"\n)]\n";
    assert_eq!(unreasoned(said)?, Vec::<String>::new());
    Ok(())
}
