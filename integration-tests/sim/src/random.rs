//! Random choices out of the seed.
//!
//! Invariant: each part of the simulation draws from a stream of its own, named by what it is for,
//! so that one more draw in one part moves nothing in another.

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

/// A stream of choices.
#[derive(Clone, Debug)]
pub struct Random(StdRng);

impl Random {
    /// The stream of this name out of a seed.
    #[must_use]
    pub fn stream(seed: u64, name: &str) -> Self {
        Self(StdRng::seed_from_u64(mix(seed, name)))
    }

    /// A number of `low..=high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        self.0.random_range(low..=high.max(low))
    }

    /// True in `percent` of a hundred cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.between(1, 100) <= percent
    }

    /// An index below `count`, which must not be zero.
    pub fn index(&mut self, count: usize) -> usize {
        self.0.random_range(0..count.max(1))
    }

    /// One of several.
    pub fn one<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        (!of.is_empty()).then(|| &of[self.index(of.len())])
    }
}

/// A seed for the stream of a name (FNV-1a over both).
#[must_use]
pub fn mix(seed: u64, name: &str) -> u64 {
    let bytes = seed.to_le_bytes().into_iter().chain(name.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
