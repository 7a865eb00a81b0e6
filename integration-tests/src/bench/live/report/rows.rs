//! The rows of a table: what each is called, which figure it shows, and how that is written.
//!
//! Invariant: of every figure, less is better. A figure is the median of the runs that have it.

use std::collections::BTreeMap;

use crate::bench::live::figures::{Figures, Played};
use crate::bench::live::recorder::seen::Capacity;
use crate::bench::numbers::{count, dollars, float, median};

/// Names listed in a row of calls.
const NAMES_MAX: usize = 8;

/// What all runs of one contender amount to in a row.
type Cell = fn(&[&Played]) -> String;

/// A row with a figure in it.
#[derive(Clone, Copy)]
pub struct Row {
    /// What it is called.
    pub name: &'static str,
    /// Its figure; none where a run has not come so far, or nothing of the kind happened.
    pub figure: fn(&Figures) -> Option<f64>,
    /// The figure as it is written.
    pub text: fn(f64) -> String,
    /// What it is called among the rows that matter most; none where it is not one of them.
    pub headline: Option<&'static str>,
    /// What is written where it was not reached; of a row without it, no figure is no loss.
    missed: Option<Cell>,
    /// Whether it is of some phases only, and left out of the tables of others.
    rare: bool,
}

const fn row(name: &'static str, figure: fn(&Figures) -> Option<f64>, text: Text) -> Row {
    Row { name, figure, text, headline: None, missed: None, rare: false }
}

/// How a figure is written.
type Text = fn(f64) -> String;

const fn top(headline: &'static str, row: Row) -> Row {
    Row { headline: Some(headline), ..row }
}

const fn rare(row: Row) -> Row {
    Row { rare: true, ..row }
}

/// The rows that have a figure.
pub const ROWS: [Row; 20] = [
    Row { missed: Some(goals), ..row("all pods run, s", |it| it.goal_ms.map(float), secs) },
    top("run, less boot", row("the same less boot, s", |it| it.goal_less_boot_ms.map(float), secs)),
    row("first CreateFleet, s", |it| it.first_call_ms.map(float), secs),
    row("last CreateFleet until all run, s", |it| it.last_call_ms.map(float), secs),
    row("calls of CreateFleet until all run", |it| Some(float(it.calls_to_goal)), whole),
    top("nodes then", row("nodes then", |it| Some(float(it.at_goal.instances)), whole)),
    top("$/h then", row("$/h then", |it| Some(usd(it.at_goal)), price)),
    Row { missed: Some(unsettled), ..row("settled after, s", |it| it.settled_ms.map(float), secs) },
    row("nodes in the end", |it| Some(float(it.at_end.instances)), whole),
    top("$/h in the end", row("$/h in the end", |it| Some(usd(it.at_end)), price)),
    row("instances launched", |it| Some(float(it.launches)), whole),
    top("evictions", row("evictions", |it| Some(float(it.evictions)), whole)),
    rare(row("pods away at once, more than may", |it| it.away.map(float), whole)),
    rare(row("instance-minutes", |it| it.instance_ms.map(float), minutes)),
    row("API writes until all run", |it| Some(float(it.writes[0])), whole),
    top("API writes", row("API writes in all", |it| Some(float(it.writes[1])), whole)),
    row("Events written", |it| Some(float(it.events)), whole),
    row("processor time until all run, s", |it| Some(float(it.cpu_ms[0])), secs),
    top("CPU, s", row("processor time in all, s", |it| Some(float(it.cpu_ms[1])), secs)),
    top("MB", row("peak memory, MB", |it| Some(float(it.peak_rss_bytes)), megabytes)),
];

/// The rows that say more than a figure.
pub const TEXTS: [(&str, Cell); 3] = [
    ("API writes for each pod", writes_per_pod),
    ("calls of AWS", |all| named(all, |it| &it.cloud)),
    ("requests to the API server", |all| named(all, |it| &it.api)),
];

impl Row {
    /// Its figure, of those runs that have it; none where none has.
    #[must_use]
    pub fn middle(&self, all: &[&Played]) -> Option<f64> {
        let found: Vec<f64> = all.iter().filter_map(|it| (self.figure)(&it.figures)).collect();
        (!found.is_empty()).then(|| median(&found))
    }

    /// Its figure as it is written; a dash where no run has it.
    #[must_use]
    pub fn figure_of(&self, all: &[&Played]) -> String {
        self.middle(all).map_or_else(dash, self.text)
    }

    /// Whether it belongs in the table of a phase that was played so.
    #[must_use]
    pub fn is_shown(&self, all: &[&Played]) -> bool {
        !self.rare || self.middle(all).is_some()
    }

    /// Whether every run of a contender has to have it.
    #[must_use]
    pub const fn is_due(&self) -> bool {
        self.missed.is_some()
    }

    /// What stands in a cell: the figure, and how many runs have it where some have not.
    #[must_use]
    pub fn cell(&self, all: &[&Played]) -> String {
        let have = all.iter().filter(|it| (self.figure)(&it.figures).is_some()).count();
        match (self.middle(all).map(self.text), self.missed) {
            (None, Some(missed)) if !all.is_empty() => missed(all),
            (None, _) => dash(),
            (Some(text), _) if have < all.len() => format!("{text} ({have} of {} runs)", all.len()),
            (Some(text), _) => text,
        }
    }
}

/// A phase in a line, for who waits.
#[must_use]
pub fn brief(played: &Played) -> String {
    let Played { span, figures, .. } = played;
    let settled = figures.settled_ms.map_or_else(|| "not settled".to_owned(), seconds);
    format!(
        "{}: CreateFleet {} to {}, goal {}, {}; settled {settled}, {}; {} evictions, {} launches, {} \
         writes, {:.1} s of processor time",
        span.name,
        figures.first_call_ms.map_or_else(dash, seconds),
        figures.last_call_ms.map_or_else(dash, seconds),
        figures.goal_ms.map_or_else(|| missed(played), seconds),
        held(figures.at_goal),
        held(figures.at_end),
        figures.evictions,
        figures.launches,
        figures.writes[1],
        float(figures.cpu_ms[1]) / 1e3,
    )
}

/// How far each run came.
fn goals(all: &[&Played]) -> String {
    all.iter().map(|it| missed(it)).collect::<Vec<_>>().join("; ")
}

fn missed(played: &Played) -> String {
    let span = &played.span;
    if span.goal.is_time() {
        return format!(
            "watched for {} s ({} of {} run)",
            span.limit_s,
            span.running,
            played.pods()
        );
    }
    format!("not in {} s ({} of {})", span.limit_s, span.running, played.pods())
}

fn unsettled(all: &[&Played]) -> String {
    let watched = |it: &&Played| Some(it.span.end_ms.saturating_sub(it.span.goal_ms?) / 1_000);
    let longest = all.iter().filter_map(watched).max();
    longest.map_or_else(dash, |seconds| format!("not {seconds} s after they ran"))
}

fn writes_per_pod(all: &[&Played]) -> String {
    let Some(first) = all.first() else { return dash() };
    let pods = float(count(first.pods().max(1)));
    let each: Vec<f64> = all.iter().map(|it| float(it.figures.writes[1]) / pods).collect();
    format!("{:.2}", median(&each))
}

/// The names of the middle run, the most frequent first.
fn named(all: &[&Played], of: impl Fn(&Figures) -> &BTreeMap<String, u64>) -> String {
    let mut sorted = all.to_vec();
    sorted.sort_by_key(|it| it.figures.goal_ms.unwrap_or(u64::MAX));
    let middle = sorted.len().checked_sub(1).and_then(|last| sorted.get(last / 2));
    let Some(played) = middle else { return dash() };
    let found = of(&played.figures);
    let mut names: Vec<(&String, &u64)> = found.iter().collect();
    names.sort_by_key(|(_, number)| std::cmp::Reverse(**number));
    let rest = names.len().saturating_sub(NAMES_MAX);
    let listed = names.iter().take(NAMES_MAX).map(|(name, number)| format!("{name} {number}"));
    let listed = listed.collect::<Vec<_>>().join(", ");
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    format!("{}: {listed}{more}", found.values().sum::<u64>())
}

fn held(capacity: Capacity) -> String {
    format!("{} nodes ${}", capacity.instances, price(usd(capacity)))
}

fn usd(capacity: Capacity) -> f64 {
    dollars(i64::try_from(capacity.micro_usd_per_hour).unwrap_or(i64::MAX))
}

fn price(usd: f64) -> String {
    if usd < 10.0 { format!("{usd:.4}") } else { format!("{usd:.2}") }
}

fn seconds(ms: u64) -> String {
    format!("{} s", secs(float(ms)))
}

fn secs(ms: f64) -> String {
    format!("{:.2}", ms / 1e3)
}

fn minutes(ms: f64) -> String {
    format!("{:.1}", ms / 60e3)
}

fn whole(number: f64) -> String {
    format!("{number:.0}")
}

fn megabytes(bytes: f64) -> String {
    format!("{:.0}", bytes / 1e6)
}

fn dash() -> String {
    "–".to_owned()
}
