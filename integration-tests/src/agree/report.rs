//! What all trials say, as a table.
//!
//! Invariant: shares are rounded down, so that a hundred percent is all.

use comfy_table::Table;
use comfy_table::presets::ASCII_MARKDOWN;

use super::verdict::Tally;

/// One row for each way in which the plans were carried out.
#[must_use]
pub fn table(rows: &[(&str, Tally)]) -> String {
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN);
    table.set_header([
        "",
        "clusters",
        "plans refused",
        "pods",
        "places planned",
        "any as good",
        "pods written to",
        "taken as planned",
        "by the very pod",
        "pod elsewhere",
        "pod waits",
        "pods impossible",
        "bound on new nodes",
        "on old ones",
        "daemons waiting",
    ]);
    for (name, tally) in rows {
        let share = |part: usize| format!("{part} ({})", percent(part, tally.planned));
        table.add_row([
            (*name).to_owned(),
            tally.trials.to_string(),
            tally.refused.to_string(),
            tally.pods.to_string(),
            tally.planned.to_string(),
            share(tally.free),
            format!("{} ({})", tally.written, percent(tally.written, tally.pods)),
            share(tally.realised),
            share(tally.by_name),
            tally.moved.to_string(),
            tally.waiting.to_string(),
            tally.impossible.to_string(),
            tally.impossible_on_new.to_string(),
            tally.impossible_on_old.to_string(),
            tally.daemons_waiting.to_string(),
        ]);
    }
    table.to_string()
}

fn percent(part: usize, whole: usize) -> String {
    let hundredths = (part * 10_000).checked_div(whole).unwrap_or(10_000);
    format!("{}.{:02} %", hundredths / 100, hundredths % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_percent_is_all() {
        assert_eq!(percent(9_999, 10_000), "99.99 %");
        assert_eq!(percent(99_999, 100_000), "99.99 %");
        assert_eq!(percent(7, 7), "100.00 %");
    }
}
