//! Looking for the first seed that finds a planted defect.
//!
//! Invariant: a seed counts only when the rule that it breaks with the defect stays whole without
//! it.

use anyhow::Result;
use serde_json::json;

use super::{By, Hunt, PLANTED};
use crate::args::{How, Output};
use crate::children::{self, Going};
use crate::run::Broken;

/// What a seed has found.
struct Find {
    seed: u64,
    broken: Broken,
}

/// Looks for each planted defect; the number of those that were not found.
///
/// # Errors
/// When a child cannot be started.
#[allow(clippy::print_stdout, reason = "the report is what the command is for")]
pub fn find(within: u64, only: &[String], (output, jobs): (Output, usize)) -> Result<usize> {
    let mut rows = Vec::new();
    let wanted = |name: &str| only.is_empty() || only.iter().any(|one| one == name);
    for (name, what, by) in PLANTED.iter().filter(|(name, ..)| wanted(name)) {
        let found = match by {
            By::Seed(hunt) => first_seed(name, within, *hunt, jobs)?,
            By::Test(_) => None,
        };
        if output == Output::Text {
            println!("{name}: {}: {what}", finder(*by, within, found.as_ref()));
        }
        rows.push(json!({
            "name": name,
            "what": what,
            "test": match by { By::Test(test) => Some(test), By::Seed(_) => None },
            "seed": found.as_ref().map(|found| found.seed),
            "rule": found.as_ref().map(|found| &found.broken.rule),
            "text": found.as_ref().map(|found| &found.broken.text),
        }));
    }
    let count = |found: &str| rows.iter().filter(|row| !row[found].is_null()).count();
    let (seeds, tests) = (count("seed"), count("test"));
    let missing = rows.len() - seeds - tests;
    match output {
        Output::Json => println!("{}", serde_json::to_string_pretty(&rows)?),
        Output::Text => {
            println!("{seeds} found by the simulation, {tests} by tests, {missing} missing");
        }
    }
    Ok(missing)
}

fn finder(by: By, within: u64, found: Option<&Find>) -> String {
    match (by, found) {
        (By::Test(test), _) => format!("found by the test {test}"),
        (By::Seed(_), Some(Find { seed, broken })) => {
            format!("seed {seed}: {} ({})", broken.rule, broken.text)
        }
        (By::Seed(_), None) => format!("not found within {within} seeds"),
    }
}

impl Hunt {
    /// The run in which it is looked for, with these defects.
    fn how(self, planted: &[&str]) -> How {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        How {
            minutes: self.minutes,
            clusters: self.clusters,
            pods: self.pods,
            skip: Vec::new(),
            faults: owned(self.faults),
            calm: false,
            settling: false,
            standalone: false,
            plant: owned(planted),
        }
    }
}

/// The first seed that breaks a rule with a defect planted, and not without it.
fn first_seed(name: &str, within: u64, hunt: Hunt, jobs: usize) -> Result<Option<Find>> {
    let planted: Vec<&str> = hunt.with.iter().copied().chain([name]).collect();
    let (with, without) = (hunt.how(&planted), hunt.how(hunt.with));
    let seeds: Vec<u64> = (0..within).collect();
    for seeds in seeds.chunks(jobs.max(1)) {
        let mut broken = Vec::new();
        children::run(seeds.iter().copied(), &with, jobs, |outcome| {
            broken.extend((!outcome.violations.is_empty()).then(|| outcome.clone()));
            Going::On
        })?;
        for outcome in broken {
            let mut innocent = Vec::new();
            children::run([outcome.seed], &without, 1, |without| {
                innocent = without.violations.iter().map(|broken| broken.rule.clone()).collect();
                Going::On
            })?;
            let seed = outcome.seed;
            let mut rules = outcome.violations.into_iter();
            if let Some(broken) = rules.find(|broken| !innocent.contains(&broken.rule)) {
                return Ok(Some(Find { seed, broken }));
            }
        }
    }
    Ok(None)
}
