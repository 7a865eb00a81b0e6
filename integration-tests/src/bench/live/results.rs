//! What the runs on real control planes have measured.
//!
//! Invariant: a run that failed is a result too, as far as it came.

use serde::{Deserialize, Serialize};

use super::args::{CaseName, Contender};
use super::figures::Played;
use super::recorder::seen::Mark;
use super::script::told::Told;

/// Which run: its case, its number from 1, and who is measured.
pub type Turn = (CaseName, u32, Contender);

/// A run.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Run {
    /// What happened.
    pub case: CaseName,
    /// To whom.
    pub contender: Contender,
    /// Which of the runs, from 1.
    pub number: u32,
    /// Of what commit, as it was before documents were written.
    #[serde(default)]
    pub commit: String,
    /// Its phases, as far as it came.
    pub phases: Vec<Played>,
    /// What the contender told its users.
    #[serde(default)]
    pub told: Vec<Told>,
    /// Why it ended early.
    pub error: Option<String>,
    /// Everything that happened.
    #[serde(skip)]
    pub marks: Vec<Mark>,
}

impl Run {
    /// A run in which nothing has happened yet.
    #[must_use]
    pub fn begun((case, number, contender): Turn, commit: &str) -> Self {
        let (phases, told, marks) = (Vec::new(), Vec::new(), Vec::new());
        let commit = commit.to_owned();
        Self { case, contender, number, commit, phases, told, error: None, marks }
    }

    /// Which run it is.
    #[must_use]
    pub const fn turn(&self) -> Turn {
        (self.case, self.number, self.contender)
    }
}

/// Everything that was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Results {
    /// The machine.
    pub machine: String,
    /// All runs, in order of cases.
    pub runs: Vec<Run>,
}

impl Results {
    /// Adds a run, in the place of the same one measured before.
    pub fn put(&mut self, run: Run) {
        self.runs.retain(|other| other.turn() != run.turn());
        self.runs.push(run);
        self.runs.sort_by_key(Run::turn);
    }

    /// The commits that were measured, each with its cases, in order of cases.
    #[must_use]
    pub fn commits(&self) -> Vec<(&str, Vec<CaseName>)> {
        let mut found: Vec<(&str, Vec<CaseName>)> = Vec::new();
        for run in &self.runs {
            match found.iter_mut().find(|(commit, _)| *commit == run.commit) {
                Some((_, cases)) if cases.contains(&run.case) => {}
                Some((_, cases)) => cases.push(run.case),
                None => found.push((&run.commit, vec![run.case])),
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(case: CaseName, number: u32, commit: &str) -> Run {
        Run::begun((case, number, Contender::Longshore), commit)
    }

    #[test]
    fn runs_are_in_order_and_the_newest_of_two_counts() {
        let mut results = Results { machine: String::new(), runs: Vec::new() };
        results.put(run(CaseName::Drip, 1, "a"));
        results.put(run(CaseName::One, 2, "a"));
        results.put(run(CaseName::One, 1, "a"));
        results.put(run(CaseName::Drip, 1, "b"));
        let order: Vec<_> = results.runs.iter().map(|run| (run.case, run.number)).collect();
        assert_eq!(order, [(CaseName::One, 1), (CaseName::One, 2), (CaseName::Drip, 1)]);
        let commits = [("a", vec![CaseName::One]), ("b", vec![CaseName::Drip])];
        assert_eq!(results.commits(), commits);
    }
}
