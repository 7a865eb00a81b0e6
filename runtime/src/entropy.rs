//! Randomness that a process is given: for jitter, names and tokens.
//!
//! Invariant: the only source of randomness in the services, so that a simulation replays from a
//! seed.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use rand::distr::uniform::{SampleRange, SampleUniform};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

/// A source of random numbers. Clones draw from the same source.
#[derive(Clone)]
pub struct Entropy(Arc<Mutex<StdRng>>);

impl Entropy {
    /// Seeded by the operating system: not to be foreseen.
    #[must_use]
    pub fn system() -> Self {
        Self(Arc::new(Mutex::new(StdRng::from_os_rng())))
    }

    /// The same numbers for the same seed.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(StdRng::seed_from_u64(seed))))
    }

    /// A number of a range that is not empty.
    pub fn range<T: SampleUniform>(&self, range: impl SampleRange<T>) -> T {
        self.draw(|random| random.random_range(range))
    }

    /// 128 random bits.
    #[must_use]
    pub fn bits(&self) -> u128 {
        self.draw(|random| random.random())
    }

    fn draw<T>(&self, draw: impl FnOnce(&mut StdRng) -> T) -> T {
        draw(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for Entropy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Entropy")
    }
}
