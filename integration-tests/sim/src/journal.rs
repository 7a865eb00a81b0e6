//! What happened, in order, for people to read and machines to compare.
//!
//! Invariant: one seed and one build write the same journal, byte for byte; lines carry simulated
//! time and nothing of the machine.

use std::hash::{DefaultHasher, Hasher as _};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

use crate::clock::WallClock;

/// Lines kept; older ones only count in the digest.
const LINES_MAX: usize = 200_000;

#[derive(Default)]
struct State {
    lines: Vec<String>,
    hasher: DefaultHasher,
    notes: u64,
}

/// The journal of a run. Clones write into the same one.
#[derive(Clone)]
pub struct Journal {
    state: Arc<Mutex<State>>,
    clock: WallClock,
}

impl Journal {
    /// An empty journal.
    #[must_use]
    pub fn new(clock: WallClock) -> Self {
        Self { state: Arc::default(), clock }
    }

    /// Writes a line of the world's own.
    pub fn note(&self, text: &str) {
        let line = format!("{} * {text}", self.stamp());
        self.write(line);
    }

    /// The present, since the beginning: `mm:ss.mmm`.
    #[must_use]
    pub fn stamp(&self) -> String {
        stamp(self.clock.elapsed_ms())
    }

    /// Milliseconds since the beginning.
    #[must_use]
    pub fn elapsed_ms(&self) -> i64 {
        self.clock.elapsed_ms()
    }

    /// Digest of all lines so far, and their number.
    #[must_use]
    pub fn digest(&self) -> (u64, u64) {
        let state = self.lock();
        (state.hasher.finish(), state.notes)
    }

    /// The lines.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.lock().lines.clone()
    }

    fn write(&self, line: String) {
        let mut state = self.lock();
        state.hasher.write(line.as_bytes());
        state.notes += 1;
        if state.lines.len() < LINES_MAX {
            state.lines.push(line);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Simulated time as people read it.
#[must_use]
pub fn stamp(elapsed_ms: i64) -> String {
    let (minutes, rest) = (elapsed_ms / 60_000, elapsed_ms % 60_000);
    format!("{minutes:02}:{:02}.{:03}", rest / 1000, rest % 1000)
}

/// Lets the services' own log lines come into the journal.
impl<'a> MakeWriter<'a> for Journal {
    type Writer = Line;

    fn make_writer(&'a self) -> Line {
        Line { journal: self.clone(), text: Vec::new() }
    }
}

impl FormatTime for Journal {
    fn format_time(&self, writer: &mut Writer<'_>) -> std::fmt::Result {
        write!(writer, "{}", self.stamp())
    }
}

/// A line under way.
pub struct Line {
    journal: Journal,
    text: Vec<u8>,
}

impl io::Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let text = String::from_utf8_lossy(&self.text);
        text.lines().for_each(|line| self.journal.write(line.to_owned()));
    }
}
