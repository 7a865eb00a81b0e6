//! What the demo shows while it runs.
//!
//! Invariant: one line for each change; on a terminal the newest line is kept up to date in place.

#![allow(clippy::print_stdout, reason = "the demo's output is its purpose")]

use std::io::{IsTerminal, Write, stdout};
use std::time::Duration;

use crate::stage::eyes::Sight;

/// A row is shown again after this time although nothing has changed: a wait is seen to be one.
const AGAIN: Duration = Duration::from_secs(20);

/// Prints a line.
pub fn say(text: &str) {
    println!("{text}");
}

/// Columns of the terminal, or a width that fits most logs.
#[must_use]
pub fn width() -> usize {
    120
}

/// The live table.
pub struct Table {
    last: Option<Sight>,
    shown: Duration,
    live: bool,
}

/// One row.
pub struct Row<'a> {
    /// Time since the demo's start.
    pub at: Duration,
    /// Step under way.
    pub step: &'a str,
    /// What is seen.
    pub sight: &'a Sight,
    /// Price of all running instances.
    pub price_micro_usd_per_hour: u64,
}

impl Table {
    /// A table with its head printed.
    #[must_use]
    pub fn start() -> Self {
        println!(
            "\n{:>6}  {:<14} {:>7} {:>7} {:>5}  {:>8}  nodes by type",
            "time", "step", "pending", "running", "nodes", "$/h"
        );
        Self { last: None, shown: Duration::ZERO, live: stdout().is_terminal() }
    }

    /// Shows a row when it differs from the last, and now and then.
    pub fn show(&mut self, row: &Row<'_>) {
        let known = self.last.as_ref().is_some_and(|last| same(last, row.sight));
        if known && row.at < self.shown + AGAIN {
            return;
        }
        self.shown = row.at;
        if self.live {
            // Keeps up with a change in place: the line before is history only once it is over.
            print!("\x1b[2K\r");
        }
        println!("{}", line(row));
        // A closed pipe ends the demo at its next line anyway.
        let _ = stdout().flush();
        self.last = Some(row.sight.clone());
    }
}

fn same(last: &Sight, now: &Sight) -> bool {
    (last.pending, last.running, last.all_nodes, &last.nodes)
        == (now.pending, now.running, now.all_nodes, &now.nodes)
}

fn line(row: &Row<'_>) -> String {
    let kinds = row.sight.nodes.iter();
    // How a node was bought is among the labels that it gets when it is registered.
    let bought = |how: &str| if how.is_empty() { "joining" } else { how }.to_owned();
    let kinds: Vec<String> =
        kinds.map(|((kind, how), count)| format!("{count} {kind} {}", bought(how))).collect();
    format!(
        "{:>5.1}s  {:<14} {:>7} {:>7} {:>5}  {:>8}  {}",
        row.at.as_secs_f64(),
        row.step,
        row.sight.pending,
        row.sight.running,
        row.sight.all_nodes,
        usd(row.price_micro_usd_per_hour),
        kinds.join(", ")
    )
}

/// Micro-dollars as dollars with four digits.
#[must_use]
pub fn usd(micro: u64) -> String {
    format!("{}.{:04}", micro / 1_000_000, micro % 1_000_000 / 100)
}
