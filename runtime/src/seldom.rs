//! What may happen often and is said now and then.
//!
//! Invariant: whoever makes something happen a thousand times a second fills no log.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Least time between two words.
const TOLD_EVERY: Duration = Duration::from_secs(10);

/// When something was said last.
#[derive(Debug, Default)]
pub struct Seldom(Mutex<Option<Instant>>);

impl Seldom {
    /// Says it, unless it was said just before.
    pub fn say(&self, what: impl FnOnce()) {
        let now = Instant::now();
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if told.is_none_or(|told| now.duration_since(told) >= TOLD_EVERY) {
            *told = Some(now);
            what();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_happens_all_the_time_is_said_once_in_a_while() {
        let (seldom, mut said) = (Seldom::default(), 0);
        for _ in 0..25 {
            seldom.say(|| said += 1);
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert_eq!(said, 3);
    }
}
