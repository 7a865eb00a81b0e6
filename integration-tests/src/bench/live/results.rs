//! What the runs on real control planes have measured.
//!
//! Invariant: a run that failed is a result too, as far as it came.

use serde::{Deserialize, Serialize};

use super::args::{CaseName, Contender};
use super::figures::Played;
use super::recorder::seen::Mark;
use super::script::told::Told;

/// A run.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Run {
    /// What happened.
    pub case: CaseName,
    /// To whom.
    pub contender: Contender,
    /// Which of the runs, from 1.
    pub number: u32,
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

/// Everything that was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Results {
    /// The commit, as it was before documents were written.
    pub commit: String,
    /// The machine.
    pub machine: String,
    /// All runs.
    pub runs: Vec<Run>,
}
