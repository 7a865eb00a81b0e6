//! Amounts as people read them.
//!
//! Invariant: integers only; what is rounded is rounded to the nearest, halves up.

/// Dollars with four decimals: `0.0416`.
#[must_use]
pub fn usd(micro_usd: i64) -> String {
    let tenths_of_mills = rounded(i128::from(micro_usd), 100);
    format!("{}.{:04}", tenths_of_mills / 10_000, (tenths_of_mills % 10_000).abs())
}

/// Dollars with two decimals: `3.94`.
#[must_use]
pub fn cents(micro_usd: i64) -> String {
    let cents = rounded(i128::from(micro_usd), 10_000);
    format!("{}.{:02}", cents / 100, (cents % 100).abs())
}

/// A share in percent with one decimal, from millionths: `7.1 %`.
#[must_use]
pub fn percent_of_ppm(ppm: i64) -> String {
    let tenths = rounded(i128::from(ppm), 1000);
    format!("{}.{} %", tenths / 10, (tenths % 10).abs())
}

/// A part of a whole in whole percent: `96%`; `-` of nothing.
#[must_use]
pub fn share(part: i64, whole: i64) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    format!("{}%", rounded(i128::from(part) * 100, i128::from(whole)))
}

/// A number and its noun: `1 pod`, `2 pods`.
#[must_use]
pub fn counted(count: u32, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// A time of less than minutes: `850 µs`, `12 ms`, `1.5 s`.
#[must_use]
pub fn duration_micros(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..1_000_000 => format!("{} ms", micros / 1_000),
        _ => format!("{}.{} s", micros / 1_000_000, micros % 1_000_000 / 100_000),
    }
}

fn rounded(value: i128, unit: i128) -> i128 {
    (value + unit / 2).div_euclid(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_rounded_to_the_nearest() {
        assert_eq!(
            (usd(41_600), usd(1_234_550), usd(49)),
            ("0.0416".into(), "1.2346".into(), "0.0000".into())
        );
        assert_eq!((percent_of_ppm(71_499), percent_of_ppm(0)), ("7.1 %".into(), "0.0 %".into()));
        assert_eq!(
            (share(1, 3), share(2, 3), share(1, 0)),
            ("33%".into(), "67%".into(), "-".into())
        );
        assert_eq!((counted(1, "pod"), counted(0, "pod")), ("1 pod".into(), "0 pods".into()));
        assert_eq!(
            (duration_micros(999), duration_micros(12_500)),
            ("999 µs".into(), "12 ms".into())
        );
        assert_eq!(duration_micros(1_560_000), "1.5 s");
        assert_eq!((cents(3_942_000), cents(4_999)), ("3.94".into(), "0.00".into()));
    }
}
