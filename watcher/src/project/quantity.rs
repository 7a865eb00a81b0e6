//! Quantities to integers, exactly: `500m`, `2`, `1.5Gi`, `1e3`, `12E6`.
//!
//! Invariant: no floating point. Requests round up and capacities round down. (The crate for
//! quantities parses through `f64`, which is neither exact nor able to say which way to round.)

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use longshore_proto::types::v1::Resources;

use super::fault::{FieldFault, FieldResult, Problem};

/// Which way a fraction of a unit goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// For requests.
    Up,
    /// For capacities.
    Down,
}

/// Digits after which a quantity is refused: far above any resource, far below overflow.
const DIGITS_MAX: usize = 18;

/// A quantity in units of `1 / per_unit`: 1000 for thousandths of a core, 1 for bytes and counts.
///
/// # Errors
/// The problem, without the field.
pub fn integer(text: &str, per_unit: i128, rounding: Rounding) -> Result<i64, Problem> {
    let bad = || Problem::Quantity(text.to_owned());
    let (sign, magnitude) = match text.as_bytes().first() {
        Some(b'-') => (-1, &text[1..]),
        Some(b'+') => (1, &text[1..]),
        _ => (1, text),
    };
    let end = magnitude.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(magnitude.len());
    let (number, suffix) = magnitude.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    let sane = !digits.is_empty() && digits.len() <= DIGITS_MAX && !fraction.contains('.');
    let digits: i128 = if sane { digits.parse().map_err(|_| bad())? } else { return Err(bad()) };
    if sign < 0 && digits != 0 {
        return Err(Problem::Negative(text.to_owned()));
    }
    let (multiplier, exponent) = scale(suffix).ok_or_else(bad)?;
    let exponent = exponent - i32::try_from(fraction.len()).map_err(|_| bad())?;
    let power = 10_i128.checked_pow(exponent.unsigned_abs()).ok_or_else(bad)?;
    let scaled = digits.checked_mul(multiplier * per_unit).ok_or_else(bad)?;
    let value = match (exponent >= 0, rounding) {
        (true, _) => scaled.checked_mul(power).ok_or_else(bad)?,
        (false, Rounding::Down) => scaled / power,
        (false, Rounding::Up) => (scaled + power - 1) / power,
    };
    i64::try_from(value).map_err(|_| bad())
}

/// Binary multiplier and decimal exponent of a suffix.
fn scale(suffix: &str) -> Option<(i128, i32)> {
    let (multiplier, exponent) = match suffix {
        "" => (1, 0),
        "n" => (1, -9),
        "u" => (1, -6),
        "m" => (1, -3),
        "k" => (1, 3),
        "M" => (1, 6),
        "G" => (1, 9),
        "T" => (1, 12),
        "P" => (1, 15),
        "E" => (1, 18),
        "Ki" => (1 << 10, 0),
        "Mi" => (1 << 20, 0),
        "Gi" => (1 << 30, 0),
        "Ti" => (1 << 40, 0),
        "Pi" => (1 << 50, 0),
        "Ei" => (1 << 60, 0),
        other => {
            let exponent: i32 = other.strip_prefix(['e', 'E'])?.parse().ok()?;
            (exponent.abs() <= 18).then_some((1, exponent))?
        }
    };
    Some((multiplier, exponent))
}

/// A list of resources as the wire has it; zero entries are left out.
///
/// # Errors
/// The first quantity that cannot be read, with its resource name as the field.
pub fn resources(list: &BTreeMap<String, Quantity>, rounding: Rounding) -> FieldResult<Resources> {
    let mut out = Resources::default();
    for (name, Quantity(text)) in list {
        let per_unit = if name == "cpu" { 1000 } else { 1 };
        let value = integer(text, per_unit, rounding)
            .map_err(|problem| FieldFault::new(format!("[{name}]"), problem))?;
        match name.as_str() {
            "cpu" => out.cpu_millis = value,
            "memory" => out.memory_bytes = value,
            "ephemeral-storage" => out.ephemeral_storage_bytes = value,
            "pods" => out.pods = value,
            _ if value == 0 => {}
            _ => {
                out.extended.insert(name.clone(), value);
            }
        }
    }
    Ok(out)
}

/// The inverse of [`resources`], for status fields that people read.
#[must_use]
pub fn quantities(resources: &Resources) -> BTreeMap<String, Quantity> {
    let named = [
        ("memory", bytes(resources.memory_bytes)),
        ("ephemeral-storage", bytes(resources.ephemeral_storage_bytes)),
        ("pods", resources.pods.to_string()),
        ("cpu", cores(resources.cpu_millis)),
    ];
    let extended =
        resources.extended.iter().map(|(name, value)| (name.as_str(), value.to_string()));
    let all = named.into_iter().chain(extended).filter(|(_, text)| text != "0");
    all.map(|(name, text)| (name.to_owned(), Quantity(text))).collect()
}

fn cores(millis: i64) -> String {
    if millis % 1000 == 0 { (millis / 1000).to_string() } else { format!("{millis}m") }
}

fn bytes(bytes: i64) -> String {
    for (unit, suffix) in [(1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki")] {
        if bytes != 0 && bytes % unit == 0 {
            return format!("{}{suffix}", bytes / unit);
        }
    }
    bytes.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_exact_and_round_the_way_they_should() {
        let table = [
            ("500m", 1000, 500, 500),
            ("0.1", 1000, 100, 100),
            ("1", 1000, 1000, 1000),
            ("1n", 1000, 1, 0),
            ("100000001n", 1000, 101, 100),
            ("0.1Gi", 1, 107_374_183, 107_374_182),
            ("1.5Ki", 1, 1536, 1536),
            ("1e3", 1, 1000, 1000),
            ("12E6", 1, 12_000_000, 12_000_000),
            ("1E", 1, 1_000_000_000_000_000_000, 1_000_000_000_000_000_000),
            ("128974848", 1, 128_974_848, 128_974_848),
            ("129e6", 1, 129_000_000, 129_000_000),
            ("123Mi", 1, 128_974_848, 128_974_848),
            ("9007199254740993", 1, 9_007_199_254_740_993, 9_007_199_254_740_993),
            ("+2", 1, 2, 2),
            ("-0", 1, 0, 0),
            (".5", 1000, 500, 500),
            ("100m", 1, 1, 0),
        ];
        for (text, per_unit, up, down) in table {
            assert_eq!(integer(text, per_unit, Rounding::Up), Ok(up), "{text} up");
            assert_eq!(integer(text, per_unit, Rounding::Down), Ok(down), "{text} down");
        }
    }

    #[test]
    fn what_is_no_quantity_says_so() {
        for text in ["", "Gi", "1.5.0", "1X", "1e", "e3", "1 Gi", "99999999999999999999"] {
            let problem = Problem::Quantity(text.to_owned());
            assert_eq!(integer(text, 1, Rounding::Up), Err(problem), "{text}");
        }
        assert_eq!(integer("-1", 1, Rounding::Up), Err(Problem::Negative("-1".to_owned())));
    }

    #[test]
    fn status_quantities_read_back_as_the_same_resources() {
        let resources = Resources {
            cpu_millis: 1930,
            memory_bytes: 3 << 29,
            pods: 29,
            extended: [("nvidia.com/gpu".to_owned(), 2)].into(),
            ..Resources::default()
        };
        assert_eq!(super::resources(&quantities(&resources), Rounding::Down), Ok(resources));
    }
}
