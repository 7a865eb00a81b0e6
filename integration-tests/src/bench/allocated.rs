//! What a piece of work allocates.
//!
//! Invariant: only the bench program counts, in counters of the working thread, so that counting
//! costs next to nothing; in other programs the numbers are zero.

use alloc_tracker::Session;

/// Bytes of one piece of work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allocated {
    /// All that was asked for.
    pub total: u64,
    /// The most that was held at once.
    pub peak: u64,
}

/// Does work of one thread and counts.
pub fn allocated<T>(work: impl FnOnce() -> T) -> (T, Allocated) {
    let session = Session::new().no_stdout().no_file();
    let span = session.operation("work").measure_thread();
    let done = work();
    drop(span.iterations(1));
    let report = session.to_report();
    let counted = report.operations().next().map(|(_, counted)| Allocated {
        total: counted.total_bytes_allocated(),
        peak: counted.peak_outstanding_bytes().map_or(0, whole),
    });
    (done, counted.unwrap_or_default())
}

/// The number of bytes, which is reported as a mean over the one piece of work.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of bytes")]
const fn whole(bytes: f64) -> u64 {
    bytes as u64
}
