//! Seeds in processes of their own: what one leaves behind cannot reach the next, and all
//! processors have work.
//!
//! Invariant: outcomes come in the order of the seeds, whoever was done first; a child that crashes
//! is an outcome too.

use std::collections::{BTreeMap, VecDeque};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::args::How;
use crate::run::{Broken, Outcome};

/// Pause between two looks at the children.
const LOOK: Duration = Duration::from_millis(20);

/// Runs seeds, `jobs` at a time, and shows each outcome when its turn has come.
///
/// # Errors
/// When a child cannot be started.
pub fn run(
    seeds: impl IntoIterator<Item = u64>,
    how: &How,
    jobs: usize,
    mut show: impl FnMut(&Outcome) -> Going,
) -> Result<()> {
    let mut waiting: VecDeque<u64> = seeds.into_iter().collect();
    let mut order: VecDeque<u64> = waiting.clone();
    let mut running: Vec<(u64, Child, Instant)> = Vec::new();
    let mut done: BTreeMap<u64, Outcome> = BTreeMap::new();
    while !order.is_empty() {
        while running.len() < jobs.max(1) {
            let Some(seed) = waiting.pop_front() else { break };
            running.push((seed, start(seed, how)?, Instant::now()));
        }
        let mut still = Vec::new();
        for (seed, mut child, began) in running {
            match child.try_wait().context("waiting for a seed")? {
                Some(_) => drop(done.insert(seed, outcome(seed, child, began))),
                None => still.push((seed, child, began)),
            }
        }
        running = still;
        while let Some(outcome) = order.front().and_then(|seed| done.remove(seed)) {
            order.pop_front();
            if show(&outcome) == Going::Stop {
                waiting.clear();
                let begun: Vec<u64> = running.iter().map(|(seed, ..)| *seed).collect();
                order.retain(|seed| begun.contains(seed) || done.contains_key(seed));
            }
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

/// Whether further seeds are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Going {
    /// They are.
    On,
    /// No new seed is begun.
    Stop,
}

fn start(seed: u64, how: &How) -> Result<Child> {
    let program = std::env::current_exe().context("where this program is")?;
    Command::new(program)
        .args(["one", "--seed", &seed.to_string()])
        .args(how.to_arguments())
        // Errors are many here, and expected: nobody reads where each was made.
        .env("RUST_LIB_BACKTRACE", "0")
        // It lives for half a minute: memory that went back to the system would only be asked for
        // again, which takes a tenth of that time.
        .env("MIMALLOC_PURGE_DELAY", "-1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("starting a seed")
}

fn outcome(seed: u64, child: Child, began: Instant) -> Outcome {
    let crashed = |text: String| Outcome {
        seed,
        wall_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        violations: vec![Broken { rule: "crashed".to_owned(), text, ..Broken::default() }],
        ..Outcome::default()
    };
    let output = match child.wait_with_output() {
        Ok(output) => output,
        Err(error) => return crashed(error.to_string()),
    };
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| {
        let said = String::from_utf8_lossy(&output.stderr);
        let last: Vec<&str> = said.lines().rev().take(3).collect();
        crashed(format!("{}: {}", output.status, last.join(" | ")))
    })
}
