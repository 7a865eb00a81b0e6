//! What the takeover comes to, in print.
//!
//! Invariant: every row that is not simply taken over is printed whole; those that are may be
//! counted.

use std::fmt::Write as _;

use clap::builder::styling::AnsiColor;

use super::{Report, Row, Verdict};
use crate::args::Output;
use crate::terminal::{Answer, Ending, Style, table_text};

/// The report, as text or JSON.
pub fn print(report: &Report, output: Output, style: Style) -> Answer {
    let remarks = report.unread.iter().map(|unread| format!("note: {unread}")).collect();
    let text = match output {
        Output::Table => text(report, style),
        Output::Json => match serde_json::to_string_pretty(report) {
            Ok(json) => json + "\n",
            Err(error) => return Answer::error(Ending::Failed, &error),
        },
    };
    let smooth = report.karpenter.is_empty()
        && report.rows.iter().all(|row| row.verdict == Verdict::Adopted);
    Answer { text, remarks, ending: if smooth { Ending::Well } else { Ending::Attention } }
}

fn text(report: &Report, style: Style) -> String {
    let mut table = style.table(&["OBJECT", "NODE", "INSTANCE", "TAKEN OVER"]);
    for row in &report.rows {
        table.add_row([&row.object, &row.node, &row.instance, word(row.verdict)]);
    }
    let mut text = table_text(&table);
    let told = report.rows.iter().filter(|row| !row.why.is_empty());
    // Writing to a string cannot fail.
    for row in told {
        let mark = style.marked(word(row.verdict), colour(row.verdict));
        let _ = writeln!(text, "\n{}: {mark}\n  why:  {}", row.object, row.why);
        if !row.remedy.is_empty() {
            let _ = writeln!(text, "  mend: {}", row.remedy);
        }
    }
    let _ = writeln!(text, "\n{}", summary(&report.rows));
    for lease in &report.karpenter {
        let mark = style.marked("Karpenter runs", AnsiColor::Yellow);
        let _ = writeln!(text, "{mark}: {lease}. Longshore does nothing until it ends.");
    }
    text
}

const fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Adopted => "yes",
        Verdict::AdoptedWithNote => "yes, but",
        Verdict::LeftAlone => "no",
    }
}

const fn colour(verdict: Verdict) -> AnsiColor {
    match verdict {
        Verdict::Adopted => AnsiColor::Green,
        Verdict::AdoptedWithNote => AnsiColor::Yellow,
        Verdict::LeftAlone => AnsiColor::Red,
    }
}

fn summary(rows: &[Row]) -> String {
    let count = |verdict| rows.iter().filter(|row| row.verdict == verdict).count();
    let (adopted, noted) = (count(Verdict::Adopted), count(Verdict::AdoptedWithNote));
    let left = count(Verdict::LeftAlone);
    format!("{} objects: {adopted} taken over, {noted} with a note, {left} left alone", rows.len())
}
