//! Amounts of schedulable resources in fixed point.
//!
//! Invariant: all arithmetic saturates, so no sum of absurd requests can wrap into a small one; an
//! absent extended resource equals zero, except that what is available of volume attachments has no
//! limit where none is stated.

use std::collections::BTreeMap;
use std::fmt;

/// An amount of each resource. Requests are rounded up and capacities down before they get here.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resources {
    /// CPU in thousandths of a core.
    pub cpu_millis: i64,
    /// Memory in bytes.
    pub memory_bytes: i64,
    /// Local ephemeral storage in bytes.
    pub ephemeral_storage_bytes: i64,
    /// Number of pods; a pod requests 1.
    pub pods: i64,
    /// Extended resources by name, in whole units (hugepages in bytes).
    pub extended: BTreeMap<String, i64>,
}

/// Names of the four resources every node has, as limits and messages spell them.
pub const BASE_NAMES: [&str; 4] = ["cpu", "memory", "ephemeral-storage", "pods"];

/// Prefix of the resources that count volumes attached through one CSI driver.
pub const ATTACHMENTS: &str = "attachable-volumes-";

/// What is available of a resource without a limit: more than any node is ever asked for, and
/// little enough to be reckoned with together with millicores.
pub const UNLIMITED: i64 = 1 << 20;

/// True for resources that a node has without limit when it does not state one. A CSI driver states
/// how many volumes it attaches once it runs on a node, and many never do.
#[must_use]
pub fn is_unlimited_when_absent(name: &str) -> bool {
    name.starts_with(ATTACHMENTS)
}

impl Resources {
    /// An amount of CPU and memory, for one pod.
    #[must_use]
    pub fn pod(cpu_millis: i64, memory_bytes: i64) -> Self {
        Self { cpu_millis, memory_bytes, pods: 1, ..Self::default() }
    }

    /// The amount of one resource by name; zero when unknown.
    #[must_use]
    pub fn get(&self, name: &str) -> i64 {
        match name {
            "cpu" => self.cpu_millis,
            "memory" => self.memory_bytes,
            "ephemeral-storage" => self.ephemeral_storage_bytes,
            "pods" => self.pods,
            _ => self.extended.get(name).copied().unwrap_or(0),
        }
    }

    /// How much there is of one resource when this is what a node has.
    #[must_use]
    pub fn available(&self, name: &str) -> i64 {
        if self.is_unlimited(name) { UNLIMITED } else { self.get(name) }
    }

    fn is_unlimited(&self, name: &str) -> bool {
        is_unlimited_when_absent(name) && !self.extended.contains_key(name)
    }

    /// Sets the amount of one resource by name.
    pub fn set(&mut self, name: &str, amount: i64) {
        match name {
            "cpu" => self.cpu_millis = amount,
            "memory" => self.memory_bytes = amount,
            "ephemeral-storage" => self.ephemeral_storage_bytes = amount,
            "pods" => self.pods = amount,
            _ => {
                self.extended.insert(name.to_owned(), amount);
            }
        }
    }

    /// Names of the resources that are not zero, base ones first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let base = BASE_NAMES.into_iter();
        base.chain(self.extended.keys().map(String::as_str)).filter(|name| self.get(name) != 0)
    }

    /// Sum, dimension by dimension.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        self.combine(other, i64::saturating_add)
    }

    /// What is left of this when `other` is taken away, dimension by dimension; may be negative.
    /// What has no limit keeps none.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        let mut left = self.combine(other, i64::saturating_sub);
        left.extended.retain(|name, _| !self.is_unlimited(name));
        left
    }

    /// This much, or what is requested where that is more. What has no limit keeps none.
    #[must_use]
    pub fn raised_to(&self, requests: &Self) -> Self {
        let mut raised = self.larger(requests);
        raised.extended.retain(|name, _| !self.is_unlimited(name));
        raised
    }

    /// The larger of both in each dimension.
    #[must_use]
    pub fn larger(&self, other: &Self) -> Self {
        self.combine(other, Ord::max)
    }

    /// The smaller of both in each dimension; of a limit and none, the limit.
    #[must_use]
    pub fn smaller(&self, other: &Self) -> Self {
        let mut both = self.combine(other, Ord::min);
        for (name, amount) in &mut both.extended {
            *amount = self.available(name).min(other.available(name));
        }
        both
    }

    /// `count` times this amount.
    #[must_use]
    pub fn times(&self, count: i64) -> Self {
        self.map(|amount| amount.saturating_mul(count))
    }

    /// This amount with negative dimensions raised to zero.
    #[must_use]
    pub fn at_least_zero(&self) -> Self {
        self.map(|amount| amount.max(0))
    }

    /// True when every dimension that is asked for is available.
    #[must_use]
    pub fn fits_in(&self, available: &Self) -> bool {
        self.first_misfit(available).is_none()
    }

    /// The first dimension in which this amount exceeds what is available.
    #[must_use]
    pub fn first_misfit(&self, available: &Self) -> Option<&str> {
        self.names().find(|name| self.get(name) > 0 && self.get(name) > available.available(name))
    }

    /// True when every dimension is zero.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.names().next().is_none()
    }

    fn combine(&self, other: &Self, with: impl Fn(i64, i64) -> i64) -> Self {
        let mut extended = BTreeMap::new();
        for name in self.extended.keys().chain(other.extended.keys()) {
            if !extended.contains_key(name) {
                extended.insert(name.clone(), with(self.get(name), other.get(name)));
            }
        }
        Self {
            cpu_millis: with(self.cpu_millis, other.cpu_millis),
            memory_bytes: with(self.memory_bytes, other.memory_bytes),
            ephemeral_storage_bytes: with(
                self.ephemeral_storage_bytes,
                other.ephemeral_storage_bytes,
            ),
            pods: with(self.pods, other.pods),
            extended,
        }
    }

    fn map(&self, with: impl Fn(i64) -> i64) -> Self {
        Self {
            cpu_millis: with(self.cpu_millis),
            memory_bytes: with(self.memory_bytes),
            ephemeral_storage_bytes: with(self.ephemeral_storage_bytes),
            pods: with(self.pods),
            extended: self.extended.iter().map(|(name, v)| (name.clone(), with(*v))).collect(),
        }
    }
}

/// One amount of a named resource, as a person writes it: `250m`, `512Mi`, `3`.
#[must_use]
pub fn display_amount(name: &str, amount: i64) -> String {
    const MIB: i64 = 1 << 20;
    let bytes = name == "memory" || name == "ephemeral-storage" || name.starts_with("hugepages-");
    match name {
        "cpu" if amount % 1000 == 0 => (amount / 1000).to_string(),
        "cpu" => format!("{amount}m"),
        _ if bytes && amount % (MIB << 10) == 0 && amount != 0 => format!("{}Gi", amount >> 30),
        _ if bytes && amount.abs() >= MIB => format!("{}Mi", amount / MIB),
        _ => amount.to_string(),
    }
}

impl fmt::Display for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, name) in self.names().enumerate() {
            let gap = if index == 0 { "" } else { " " };
            write!(f, "{gap}{name}={}", display_amount(name, self.get(name)))?;
        }
        Ok(())
    }
}

/// The sum of amounts of one kind, as much as can be said when they are absurd.
#[must_use]
pub fn total(amounts: impl IntoIterator<Item = i64>) -> i64 {
    amounts.into_iter().fold(0, i64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_extended_resources_are_zero() {
        let mut gpu = Resources::pod(100, 1 << 20);
        gpu.set("nvidia.com/gpu", 1);
        let plain = Resources::pod(1000, 1 << 30);
        assert_eq!(gpu.first_misfit(&plain), Some("nvidia.com/gpu"));
        assert!(Resources::pod(100, 1).fits_in(&plain));
        assert_eq!(plain.minus(&gpu).get("nvidia.com/gpu"), -1);
    }

    #[test]
    fn volume_attachments_have_no_limit_until_one_is_stated() {
        let name = "attachable-volumes-ebs.csi.aws.com";
        let mut pod = Resources::pod(100, 1 << 20);
        pod.set(name, 3);
        let plain = Resources { pods: 9, ..Resources::pod(1000, 1 << 30) };
        assert!(pod.fits_in(&plain) && pod.fits_in(&plain.minus(&pod)));
        assert!(pod.fits_in(&plain.raised_to(&pod.times(2)).minus(&pod.times(2))));
        let mut small = plain.clone();
        small.set(name, 4);
        assert_eq!(pod.first_misfit(&small.minus(&pod)), Some(name));
        assert_eq!(plain.smaller(&small), small);
        assert_eq!(small.smaller(&plain), small);
    }

    #[test]
    fn sums_saturate_instead_of_wrapping() {
        let huge = Resources::pod(i64::MAX, i64::MAX);
        assert_eq!(huge.plus(&huge).cpu_millis, i64::MAX);
        assert_eq!(huge.times(3).memory_bytes, i64::MAX);
        assert_eq!(total([huge.cpu_millis, huge.cpu_millis]), i64::MAX);
    }

    #[test]
    fn amounts_read_like_quantities() {
        let mut amount = Resources::pod(1250, 512 << 20);
        amount.set("nvidia.com/gpu", 2);
        assert_eq!(amount.to_string(), "cpu=1250m memory=512Mi pods=1 nvidia.com/gpu=2");
    }
}
