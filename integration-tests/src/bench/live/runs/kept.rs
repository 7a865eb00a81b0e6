//! Runs in the folders of their logs, from which a later `bench live --resume` takes them.
//!
//! Invariant: what is taken was measured of the same commit on the same machine, to its end and
//! without a failure. Whatever else is found is measured again.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::{Results, Run};

const RUN: &str = "run.json";
const TIMELINE: &str = "timeline.json";

/// A run, and of what and where it was measured.
#[derive(Deserialize, Serialize)]
struct Kept {
    commit: String,
    machine: String,
    run: Run,
}

/// Keeps a run that has ended. Its figures are written last: without them it is none.
///
/// # Errors
/// When the folder cannot be written.
pub fn keep(dir: &Path, run: &Run, results: &Results) -> Result<()> {
    std::fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
    std::fs::write(dir.join(TIMELINE), serde_json::to_vec(&run.marks)?)?;
    let Results { commit, machine, .. } = results;
    let kept = Kept { commit: commit.clone(), machine: machine.clone(), run: run.clone() };
    std::fs::write(dir.join(RUN), serde_json::to_vec_pretty(&kept)?)?;
    Ok(())
}

/// The run in a folder, when it is of use beside these results.
#[must_use]
pub fn find(dir: &Path, results: &Results) -> Option<Run> {
    let Kept { commit, machine, run } = read(dir)?;
    let same = commit == results.commit && machine == results.machine;
    (same && run.error.is_none()).then_some(run)
}

/// Of what commit, and on which machine, the run in a folder was measured.
#[must_use]
pub fn origin(dir: &Path) -> Option<(String, String)> {
    let Kept { commit, machine, .. } = read(dir)?;
    Some((commit, machine))
}

fn read(dir: &Path) -> Option<Kept> {
    let read = |name: &str| std::fs::read(dir.join(name)).ok();
    let kept: Kept = serde_json::from_slice(&read(RUN)?).ok()?;
    let marks = serde_json::from_slice(&read(TIMELINE)?).ok()?;
    Some(Kept { run: Run { marks, ..kept.run }, ..kept })
}

#[cfg(test)]
mod tests {
    use super::super::super::args::{CaseName, Contender};
    use super::super::super::recorder::seen::{Mark, PodState, What};
    use super::*;

    fn run(error: Option<&str>) -> Run {
        let what = What::Pod { name: "a".to_owned(), is: PodState::Waiting };
        Run {
            case: CaseName::One,
            contender: Contender::Longshore,
            number: 1,
            phases: Vec::new(),
            told: Vec::new(),
            error: error.map(str::to_owned),
            marks: vec![Mark { at_ms: 7, what }],
        }
    }

    fn results(commit: &str, machine: &str) -> Results {
        Results { commit: commit.to_owned(), machine: machine.to_owned(), runs: Vec::new() }
    }

    #[test]
    fn a_run_is_taken_where_commit_and_machine_are_the_same_and_it_did_not_fail() {
        let dir = tempfile::tempdir().unwrap();
        let (dir, here) = (dir.path().join("one-longshore-1"), results("c", "m"));
        assert!(find(&dir, &here).is_none(), "none is there");
        keep(&dir, &run(None), &here).unwrap();
        let found = find(&dir, &here).unwrap();
        assert_eq!((found.case, found.number), (CaseName::One, 1));
        assert_eq!(found.marks, run(None).marks);
        for other in [results("c-dirty", "m"), results("c", "n")] {
            assert!(find(&dir, &other).is_none(), "{} {}", other.commit, other.machine);
        }
        keep(&dir, &run(Some("etcd ended")), &here).unwrap();
        assert!(find(&dir, &here).is_none(), "it failed");
    }

    #[test]
    fn a_run_that_was_cut_short_is_measured_again() {
        let (dir, here) = (tempfile::tempdir().unwrap(), results("c", "m"));
        std::fs::write(dir.path().join(TIMELINE), "[]").unwrap();
        assert!(find(dir.path(), &here).is_none());
        std::fs::write(dir.path().join(RUN), "{ \"commit\": ").unwrap();
        assert!(find(dir.path(), &here).is_none());
    }
}
