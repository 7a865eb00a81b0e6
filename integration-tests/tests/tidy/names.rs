//! The page that holds our conditions and Events beside Karpenter's says what the code does.

use anyhow::{Result, ensure};
use regex::Regex;

use super::{TextFile, expect_none, root, rust_files};

const PAGE: &str = "docs/karpenter-names.md";
/// Where names are written from, and where they are only named.
const PROGRAMS: [&str; 3] = ["watcher/src/", "scheduler/src/", "actuator/src/"];
const NAMED_ONLY: &str = "watcher/src/api/";

/// A row: what Karpenter has, and what is written of it.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    theirs: String,
    ours: Ours,
}

#[derive(Debug, PartialEq, Eq)]
enum Ours {
    /// The same name.
    Same,
    /// Another.
    Named(String),
    /// Nothing.
    None,
}

#[test]
fn conditions_and_events_are_those_that_the_page_names() -> Result<()> {
    let rows = rows(&std::fs::read_to_string(root().join(PAGE))?);
    ensure!(rows.len() > 40, "{PAGE} has {} rows; mend the rule", rows.len());
    let sources = rust_files()?;
    let programs = sources.iter().filter(|file| {
        PROGRAMS.iter().any(|program| file.path.starts_with(program))
            && !file.path.contains("/tests")
    });
    let programs: Vec<_> = programs.collect();
    let mut breaches = Vec::new();
    for Row { theirs, ours } in &rows {
        let holds = match ours {
            Ours::Same => is_written(theirs, &programs)?,
            Ours::Named(name) => {
                is_written(name, &programs)?
                    && (theirs.is_empty() || !is_written(theirs, &programs)?)
            }
            Ours::None => !is_written(theirs, &programs)?,
        };
        if !holds {
            breaches.push(format!("{PAGE}: {theirs} {ours:?}"));
        }
    }
    expect_none(&breaches, "say in the page what the code writes, or the other way round");
    Ok(())
}

/// Whether a program writes a name: it spells it out, or uses the constant that it is the value of.
/// A constant that only stands among the names is nobody's.
fn is_written(name: &str, programs: &[&TextFile]) -> Result<bool> {
    let literal = format!("\"{name}\"");
    let (named, writers): (Vec<&TextFile>, Vec<&TextFile>) =
        programs.iter().partition(|file| file.path.starts_with(NAMED_ONLY));
    let use_it = |word: &Regex| writers.iter().any(|file| word.is_match(&file.text));
    if writers.iter().any(|file| file.text.contains(&literal)) {
        return Ok(true);
    }
    let constant = Regex::new(&format!(r"const (\w+): &str =\s+{literal};"))?;
    for file in named {
        for definition in constant.captures_iter(&file.text) {
            if use_it(&Regex::new(&format!(r"\b{}\b", &definition[1]))?) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Rows of the tables: the second and third column, names in back ticks.
fn rows(page: &str) -> Vec<Row> {
    let lines = page.lines().filter(|line| line.starts_with("| "));
    let rows = lines.filter_map(|line| {
        let mut cells = line.split('|').map(str::trim).skip(2);
        let (theirs, ours) = (cells.next()?, cells.next()?);
        let name = |cell: &str| cell.strip_prefix('`')?.split('`').next().map(str::to_owned);
        let ours = match ours {
            "same" => Ours::Same,
            "none" => Ours::None,
            other => Ours::Named(name(other)?),
        };
        Some(Row { theirs: name(theirs).unwrap_or_default(), ours })
    });
    rows.collect()
}

#[test]
fn a_constant_that_nobody_uses_is_not_written() -> Result<()> {
    let file = |path: &str, text: &str| TextFile { path: path.to_owned(), text: text.to_owned() };
    let names =
        "const A: &str = \"One\";\nconst B: &str = \"Two\";\nconst C: &str =\n    \"Four\";";
    let files = [
        file("watcher/src/api/keys.rs", names),
        file("watcher/src/report.rs", "say(conditions::A); say(\"Three\"); say(C)"),
    ];
    let files: Vec<&TextFile> = files.iter().collect();
    let names = ["One", "Two", "Three", "Four", "Five"];
    let written: Vec<bool> =
        names.iter().map(|name| is_written(name, &files)).collect::<Result<_>>()?;
    assert_eq!(written, [true, false, true, true, false]);
    Ok(())
}

#[test]
fn rows_are_read() {
    let page = "| about | Karpenter | Longshore | x |\n|---|---|---|---|\n| pod | `A` | same | |\n\
                | pod | `B` | `C` | |\n| pod | - | `D` | |\n| pod | `E` | none | |\n";
    let row = |theirs: &str, ours| Row { theirs: theirs.to_owned(), ours };
    let expected = [
        row("A", Ours::Same),
        row("B", Ours::Named("C".to_owned())),
        row("", Ours::Named("D".to_owned())),
        row("E", Ours::None),
    ];
    assert_eq!(rows(page), expected);
}
