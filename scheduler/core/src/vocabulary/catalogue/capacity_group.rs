//! Capacity groups: all pools of capacity, dealt out to a few groups that pods can spread over.
//!
//! A pool of capacity is an instance type in a zone: what a spot interruption or a shortage takes
//! at once. A workload that spreads over a group's label has no more than its share on any one
//! pool.
//!
//! Invariant: a group depends on the names of type and zone alone, so it never changes while a node
//! lives.

/// One of two groups.
pub const CAPACITY_HALF: &str = "longshore.dev/capacity-half";
/// One of four.
pub const CAPACITY_QUARTER: &str = "longshore.dev/capacity-quarter";
/// One of eight.
pub const CAPACITY_EIGHTH: &str = "longshore.dev/capacity-eighth";

/// The labels, with the number of their values.
const KEYS: [(&str, u8); 3] = [(CAPACITY_HALF, 2), (CAPACITY_QUARTER, 4), (CAPACITY_EIGHTH, 8)];
const VALUES: [&str; 8] = ["0", "1", "2", "3", "4", "5", "6", "7"];

/// The group of a pool of capacity, one of eight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CapacityGroup(u8);

impl CapacityGroup {
    /// The group of a type in a zone. A type's zones, whose names end in consecutive letters, are
    /// in different groups.
    #[must_use]
    pub fn of(instance_type: &str, zone: &str) -> Self {
        let zone = zone.bytes().last().unwrap_or(0);
        // FNV-1a, folded: the low bits of the product alone mix too little.
        let hash = instance_type
            .bytes()
            .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        let folded = (hash ^ (hash >> 16)).to_le_bytes();
        Self((folded[0] ^ folded[1]).wrapping_add(zone) % 8)
    }

    /// The value of one of the labels; none for any other key.
    #[must_use]
    pub fn label(self, key: &str) -> Option<&'static str> {
        let (_, groups) = KEYS.iter().find(|(known, _)| *known == key)?;
        VALUES.get(usize::from(self.0 % groups)).copied()
    }

    /// The key, if it is that of one of the labels.
    #[must_use]
    pub fn key(key: &str) -> Option<&'static str> {
        KEYS.iter().map(|(known, _)| *known).find(|known| *known == key)
    }

    /// All labels with their values.
    pub fn labels(self) -> impl Iterator<Item = (String, String)> {
        KEYS.iter()
            .filter_map(move |(key, _)| Some(((*key).to_owned(), self.label(key)?.to_owned())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_of_a_type_are_in_different_groups() {
        let groups = ["a", "b", "c", "d"].map(|zone| {
            let group = CapacityGroup::of("m7g.large", &format!("us-east-1{zone}"));
            group.label(CAPACITY_QUARTER).unwrap()
        });
        let distinct: std::collections::BTreeSet<_> = groups.iter().collect();
        assert_eq!(distinct.len(), 4, "{groups:?}");
    }

    #[test]
    fn types_are_dealt_out_evenly() {
        let mut counts = [0; 8];
        let sizes = ["large", "xlarge", "2xlarge", "4xlarge", "8xlarge"];
        for family in ["c5", "c6i", "c7g", "m5", "m6i", "m7g", "r5", "r6i", "r7g", "t3"] {
            for size in sizes {
                let group = CapacityGroup::of(&format!("{family}.{size}"), "us-east-1a");
                counts[usize::from(group.0)] += 1;
            }
        }
        assert!(counts.iter().all(|count| (2..=12).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_group_of_eight_says_that_of_four_and_of_two() {
        let group = CapacityGroup(6);
        let labels: Vec<_> = group.labels().collect();
        let expected = [(CAPACITY_HALF, "0"), (CAPACITY_QUARTER, "2"), (CAPACITY_EIGHTH, "6")];
        assert_eq!(labels, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
        assert_eq!(group.label("topology.kubernetes.io/zone"), None);
    }
}
