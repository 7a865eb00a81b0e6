//! What a value has been of late.
//!
//! Invariant: the present value is always among them, however long ago it was set.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// Values, each with the last moment at which it is known to have been in force.
#[derive(Debug)]
pub(super) struct Lately<T>(VecDeque<(Instant, T)>);

impl<T> Default for Lately<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T: PartialEq> Lately<T> {
    /// Sets the present value, and forgets those that ended more than `window` ago.
    pub(super) fn set(&mut self, value: T, window: Duration) {
        let now = Instant::now();
        if let Some((at, _)) = self.0.back_mut() {
            *at = now;
        }
        if self.0.back().is_none_or(|(_, last)| *last != value) {
            self.0.push_back((now, value));
        }
        while self.0.len() > 1 && now.duration_since(self.0[0].0) > window {
            self.0.pop_front();
        }
    }

    /// The values, oldest first.
    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_value_counts_for_as_long_as_it_was_in_force_and_a_while_after() {
        let window = Duration::from_secs(10);
        let mut lately = Lately::default();
        lately.set(1, window);
        tokio::time::advance(Duration::from_secs(60)).await;
        lately.set(2, window);
        assert_eq!(lately.values().collect::<Vec<_>>(), [&1, &2], "1 was in force until now");
        tokio::time::advance(Duration::from_secs(11)).await;
        lately.set(2, window);
        assert_eq!(lately.values().collect::<Vec<_>>(), [&2]);
    }
}
