//! What the numbers are held against: for each quantity a floor, and what is aimed at.
//!
//! Invariant: a quantity whose rows were not measured is "not run", never met.

use super::catalogues::Pool;
use super::latency::{Case, Measured};
use super::numbers::{count, float};
use super::outcome::Outcome;
use super::results::Results;
use super::runs::Row;

/// Which side of the limit is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Good {
    AtLeast,
    AtMost,
}

/// One quantity.
#[derive(Clone, Debug)]
struct Goal {
    name: &'static str,
    unit: &'static str,
    good: Good,
    floor: f64,
    aim: f64,
    value: Option<f64>,
}

impl Goal {
    fn verdict(&self) -> &'static str {
        let reaches = |limit: f64, value: f64| match self.good {
            Good::AtLeast => value >= limit,
            Good::AtMost => value <= limit,
        };
        match self.value {
            None => "not run",
            Some(value) if reaches(self.aim, value) => "✓ aim",
            Some(value) if reaches(self.floor, value) => "✓",
            Some(_) => "**✗ missed**",
        }
    }

    fn line(&self) -> String {
        let sign = if self.good == Good::AtLeast { "≥" } else { "≤" };
        let (name, unit, floor, aim) = (self.name, self.unit, self.floor, self.aim);
        let value = match self.value {
            None => "–".to_owned(),
            Some(value) if value.is_infinite() => "not reached".to_owned(),
            Some(value) => number(value) + unit,
        };
        let verdict = self.verdict();
        format!("| {name} | {value} | {sign} {floor}{unit} | {aim}{unit} | {verdict} |")
    }
}

/// Three digits that count, however large.
fn number(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.3}"),
    }
}

/// The table of all goals, in Markdown.
#[must_use]
pub fn table(results: &Results) -> String {
    let head = "| quantity | measured | floor | aim | |\n|---|---|---|---|---|".to_owned();
    let goals = [speed(results), latency(results), price(results), size(results)].concat();
    let lines = goals.iter().map(Goal::line);
    [head].into_iter().chain(lines).collect::<Vec<_>>().join("\n")
}

fn goal(name: &'static str, unit: &'static str, good: Good, limits: (f64, f64)) -> Goal {
    Goal { name, unit, good, floor: limits.0, aim: limits.1, value: None }
}

fn speed(results: &Results) -> Vec<Goal> {
    let at = |speed_up: fn(&Row) -> Option<f64>, name, limits, workloads: &[&str]| Goal {
        value: lowest(results, |row| {
            workloads.contains(&row.case.workload).then(|| speed_up(row)).flatten()
        }),
        ..goal(name, "×", Good::AtLeast, limits)
    };
    let faster = |name, limits, workloads| at(Row::speed_up, name, limits, workloads);
    let batches = &["diverse-50", "diverse-100", "diverse-500"];
    vec![
        faster("pods/s over the peer's, generic-100000", (200.0, 2000.0), &["generic-100000"]),
        faster("pods/s over the peer's, diverse-5000", (100.0, 1000.0), &["diverse-5000"]),
        faster("pods/s over the peer's, diverse-20000", (100.0, 1000.0), &["diverse-20000"]),
        faster(
            "pods/s over the peer's, batches of 50, 100 and 500 diverse pods, the least",
            (50.0, 300.0),
            batches,
        ),
        at(Row::first_speed_up, "the same, first plan", (50.0, 300.0), batches),
    ]
}

fn latency(results: &Results) -> Vec<Goal> {
    let of = |case: Case, pick: fn(&Measured) -> f64| results.case(case).map(pick);
    let at_most =
        |name, unit, limits, value| Goal { value, ..goal(name, unit, Good::AtMost, limits) };
    let classes = results.row("classes-100", Pool::Cmr);
    let good = classes.filter(|row| row.over_bound().is_some_and(|over| over <= 1.02));
    let distinct = results.row("distinct-20000", Pool::Cmr);
    vec![
        at_most(
            "first plan, 1,000 pods in 200 classes, p50",
            " ms",
            (1.0, 0.3),
            of(Case::Small, |found| found.p50_ms),
        ),
        at_most("the same, p99", " ms", (5.0, 2.0), of(Case::Small, |found| found.p99_ms)),
        at_most(
            "first plan, 100,000 pods in 500 classes onto 10,000 nodes, p50",
            " ms",
            (50.0, 20.0),
            of(Case::Large, |found| found.p50_ms),
        ),
        at_most("the same, p99", " ms", (150.0, 60.0), of(Case::Large, |found| found.p99_ms)),
        at_most(
            "default effort to within 2 % of the bound, 100 classes",
            " ms",
            (500.0, 100.0),
            classes.map(|row| good.map_or(f64::INFINITY, |_| row.ours.seconds * 1e3)),
        ),
        at_most(
            "20,000 pods of which no two are alike",
            " ms",
            (1000.0, 150.0),
            distinct.map(|row| row.ours.seconds * 1e3),
        ),
    ]
}

fn price(results: &Results) -> Vec<Goal> {
    let at_most = |name, limits, value| Goal { value, ..goal(name, "", Good::AtMost, limits) };
    let many = |row: &Row| row.ours.outcome.as_ref().is_some_and(|ours| ours.pods >= 1000);
    let on = |row: &Row, pool: Pool| row.case.pool == pool && row.case.workload != "diverse-1000";
    let generic = |row: &Row| row.case.workload.starts_with("generic-");
    let third = results.row("third", Pool::Cmr32);
    vec![
        at_most(
            "price over the bound, generic pods, the most",
            (1.03, 1.01),
            highest(results, |row| if generic(row) { row.over_bound() } else { None }),
        ),
        at_most(
            "price over the peer's, c/m/r, 1,000 plain pods and more, the most",
            (0.80, 0.70),
            highest(results, |row| {
                if many(row) && on(row, Pool::Cmr) { row.price_ratio() } else { None }
            }),
        ),
        at_most(
            "price over the peer's, up to 64 vCPU, the most",
            (1.00, 0.94),
            highest(results, |row| if on(row, Pool::Cmr64) { row.price_ratio() } else { None }),
        ),
        at_most(
            "price over the peer's, up to 32 vCPU with a DaemonSet, the most",
            (1.00, 0.94),
            highest(results, |row| if on(row, Pool::Cmr32) { row.price_ratio() } else { None }),
        ),
        at_most(
            "price over the peer's, every row, the most",
            (1.00, 1.00),
            highest(results, Row::price_ratio),
        ),
        Goal {
            value: third.and_then(bound_quality),
            ..goal("bound over the best known price, third", "", Good::AtLeast, (0.95, 0.99))
        },
    ]
}

/// The bound as a share of the lowest price that anybody found.
fn bound_quality(row: &Row) -> Option<f64> {
    let all = [&row.ours, &row.best, &row.peer].map(|side| side.outcome.as_ref());
    let known = || all.into_iter().flatten();
    let best = known().map(|outcome| outcome.price_usd_per_hour).reduce(f64::min)?;
    let bound = known().filter_map(|outcome| outcome.lower_bound_usd_per_hour).reduce(f64::max)?;
    Some(bound / best)
}

fn size(results: &Results) -> Vec<Goal> {
    let ours = || results.rows.iter().filter_map(|row| row.ours.outcome.as_ref());
    let best = results.rows.iter().filter_map(|row| row.best.outcome.as_ref());
    let wrong: u64 = ours().chain(best).filter_map(|outcome| outcome.violations).sum();
    let bought = || ours().filter(|outcome| outcome.nodes > 0);
    let checked = bought().filter(|outcome| outcome.certificate_checked == Some(true));
    let share = float(count(checked.count())) / float(count(bought().count().max(1)));
    let largest =
        results.row("generic-100000", Pool::Cmr).and_then(|row| row.ours.outcome.as_ref());
    let per_pod = |found: &Outcome| float(found.allocated_bytes) / float(found.pods.max(1));
    let certificate = results.case(Case::Certificate);
    let state = results.case(Case::State);
    vec![
        Goal {
            value: state.map(|found| float(found.bytes) / 1e6),
            ..goal("state, 10,000 nodes and 100,000 pods", " MB", Good::AtMost, (64.0, 32.0))
        },
        Goal {
            value: largest.map(per_pod),
            ..goal("allocated for each pod of a plan", " B", Good::AtMost, (1000.0, 1000.0))
        },
        Goal {
            value: Some(share * 100.0),
            ..goal("plans whose bound's proof was checked", " %", Good::AtLeast, (100.0, 100.0))
        },
        Goal {
            value: certificate.map(|found| found.p99_ms),
            ..goal("checking one proof, p99", " ms", Good::AtMost, (1.0, 1.0))
        },
        Goal {
            value: Some(float(wrong)),
            ..goal("violations in our plans", "", Good::AtMost, (0.0, 0.0))
        },
    ]
}

fn lowest(results: &Results, of: impl Fn(&Row) -> Option<f64>) -> Option<f64> {
    results.rows.iter().filter_map(of).reduce(f64::min)
}

fn highest(results: &Results, of: impl Fn(&Row) -> Option<f64>) -> Option<f64> {
    results.rows.iter().filter_map(of).reduce(f64::max)
}
