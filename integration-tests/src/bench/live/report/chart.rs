//! docs/live/CASE.svg: pods that run, and what an hour costs, over time.
//!
//! Invariant: every run of the case is drawn, one line each, from its own timeline; axes begin at
//! zero, and both contenders share them.

use std::fmt::Write as _;

use crate::bench::chart::{OURS, PEER};
use crate::bench::live::args::Contender;
use crate::bench::live::figures::Played;
use crate::bench::live::recorder::seen::{Capacity, Mark, PodState, What};
use crate::bench::live::results::Run;
use crate::bench::numbers::{count, float};

const WIDTH: f64 = 860.0;
const TOP: f64 = 64.0;
/// Height of a phase with its title, and of its plots.
const BAND: f64 = 190.0;
const PLOT: (f64, f64) = (360.0, 120.0);
/// Where plots begin.
const LEFT: [f64; 2] = [50.0, 480.0];
/// A line has no more points than this many to its width.
const POINTS_MAX: f64 = 360.0;
/// What is drawn after the goal, of what there is: the time in which nothing happens is cut.
const AFTER_MS: u64 = 5_000;

/// A value from a moment on.
type Point = (u64, f64);

/// A phase of a case with the lines of its runs.
struct Band {
    title: String,
    lines: Vec<Line>,
}

struct Line {
    contender: Contender,
    pods: Vec<Point>,
    usd: Vec<Point>,
}

/// The chart of a case's runs.
#[must_use]
pub fn svg(runs: &[&Run]) -> String {
    let bands = bands(runs);
    let height = TOP + BAND * float(count(bands.len()));
    let drawn: String = (0_u64..).zip(&bands).map(|(number, it)| band(number, it)).collect();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
         <text x=\"16\" y=\"24\" font-size=\"15\">Pods that run (left) and dollars an hour (right), over \
         seconds</text>\n{}{}{drawn}</svg>\n",
        legend(16.0, OURS, "Longshore"),
        legend(116.0, PEER, "Karpenter"),
    )
}

fn legend(x: f64, colour: &str, name: &str) -> String {
    format!(
        "<rect x=\"{x}\" y=\"36\" width=\"12\" height=\"12\" fill=\"{colour}\"/>\
         <text x=\"{}\" y=\"46\">{name}</text>\n",
        x + 18.0
    )
}

/// One for each phase, in the order in which they were measured.
fn bands(runs: &[&Run]) -> Vec<Band> {
    let mut found: Vec<Band> = Vec::new();
    for run in runs {
        for played in &run.phases {
            let title = format!("{}: {}", run.case.text(), played.span.name);
            let line = line(run, played);
            match found.iter_mut().find(|band| band.title == title) {
                Some(band) => band.lines.push(line),
                None => found.push(Band { title, lines: vec![line] }),
            }
        }
    }
    found
}

fn line(run: &Run, played: &Played) -> Line {
    let span = &played.span;
    let settled = played.figures.settled_ms.map(|ms| span.began_ms + ms + AFTER_MS);
    let window = (span.began_ms, settled.unwrap_or(span.end_ms).min(span.end_ms));
    let usd = |what: &What| {
        let What::Capacity(Capacity { micro_usd_per_hour, .. }) = what else { return None };
        Some(float(*micro_usd_per_hour) / 1e6)
    };
    Line {
        contender: run.contender,
        pods: cut(pods(&run.marks), window),
        usd: cut(steps(&run.marks, usd), window),
    }
}

/// How many pods run from each moment on.
fn pods(marks: &[Mark]) -> Vec<Point> {
    let mut running = std::collections::BTreeSet::new();
    let mut points = Vec::new();
    for mark in marks {
        let What::Pod { name, is } = &mark.what else { continue };
        if *is == PodState::Running {
            running.insert(name);
        } else {
            running.remove(name);
        }
        points.push((mark.at_ms, float(count(running.len()))));
    }
    points
}

fn steps(marks: &[Mark], value: impl Fn(&What) -> Option<f64>) -> Vec<Point> {
    marks.iter().filter_map(|mark| Some((mark.at_ms, value(&mark.what)?))).collect()
}

/// What lies in a window, with its first and last value at the window's ends, and times from its
/// beginning.
fn cut(points: Vec<Point>, (from, to): (u64, u64)) -> Vec<Point> {
    let at = |ms: u64| points.iter().rev().find(|it| it.0 <= ms).map_or(0.0, |it| it.1);
    let (first, last) = ((0, at(from)), (to - from, at(to)));
    let within = points.iter().filter(|it| it.0 > from && it.0 <= to);
    let within = within.map(|(ms, value)| (ms - from, *value));
    [first].into_iter().chain(within).chain([last]).collect()
}

fn band(number: u64, band: &Band) -> String {
    let y = TOP + BAND * float(number);
    let of = |points: fn(&Line) -> &[Point]| -> Vec<(Contender, &[Point])> {
        band.lines.iter().map(|line| (line.contender, points(line))).collect()
    };
    format!(
        "<text x=\"16\" y=\"{}\" font-weight=\"bold\">{}</text>\n{}{}",
        y + 14.0,
        band.title,
        plot((LEFT[0], y + 28.0), &of(|line| &line.pods)),
        plot((LEFT[1], y + 28.0), &of(|line| &line.usd)),
    )
}

fn plot((x, y): (f64, f64), lines: &[(Contender, &[Point])]) -> String {
    let (width, height) = PLOT;
    let all = || lines.iter().flat_map(|(_, points)| points.iter());
    let last_ms = all().map(|it| it.0).max().unwrap_or_default().max(1);
    let most = all().map(|it| it.1).fold(0.0, f64::max);
    let scale = (float(last_ms), if most > 0.0 { most } else { 1.0 });
    let (bottom, right) = (y + height, x + width);
    let mut drawn = format!(
        "<path d=\"M{x} {y}V{bottom}H{right}\" fill=\"none\" stroke=\"#57606a\"/>\n\
         <text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\
         <text x=\"{}\" y=\"{bottom}\" text-anchor=\"end\">0</text>\
         <text x=\"{right}\" y=\"{}\" text-anchor=\"end\">{:.0} s</text>\n",
        x - 5.0,
        y + 10.0,
        short(most),
        x - 5.0,
        bottom + 15.0,
        float(last_ms) / 1e3,
    );
    for (contender, points) in lines {
        let colour = if *contender == Contender::Longshore { OURS } else { PEER };
        let path = path(points, (x, y), scale);
        // Writing to a String does not fail.
        let _ = writeln!(
            drawn,
            "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>"
        );
    }
    drawn
}

/// Steps: a value holds until the next. Of all points in a column the first, the least, the
/// greatest and the last are drawn: no more can be seen.
fn path(points: &[Point], (x, y): (f64, f64), (last_ms, most): (f64, f64)) -> String {
    let (width, height) = PLOT;
    let column = |point: &Point| (float(point.0) / last_ms * POINTS_MAX).floor();
    let down = |value: f64| format!("{:.1}", y + height * (1.0 - value / most));
    let mut path = String::new();
    for group in points.chunk_by(|one, next| column(one).total_cmp(&column(next)).is_eq()) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let values = || group.iter().map(|point| point.1);
        let (least, greatest) =
            (values().fold(first.1, f64::min), values().fold(first.1, f64::max));
        let right = x + width * float(first.0) / last_ms;
        let mut drawn = down(first.1);
        path += &match path.is_empty() {
            true => format!("M{right:.1} {drawn}"),
            false => format!("H{right:.1}V{drawn}"),
        };
        for level in [least, greatest, last.1].map(down) {
            if level != drawn {
                path += &format!("V{level}");
                drawn = level;
            }
        }
    }
    path
}

fn short(value: f64) -> String {
    let is_whole = value.fract() < f64::EPSILON;
    if value < 10.0 && !is_whole { format!("{value:.2}") } else { format!("{value:.0}") }
}

/// Lines are judged by the eye alone; what they are made of is not.
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_has_its_ends() {
        let points = vec![(5, 1.0), (15, 2.0), (25, 3.0)];
        assert_eq!(cut(points.clone(), (10, 30)), [(0, 1.0), (5, 2.0), (15, 3.0), (20, 3.0)]);
        assert_eq!(cut(points, (0, 4)), [(0, 0.0), (4, 0.0)]);
    }

    #[test]
    fn a_column_takes_no_more_than_can_be_seen() {
        let many: Vec<Point> = (0..100_000).map(|ms| (ms, float(ms % 7))).collect();
        let drawn = path(&many, (0.0, 0.0), (100_000.0, 6.0));
        assert!(drawn.len() < 20_000, "{} letters", drawn.len());
        let (top, bottom) = ("V0.0", format!("V{:.1}", PLOT.1));
        assert!(drawn.contains(top) && drawn.contains(&bottom), "the extremes are there");
        assert_eq!(path(&[(0, 6.0), (50, 3.0)], (0.0, 0.0), (100.0, 6.0)).matches('H').count(), 1);
    }

    #[test]
    fn pods_that_run_are_counted() {
        let mark =
            |at_ms, name: &str, is| Mark { at_ms, what: What::Pod { name: name.to_owned(), is } };
        let marks = [
            mark(1, "a", PodState::Waiting),
            mark(2, "a", PodState::Running),
            mark(3, "b", PodState::Running),
            mark(4, "a", PodState::Ending),
        ];
        assert_eq!(pods(&marks), [(1, 0.0), (2, 1.0), (3, 2.0), (4, 1.0)]);
    }
}
