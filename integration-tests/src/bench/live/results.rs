//! What the runs on real control planes have measured.
//!
//! Invariant: a run that failed is a result too, as far as it came. Written down, a run has its
//! figures; what they were made of stays where it was measured.

use serde::{Deserialize, Serialize};

use super::args::{CaseName, Contender};
use super::figures::Played;
use super::recorder::seen::Mark;
use super::script::told::Told;
use crate::bench::machine;

/// Which run: its case, its number from 1, and who is measured.
pub type Turn = (CaseName, u32, Contender);

/// What was measured, and on what.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Origin {
    /// The commit, as it was before documents were written.
    pub commit: String,
    /// The machine.
    pub machine: String,
    /// Whether it was built for release.
    pub release: bool,
}

/// A run.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Run {
    /// What happened.
    pub case: CaseName,
    /// To whom.
    pub contender: Contender,
    /// Which of the runs, from 1.
    pub number: u32,
    /// Of what, and where.
    #[serde(flatten)]
    pub origin: Origin,
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

impl Origin {
    /// What this program is built of and runs on.
    #[must_use]
    pub fn here() -> Self {
        let release = !cfg!(debug_assertions);
        Self { commit: machine::commit(), machine: machine::describe(), release }
    }
}

impl Run {
    /// A run in which nothing has happened yet.
    #[must_use]
    pub fn begun((case, number, contender): Turn, origin: &Origin) -> Self {
        let (phases, told, marks) = (Vec::new(), Vec::new(), Vec::new());
        let origin = origin.clone();
        Self { case, contender, number, origin, phases, told, error: None, marks }
    }

    /// Which run it is.
    #[must_use]
    pub const fn turn(&self) -> Turn {
        (self.case, self.number, self.contender)
    }
}

/// Everything that was measured.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Results {
    /// All runs, in order of cases.
    pub runs: Vec<Run>,
}

impl Results {
    /// Adds a run, in the place of the same one measured before. What was measured of the case on
    /// another machine goes: medians are of one.
    pub fn put(&mut self, run: Run) {
        let elsewhere = |other: &Run| other.origin.machine != run.origin.machine;
        self.runs.retain(|other| {
            other.turn() != run.turn() && (other.case != run.case || !elsewhere(other))
        });
        self.runs.push(run);
        self.runs.sort_by_key(Run::turn);
    }

    /// The cases that were measured, in order.
    #[must_use]
    pub fn cases(&self) -> Vec<CaseName> {
        let mut names: Vec<CaseName> = self.runs.iter().map(|run| run.case).collect();
        names.dedup();
        names
    }

    /// The runs of a case, when what they were made of is at hand for all that did not fail.
    #[must_use]
    pub fn drawable(&self, case: CaseName) -> Option<Vec<&Run>> {
        let of_case: Vec<&Run> = self.runs.iter().filter(|run| run.case == case).collect();
        let at_hand = |run: &&Run| !run.marks.is_empty() || run.error.is_some();
        of_case.iter().all(at_hand).then_some(of_case)
    }

    /// What was measured and where, each with its cases, in order of cases.
    #[must_use]
    pub fn origins(&self) -> Vec<(&Origin, Vec<CaseName>)> {
        let mut found: Vec<(&Origin, Vec<CaseName>)> = Vec::new();
        for run in &self.runs {
            match found.iter_mut().find(|(origin, _)| **origin == run.origin) {
                Some((_, cases)) if cases.contains(&run.case) => {}
                Some((_, cases)) => cases.push(run.case),
                None => found.push((&run.origin, vec![run.case])),
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::super::recorder::seen::{PodState, What};
    use super::*;

    fn origin(commit: &str, machine: &str) -> Origin {
        Origin { commit: commit.to_owned(), machine: machine.to_owned(), release: true }
    }

    fn run(case: CaseName, number: u32, origin: &Origin) -> Run {
        Run::begun((case, number, Contender::Longshore), origin)
    }

    fn results<const N: usize>(runs: [(CaseName, u32, &Origin); N]) -> Results {
        let mut results = Results::default();
        runs.into_iter().for_each(|(case, number, origin)| results.put(run(case, number, origin)));
        results
    }

    #[test]
    fn runs_are_in_order_and_the_newest_of_two_counts() {
        let (old, new) = (origin("a", "m"), origin("b", "m"));
        let results = results([
            (CaseName::Drip, 1, &old),
            (CaseName::One, 2, &old),
            (CaseName::One, 1, &old),
            (CaseName::Drip, 1, &new),
        ]);
        let order: Vec<_> = results.runs.iter().map(|run| (run.case, run.number)).collect();
        assert_eq!(order, [(CaseName::One, 1), (CaseName::One, 2), (CaseName::Drip, 1)]);
        let origins = [(&old, vec![CaseName::One]), (&new, vec![CaseName::Drip])];
        assert_eq!(results.origins(), origins);
    }

    #[test]
    fn a_case_is_of_one_machine() {
        let (here, there) = (origin("a", "here"), origin("a", "there"));
        let results = results([
            (CaseName::One, 1, &here),
            (CaseName::Drip, 1, &here),
            (CaseName::Drip, 2, &here),
            (CaseName::Drip, 1, &there),
        ]);
        let origins = [(&here, vec![CaseName::One]), (&there, vec![CaseName::Drip])];
        assert_eq!((results.runs.len(), results.origins()), (2, origins.into()));
    }

    #[test]
    fn what_is_read_again_has_figures_and_is_not_drawn() {
        let what = What::Pod { name: "a".to_owned(), is: PodState::Waiting };
        let marks = vec![Mark { at_ms: 7, what }];
        let runs = vec![Run { marks, ..run(CaseName::One, 1, &origin("a", "m")) }];
        let results = Results { runs };
        assert_eq!(results.drawable(CaseName::One).map(|runs| runs.len()), Some(1));
        let text = serde_json::to_string(&results).unwrap();
        let again: Results = serde_json::from_str(&text).unwrap();
        assert_eq!(again.origins(), results.origins());
        assert!(again.drawable(CaseName::One).is_none());
    }
}
