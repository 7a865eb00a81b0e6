//! Names and uids drawn from the cluster's seed.
//!
//! Invariant: the same seed and the same order of requests give the same identifiers.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// The alphabet of generated name suffixes: Kubernetes leaves out vowels and look-alikes.
const SUFFIX_ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_LENGTH: usize = 5;
/// Longest base that leaves room for the suffix in a 63 character label.
const GENERATED_BASE_LENGTH_MAX: usize = 63 - SUFFIX_LENGTH;

/// Draws uids and name suffixes.
#[derive(Debug)]
pub struct Identity {
    random: StdRng,
}

impl Identity {
    /// A source that depends on nothing but `seed`.
    pub fn seeded(seed: u64) -> Self {
        Self { random: StdRng::seed_from_u64(seed) }
    }

    /// A version 4 uuid.
    pub fn uid(&mut self) -> String {
        uuid::Builder::from_random_bytes(self.random.random()).into_uuid().to_string()
    }

    /// `base` with a random suffix, as the API server does for `generateName`.
    pub fn name_from(&mut self, base: &str) -> String {
        let base: String = base.chars().take(GENERATED_BASE_LENGTH_MAX).collect();
        let suffix = (0..SUFFIX_LENGTH)
            .map(|_| {
                char::from(SUFFIX_ALPHABET[self.random.random_range(0..SUFFIX_ALPHABET.len())])
            })
            .collect::<String>();
        base + &suffix
    }
}

/// A short stable digest in the suffix alphabet, for `pod-template-hash` and the like.
pub fn digest(value: &serde_json::Value) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(value.to_string().as_bytes())
        .iter()
        .take(10)
        .map(|byte| char::from(SUFFIX_ALPHABET[usize::from(*byte) % SUFFIX_ALPHABET.len()]))
        .collect()
}
