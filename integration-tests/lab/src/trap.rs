//! A wall clock that panics once, for whoever asks it in a named place: how a test brings about a
//! panic in one loop of a service that runs as it is.
//!
//! Invariant: whoever asks elsewhere is told the time. A trap that has sprung tells the time
//! everywhere.

use std::backtrace::Backtrace;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;

/// A clock with a trap. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Trap(Arc<Mutex<Option<String>>>);

impl Trap {
    /// Sets the trap for the next one who asks in a function whose path contains `place`.
    pub fn set(&self, place: &str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(place.to_owned());
    }

    /// True until somebody has panicked.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// What a panic in `place` says.
    #[must_use]
    pub fn cry(place: &str) -> String {
        format!("a trap in {place}")
    }

    /// Milliseconds since 1970.
    ///
    /// # Panics
    /// Once, where the trap is set.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        self.tread();
        Timestamp::now().as_millisecond()
    }

    /// For clocks that tell another time: called before they do.
    ///
    /// # Panics
    /// Once, where the trap is set.
    #[expect(clippy::panic, reason = "it is what the trap is for")]
    pub fn tread(&self) {
        if let Some(place) = self.sprung() {
            panic!("{}", Self::cry(&place));
        }
    }

    /// Takes the trap away.
    pub fn disarm(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The place, when this call comes from there; then the trap is no longer set.
    fn sprung(&self) -> Option<String> {
        let place = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        // Outside the lock: it takes a while to name all callers.
        if !Backtrace::force_capture().to_string().contains(&place) {
            return None;
        }
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked_here(trap: &Trap) -> bool {
        let asked = std::panic::AssertUnwindSafe(|| trap.now_ms());
        std::panic::catch_unwind(asked).is_err()
    }

    #[test]
    fn it_panics_once_and_only_there() {
        let trap = Trap::default();
        assert!(!asked_here(&trap));
        trap.set("trap::tests::nowhere");
        assert!(!asked_here(&trap) && trap.is_set());
        trap.set("trap::tests::asked_here");
        assert!(asked_here(&trap) && !trap.is_set());
        assert!(!asked_here(&trap));
    }
}
