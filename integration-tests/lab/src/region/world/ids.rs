//! Ids and other choices out of the seed.
//!
//! Invariant: the n-th id of a kind depends on the seed, the kind and n, and on nothing else.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

/// A counter per kind over one seed.
#[derive(Debug)]
pub struct Ids {
    seed: u64,
    counters: BTreeMap<&'static str, u64>,
}

impl Ids {
    /// Ids of one seed.
    pub fn new(seed: u64) -> Ids {
        Ids { seed, counters: BTreeMap::new() }
    }

    /// The next EC2 style id: prefix, dash, 17 hexadecimal digits.
    pub fn ec2(&mut self, prefix: &'static str) -> String {
        format!("{prefix}-{}", &hex(&self.next(prefix))[..17])
    }

    /// The next id in the form of a UUID.
    pub fn uuid(&mut self, kind: &'static str) -> String {
        let hex = hex(&self.next(kind));
        let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..32]];
        parts.join("-")
    }

    /// The next number of a kind within `low..=high`.
    pub fn between(&mut self, kind: &'static str, low: u32, high: u32) -> u32 {
        let digest = self.next(kind);
        let draw = u64::from_be_bytes(std::array::from_fn(|index| digest[index]));
        let width = u64::from(high.saturating_sub(low)) + 1;
        low + u32::try_from(draw % width).unwrap_or(0)
    }

    fn next(&mut self, kind: &'static str) -> [u8; 32] {
        let counter = self.counters.entry(kind).or_default();
        *counter += 1;
        let mut input = self.seed.to_be_bytes().to_vec();
        input.extend_from_slice(kind.as_bytes());
        input.extend_from_slice(&counter.to_be_bytes());
        Sha256::digest(&input).into()
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_one_sequence_whatever_else_is_drawn() {
        let (mut a, mut b) = (Ids::new(1), Ids::new(1));
        let first = a.ec2("i");
        b.uuid("request");
        assert_eq!(b.ec2("i"), first);
        assert_ne!(a.ec2("i"), first);
        assert_ne!(Ids::new(2).ec2("i"), first);
        assert_eq!(first.len(), 19);
        assert!((5..=7).contains(&a.between("boot", 5, 7)));
    }
}
