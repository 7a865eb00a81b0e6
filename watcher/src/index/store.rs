//! The index as its readers and its writers share it.
//!
//! Invariant: the lock is never held across an await. Each kind of object has one writer, its
//! watch; everybody who waits for a change is woken by a counter, and reads the state anew.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use longshore_runtime::clock::Clock;
use tokio::sync::watch;
use tokio::time::Instant;

use super::Index;

/// A moment by two clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Now {
    /// Time of day, in milliseconds since 1970: what the API server's timestamps are compared with.
    /// It may be wrong by minutes, and jump.
    pub wall_ms: i64,
    /// Milliseconds since some moment: what tells how long something has been seen here.
    pub steady_ms: i64,
}

/// A handle to the index. Clones share it.
#[derive(Clone, Debug)]
pub struct Store {
    index: Arc<RwLock<Index>>,
    clock: Clock,
    began: Instant,
    changes: watch::Sender<u64>,
}

impl Store {
    /// An empty index, whose changes are dated by `clock`.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        let (index, began) = (Arc::default(), Instant::now());
        Self { index, clock, began, changes: watch::Sender::new(0) }
    }

    /// The present moment, by the clocks that date changes.
    #[must_use]
    pub fn now(&self) -> Now {
        let steady_ms = i64::try_from(self.began.elapsed().as_millis()).unwrap_or(i64::MAX);
        Now { wall_ms: self.clock.now_ms(), steady_ms }
    }

    /// Reads the index.
    pub fn read<T>(&self, read: impl FnOnce(&Index) -> T) -> T {
        read(&self.index.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes the index and wakes those who wait for changes.
    pub fn write<T>(&self, write: impl FnOnce(&mut Index) -> T) -> T {
        let out = self.update(write);
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
        out
    }

    /// Changes what only the caller looks at, and wakes nobody.
    pub fn update<T>(&self, update: impl FnOnce(&mut Index) -> T) -> T {
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        index.set_clock(self.now());
        update(&mut index)
    }

    /// Counts changes.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Waits until `holds`, at most `patience`; whether it came to hold.
    pub async fn until(&self, patience: Duration, holds: impl Fn(&Index) -> bool) -> bool {
        let mut changes = self.changes();
        let wait = async {
            loop {
                changes.mark_unchanged();
                if self.read(&holds) {
                    return;
                }
                // The sender lives in self, so this cannot fail.
                let _ = changes.changed().await;
            }
        };
        tokio::time::timeout(patience, wait).await.is_ok()
    }
}
