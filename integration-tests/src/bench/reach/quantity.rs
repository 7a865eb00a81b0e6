//! What was measured, held against what is promised.
//!
//! Invariant: a promise holds only where it was measured.

use comfy_table::Table;
use comfy_table::presets::ASCII_MARKDOWN;
use serde::Serialize;

use super::ReachOutput;

/// One quantity: it has to stay at or below its floor.
#[derive(Clone, Debug, Serialize)]
pub struct Quantity {
    /// What it is.
    pub name: String,
    /// What it is counted in.
    pub unit: &'static str,
    /// What was measured; none where nothing came of it.
    pub measured: Option<f64>,
    /// What it must not exceed.
    pub floor: f64,
    /// What is aimed at.
    pub aim: f64,
    /// Whether the floor holds.
    pub holds: bool,
    /// What else there is to know.
    pub detail: String,
}

impl Quantity {
    /// A measured quantity.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        unit: &'static str,
        measured: f64,
        limits: (f64, f64),
    ) -> Self {
        let (floor, aim) = limits;
        let (name, holds, detail) = (name.into(), measured <= floor, String::new());
        Self { name, unit, measured: Some(measured), floor, aim, holds, detail }
    }

    /// The same with what else there is to know; it holds only when `sound` is true, too.
    #[must_use]
    pub fn with(self, detail: impl Into<String>, sound: bool) -> Self {
        Self { detail: detail.into(), holds: self.holds && sound, ..self }
    }

    /// A program that came to no result, and why.
    #[must_use]
    pub fn failed(name: &str, error: &anyhow::Error) -> Self {
        let detail = format!("{error:#}").replace('\n', "; ");
        let (unit, floor, aim) = ("", 0.0, 0.0);
        Self { name: name.to_owned(), unit, measured: None, floor, aim, holds: false, detail }
    }

    fn row(&self) -> Vec<String> {
        let limit = |value: f64| format!("≤ {}{}", number(value), self.unit);
        let measured =
            self.measured.map_or_else(|| "–".to_owned(), |value| number(value) + self.unit);
        let aimed = self.measured.is_some_and(|value| value <= self.aim);
        let verdict = match (self.holds, aimed) {
            (true, true) => "yes, aim",
            (true, false) => "yes",
            (false, _) => "NO",
        };
        let (floor, aim) = (limit(self.floor), limit(self.aim));
        vec![self.name.clone(), measured, floor, aim, verdict.to_owned(), self.detail.clone()]
    }
}

/// The quantities as they are to be printed.
///
/// # Errors
/// When they cannot be written as JSON.
pub fn shown(quantities: &[Quantity], output: ReachOutput) -> anyhow::Result<String> {
    if output == ReachOutput::Json {
        return Ok(serde_json::to_string(quantities)?);
    }
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN);
    table.set_header(["quantity", "measured", "floor", "aim", "holds", "detail"]);
    quantities.iter().for_each(|quantity| {
        table.add_row(quantity.row());
    });
    Ok(table.to_string())
}

/// Three digits that count, however large.
fn number(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_holds_only_where_it_was_measured_and_kept() {
        let of = |measured| Quantity::new("q", " s", measured, (10.0, 3.0));
        assert!(of(10.0).holds && !of(10.1).holds);
        assert!(!of(1.0).with("it did not answer", false).holds);
        assert!(!Quantity::failed("q", &anyhow::anyhow!("no")).holds);
        let table = shown(&[of(2.0), of(4.0), of(40.0)], ReachOutput::Table).unwrap();
        for verdict in ["yes, aim", "| yes ", "| NO"] {
            assert!(table.contains(verdict), "{table}");
        }
    }
}
