//! Numbers on their way to a table.
//!
//! Invariant: every conversion that may lose something is here and says why that does no harm.

/// A count as a floating number.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "counts here stay far below two to the 53")]
pub fn float(count: u64) -> f64 {
    count as f64
}

/// A length as a count.
#[must_use]
pub fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// Dollars of millionths.
#[must_use]
pub fn dollars(micro_usd: i64) -> f64 {
    let sign = if micro_usd < 0 { -1.0 } else { 1.0 };
    sign * float(micro_usd.unsigned_abs()) / 1e6
}

/// The value below which a share of the values lies, by the nearest rank; 0 for none.
#[must_use]
pub fn percentile(values: &[f64], percent: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or(0.0)
}

/// The value in the middle, the lower one of two; 0 for none.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    percentile(values, 50)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::float_cmp, reason = "the values are picked, not computed")]
    fn ranks_are_picked() {
        let values = [5.0, 1.0, 4.0, 2.0, 3.0];
        assert_eq!(median(&values), 3.0);
        assert_eq!(percentile(&values, 99), 5.0);
        assert_eq!(percentile(&values, 1), 1.0);
        assert_eq!(median(&[1.0, 2.0]), 1.0);
        assert_eq!(median(&[]), 0.0);
        assert_eq!(dollars(-1_500_000), -1.5);
    }
}
