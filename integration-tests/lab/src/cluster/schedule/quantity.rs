//! Quantities and resource vectors.
//!
//! Invariant: every amount is kept in thousandths of its unit and saturates instead of wrapping.

use std::collections::BTreeMap;

use serde_json::Value;

/// Suffixes and the thousandths that one unit of them is.
const SUFFIXES: [(&str, i128); 14] = [
    ("Ki", 1_000 << 10),
    ("Mi", 1_000 << 20),
    ("Gi", 1_000 << 30),
    ("Ti", 1_000 << 40),
    ("Pi", 1_000 << 50),
    ("Ei", 1_000 << 60),
    ("m", 1),
    ("k", 1_000_000),
    ("M", 1_000_000_000),
    ("G", 1_000_000_000_000),
    ("T", 1_000_000_000_000_000),
    ("P", 1_000_000_000_000_000_000),
    ("E", 1_000_000_000_000_000_000_000),
    ("", 1_000),
];

/// Thousandths of a quantity such as `1500m`, `2`, `1.5Gi`; none when it does not parse.
/// Micro and nano amounts round up to one thousandth.
pub fn thousandths(text: &str) -> Option<i64> {
    let text = text.trim();
    if let Some(digits) = text.strip_suffix(['n', 'u']) {
        let divisor = if text.ends_with('n') { 1_000_000 } else { 1_000 };
        return Some(digits.parse::<i64>().ok()?.div_euclid(divisor) + 1);
    }
    let (digits, factor) =
        SUFFIXES.iter().find_map(|(suffix, factor)| Some((text.strip_suffix(suffix)?, *factor)))?;
    let (digits, exponent) = match digits.split_once(['e', 'E']) {
        Some((digits, exponent)) => (digits, exponent.parse::<u32>().ok()?.min(18)),
        None => (digits, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let negative = whole.starts_with('-');
    let scale = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let mantissa: i128 = format!("{whole}{fraction}").parse().ok()?;
    let exact = mantissa.checked_mul(factor)?.checked_mul(10_i128.checked_pow(exponent)?)?;
    let rounded = if negative { exact / scale } else { (exact + scale - 1) / scale };
    Some(i64::try_from(rounded).unwrap_or(i64::MAX))
}

/// Thousandths of a JSON quantity, which may be a string or a number; zero for anything else.
pub fn of_json(value: &Value) -> i64 {
    match value.as_str() {
        Some(text) => thousandths(text).unwrap_or(0),
        None => value.as_i64().unwrap_or(0).saturating_mul(1_000),
    }
}

/// Amounts by resource name, in thousandths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// Thousandths of a core.
    pub cpu: i64,
    /// Thousandths of a byte.
    pub memory: i64,
    /// Everything else.
    pub others: BTreeMap<String, i64>,
}

impl Resources {
    /// Reads a resource list.
    pub fn of_json(list: &Value) -> Self {
        let mut resources = Self::default();
        for (name, quantity) in list.as_object().into_iter().flatten() {
            *resources.slot(name) = of_json(quantity);
        }
        resources
    }

    /// Amount of one resource.
    pub fn get(&self, name: &str) -> i64 {
        match name {
            "cpu" => self.cpu,
            "memory" => self.memory,
            _ => self.others.get(name).copied().unwrap_or(0),
        }
    }

    /// Mutable amount of one resource.
    pub fn slot(&mut self, name: &str) -> &mut i64 {
        match name {
            "cpu" => &mut self.cpu,
            "memory" => &mut self.memory,
            _ => self.others.entry(name.to_owned()).or_insert(0),
        }
    }

    /// Names and amounts, cpu and memory first.
    pub fn entries(&self) -> impl Iterator<Item = (&str, i64)> {
        let others = self.others.iter().map(|(name, amount)| (name.as_str(), *amount));
        [("cpu", self.cpu), ("memory", self.memory)].into_iter().chain(others)
    }

    /// Adds another vector.
    pub fn add(&mut self, other: &Self) {
        for (name, amount) in other.entries() {
            let slot = self.slot(name);
            *slot = slot.saturating_add(amount);
        }
    }

    /// Subtracts another vector.
    pub fn subtract(&mut self, other: &Self) {
        for (name, amount) in other.entries() {
            let slot = self.slot(name);
            *slot = slot.saturating_sub(amount);
        }
    }

    /// Raises every amount to at least that of the other vector.
    pub fn raise_to(&mut self, other: &Self) {
        for (name, amount) in other.entries() {
            let slot = self.slot(name);
            *slot = (*slot).max(amount);
        }
    }
}
