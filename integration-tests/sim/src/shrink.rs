//! Fewer faults, the same rule broken: what a person has to look at.
//!
//! Invariant: only leaves faults out; each step is a run of its own.

use anyhow::{Result, bail};

use crate::args::How;
use crate::children::{self, Going};
use crate::run::Outcome;

/// The faults of a seed that are left when no more can be left out, and what they bring about.
///
/// # Errors
/// When the seed breaks no rule, or a child cannot be started.
pub fn shrink(seed: u64, how: &How, mut said: impl FnMut(&str)) -> Result<(How, Outcome)> {
    let mut best = one(seed, how)?;
    let Some(rule) = best.violations.first().map(|broken| broken.rule.clone()) else {
        bail!("seed {seed} breaks no rule: there is nothing to shrink");
    };
    let mut how = how.clone();
    let count = usize::try_from(best.faults.values().sum::<u64>()).unwrap_or_default();
    let mut left: Vec<usize> =
        (0..count + how.skip.len()).filter(|number| !how.skip.contains(number)).collect();
    let mut part = left.len().div_ceil(2).max(1);
    while !left.is_empty() {
        let before = left.len();
        let mut from = 0;
        while from < left.len() {
            let without: Vec<usize> = left.iter().skip(from).take(part).copied().collect();
            let mut trial = how.clone();
            trial.skip.extend(&without);
            let outcome = one(seed, &trial)?;
            if outcome.violations.iter().any(|broken| broken.rule == rule) {
                left.retain(|number| !without.contains(number));
                said(&format!("{} faults left", left.len()));
                (how, best) = (trial, outcome);
            } else {
                from += part;
            }
        }
        if part == 1 && left.len() == before {
            break;
        }
        part = part.div_ceil(2).max(1).min(left.len().max(1));
    }
    Ok((how, best))
}

fn one(seed: u64, how: &How) -> Result<Outcome> {
    let mut found = Outcome::default();
    children::run([seed], how, 1, |outcome| {
        found = outcome.clone();
        Going::On
    })?;
    Ok(found)
}
