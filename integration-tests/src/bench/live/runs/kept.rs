//! Runs in the folders of their logs, for later documents and for `bench live --resume`.
//!
//! Invariant: what is taken was measured to its end and without a failure, and says of what commit
//! and on which machine.

use std::path::Path;

use anyhow::{Context as _, Result};

use super::Run;

const RUN: &str = "run.json";
const TIMELINE: &str = "timeline.json";

/// Keeps a run that has ended. Its figures are written last: without them it is none.
///
/// # Errors
/// When the folder cannot be written.
pub fn keep(dir: &Path, run: &Run) -> Result<()> {
    std::fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
    std::fs::write(dir.join(TIMELINE), serde_json::to_vec(&run.marks)?)?;
    std::fs::write(dir.join(RUN), serde_json::to_vec_pretty(run)?)?;
    Ok(())
}

/// All runs in the folders of a folder, in order of cases, whoever was measured and how often.
#[must_use]
pub fn all(keep: &Path) -> Vec<Run> {
    let dirs = std::fs::read_dir(keep).into_iter().flatten().flatten();
    let mut found: Vec<Run> = dirs.filter_map(|dir| find(&dir.path())).collect();
    found.sort_by_key(Run::turn);
    found
}

/// The run in a folder, unless it failed or was cut short.
fn find(dir: &Path) -> Option<Run> {
    let read = |name: &str| std::fs::read(dir.join(name)).ok();
    let run: Run = serde_json::from_slice(&read(RUN)?).ok()?;
    let marks = serde_json::from_slice(&read(TIMELINE)?).ok()?;
    let whole = run.error.is_none();
    whole.then_some(Run { marks, ..run })
}

#[cfg(test)]
mod tests {
    use super::super::super::args::{CaseName, Contender};
    use super::super::super::recorder::seen::{Mark, PodState, What};
    use super::super::super::results::Origin;
    use super::*;

    fn kept(error: Option<&str>) -> Run {
        let what = What::Pod { name: "a".to_owned(), is: PodState::Waiting };
        let origin = Origin::here();
        let begun = Run::begun((CaseName::One, 1, Contender::Longshore), &origin);
        let marks = vec![Mark { at_ms: 7, what }];
        Run { error: error.map(str::to_owned), marks, ..begun }
    }

    #[test]
    fn a_run_is_found_with_where_it_comes_from_unless_it_failed() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("one-longshore-1");
        assert!(find(&dir).is_none(), "none is there");
        keep(&dir, &kept(None)).unwrap();
        let found = find(&dir).unwrap();
        assert_eq!(found.origin, kept(None).origin);
        assert_eq!((found.case, found.number), (CaseName::One, 1));
        assert_eq!(found.marks, kept(None).marks);
        keep(&dir, &kept(Some("etcd ended"))).unwrap();
        assert!(find(&dir).is_none(), "it failed");
    }

    #[test]
    fn all_runs_are_found_in_order() {
        let dir = tempfile::tempdir().unwrap();
        assert!(all(&dir.path().join("none")).is_empty());
        for (name, number) in [("b", 1), ("a", 2)] {
            keep(&dir.path().join(name), &Run { number, ..kept(None) }).unwrap();
        }
        let numbers: Vec<u32> = all(dir.path()).iter().map(|run| run.number).collect();
        assert_eq!(numbers, [1, 2]);
    }

    #[test]
    fn a_run_that_was_cut_short_is_none() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(TIMELINE), "[]").unwrap();
        assert!(find(dir.path()).is_none());
        std::fs::write(dir.path().join(RUN), "{ \"machine\": ").unwrap();
        assert!(find(dir.path()).is_none());
    }
}
