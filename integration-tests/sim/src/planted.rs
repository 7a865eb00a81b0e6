//! The defects that once were, and which seed finds each.
//!
//! Invariant: the list names every defect that the code can commit again (a test compares); one that is
//! not found within the given seeds fails the command.

use anyhow::Result;
use serde_json::json;

use crate::args::{How, Output};
use crate::children::{self, Going};
use crate::run::Outcome;

/// Names under which defects are planted, each with what it was.
pub const PLANTED: &[(&str, &str)] = &[];

/// Looks for each planted defect; the number of those that were not found.
///
/// # Errors
/// When a child cannot be started.
#[allow(clippy::print_stdout, reason = "the report is what the command is for")]
pub fn find(
    within: u64,
    only: &[String],
    how: &How,
    (output, jobs): (Output, usize),
) -> Result<usize> {
    let mut rows = Vec::new();
    let wanted = |name: &str| only.is_empty() || only.iter().any(|one| one == name);
    for (name, what) in PLANTED.iter().filter(|(name, _)| wanted(name)) {
        let mut planted = how.clone();
        planted.plant.push((*name).to_owned());
        let mut found: Option<Outcome> = None;
        children::run(0..within, &planted, jobs, |outcome| {
            if found.is_none() && !outcome.violations.is_empty() {
                found = Some(outcome.clone());
            }
            if found.is_some() { Going::Stop } else { Going::On }
        })?;
        let first =
            found.as_ref().and_then(|outcome| Some((outcome.seed, outcome.violations.first()?)));
        if output == Output::Text {
            println!(
                "{}",
                match &first {
                    Some((seed, broken)) => format!("{name}: seed {seed}: {}: {what}", broken.rule),
                    None => format!("{name}: not found within {within} seeds: {what}"),
                }
            );
        }
        rows.push(json!({
            "name": name,
            "what": what,
            "seed": first.as_ref().map(|(seed, _)| seed),
            "rule": first.as_ref().map(|(_, broken)| &broken.rule),
        }));
    }
    let missing = rows.iter().filter(|row| row["seed"].is_null()).count();
    if output == Output::Json {
        println!("{}", serde_json::to_string_pretty(&rows)?);
    }
    Ok(missing)
}
