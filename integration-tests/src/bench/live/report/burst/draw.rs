//! A timeline of each contender as a drawing.
//!
//! Invariant: pure; one scale of seconds for all, one scale of pods for all.

use std::fmt::Write as _;

use super::timeline::{Event, Lane, Pods, Timeline};
use crate::bench::chart::{OURS, PEER};
use crate::bench::live::args::Contender;
use crate::bench::numbers::{count, float};

const WIDTH: f64 = 900.0;
/// Where panels begin, below title and legend.
const TOP: f64 = 66.0;
/// Where time begins, right of the names of lanes, and ends, left of their totals.
const LEFT: f64 = 140.0;
const RIGHT: f64 = 850.0;
/// Height of a panel: its title, its plot of pods, its lanes, and the room below.
const HEAD: f64 = 24.0;
const PLOT: f64 = 110.0;
const LANE: f64 = 26.0;
const GAP: f64 = 26.0;
/// Height of the axis with its numbers.
const AXIS: f64 = 40.0;
/// Room above the first lane for the numbers of its marks.
const NUMBER: f64 = 8.0;
/// Events nearer to each other than this are one mark: room for its number.
const MARK: f64 = 18.0;
/// Room that the words beside the line need at which all pods run.
const WORDS: f64 = 130.0;
/// Most numbers on the axis.
const TICKS_MAX: u64 = 14;
/// Distances between two numbers of the axis, in seconds.
const STEPS_S: [u64; 8] = [1, 2, 5, 10, 20, 30, 60, 120];
/// Colour of axes and of words that explain.
const INK: &str = "#57606a";
/// Colour of lines to read along.
const GRID: &str = "#eaeef2";

/// What is common to all panels.
struct Scale {
    length_ms: f64,
    pods: f64,
}

impl Scale {
    fn of(timelines: &[Timeline]) -> Self {
        let length = timelines.iter().map(|it| it.length_ms).max().unwrap_or_default();
        let pods = timelines.iter().flat_map(|it| &it.pods);
        let most = pods.map(|it| it.pending.max(it.bound)).max().unwrap_or_default();
        Self { length_ms: float(length.max(1)), pods: float(most.max(1)) }
    }

    fn x(&self, at_ms: u64) -> f64 {
        LEFT + (RIGHT - LEFT) * float(at_ms) / self.length_ms
    }
}

/// The chart.
pub fn svg(timelines: &[Timeline]) -> String {
    let scale = Scale::of(timelines);
    let bottom = TOP + panel_height() * float(count(timelines.len())) - GAP;
    let height = bottom + AXIS;
    let panels = (0_u64..).zip(timelines);
    let panels: String = panels
        .map(|(number, it)| panel(TOP + panel_height() * float(number), it, &scale))
        .collect();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
         <text x=\"16\" y=\"24\" font-size=\"15\">A hundred pods at once: what each contender does about \
         them</text>\n{}{}{panels}</svg>\n",
        legend(),
        axis(&scale, bottom),
    )
}

fn panel_height() -> f64 {
    HEAD + PLOT + NUMBER + 4.0 * LANE + GAP
}

/// What lines and marks mean; the colours are named by the panels' titles.
fn legend() -> String {
    let line = |x: f64, dashes: &str, name: &str| {
        format!(
            "<path d=\"M{x} 42H{}\" stroke=\"{INK}\" stroke-width=\"2\"{dashes}/>\
             <text x=\"{}\" y=\"46\">{name}</text>\n",
            x + 24.0,
            x + 30.0
        )
    };
    let dot = |x: f64, failed: bool, name: &str| {
        format!("{}<text x=\"{}\" y=\"46\">{name}</text>\n", mark((x, 42.0), INK, failed), x + 10.0)
    };
    [
        line(16.0, DASHES, "pods pending"),
        line(140.0, "", "pods bound"),
        dot(262.0, false, "an event, or several and their number"),
        dot(516.0, true, "refused (in brackets)"),
        format!("<text x=\"{RIGHT}\" y=\"46\" text-anchor=\"end\">lines end when all is settled</text>\n"),
    ]
    .concat()
}

/// Dashes of what is not there yet.
const DASHES: &str = " stroke-dasharray=\"5 3\"";

/// Seconds below all panels, with lines up to the top.
fn axis(scale: &Scale, bottom: f64) -> String {
    let seconds = scale.length_ms / 1e3;
    let fits = |step: &&u64| seconds / float(**step) <= float(TICKS_MAX);
    let step = STEPS_S.iter().find(fits).copied().unwrap_or(300);
    let mut drawn = String::new();
    let ticks = (0_u64..).map(|number| number * step).take_while(|it| float(*it) <= seconds);
    for tick in ticks {
        let x = scale.x(tick * 1_000);
        // Writing to a String does not fail.
        let _ = writeln!(
            drawn,
            "<path d=\"M{x:.1} {TOP}V{bottom}\" stroke=\"{GRID}\"/>\
             <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\" fill=\"{INK}\">{tick}</text>",
            bottom + 16.0
        );
    }
    let _ = writeln!(
        drawn,
        "<text x=\"{RIGHT}\" y=\"{}\" text-anchor=\"end\" fill=\"{INK}\">seconds from the first pod</text>",
        bottom + 32.0
    );
    drawn
}

fn panel(top: f64, timeline: &Timeline, scale: &Scale) -> String {
    let (colour, name) = match timeline.contender {
        Contender::Longshore => (OURS, "Longshore"),
        Contender::Karpenter => (PEER, "Karpenter"),
    };
    let title = format!(
        "<rect x=\"16\" y=\"{}\" width=\"12\" height=\"12\" fill=\"{colour}\"/>\
         <text x=\"34\" y=\"{}\" font-weight=\"bold\">{name}</text>\n",
        top + 2.0,
        top + 12.0,
    );
    let plot = plot(top + HEAD, timeline, (scale, colour));
    let lanes = (0_u64..).zip(&timeline.lanes).map(|(number, it)| {
        lane(top + HEAD + PLOT + LANE * (float(number) + 0.5) + NUMBER, it, (scale, colour))
    });
    let lanes: String = lanes.collect();
    let name = name.to_lowercase();
    format!("<g id=\"{name}\">\n{title}{plot}{lanes}</g>\n")
}

/// Pods over time, and when all ran.
fn plot(top: f64, timeline: &Timeline, (scale, colour): (&Scale, &str)) -> String {
    let bottom = top + PLOT;
    let line = |of: fn(&Pods) -> u64, dashes: &str| {
        let points = timeline
            .pods
            .iter()
            .map(|it| (scale.x(it.at_ms), bottom - PLOT * float(of(it)) / scale.pods));
        let path = steps(points, (scale.x(timeline.length_ms), bottom));
        format!(
            "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dashes}/>\n"
        )
    };
    let goal = timeline.goal_ms.map(|goal_ms| {
        let x = scale.x(goal_ms);
        // Before it lines rise: it is said there only where there is no room behind.
        let (anchor, by) = if x > RIGHT - WORDS { ("end", -5.0) } else { ("start", 5.0) };
        format!(
            "<path d=\"M{x:.1} {top}V{bottom}\" stroke=\"{INK}\"/>\
             <text x=\"{:.1}\" y=\"{}\" text-anchor=\"{anchor}\">all run after {:.1} s</text>\n",
            x + by,
            top + PLOT / 2.0,
            float(goal_ms) / 1e3,
        )
    });
    format!(
        "<path d=\"M{LEFT} {top}V{bottom}H{RIGHT}\" fill=\"none\" stroke=\"{INK}\"/>\
         <text x=\"{}\" y=\"{}\" text-anchor=\"end\">{:.0} pods</text>\
         <text x=\"{}\" y=\"{bottom}\" text-anchor=\"end\">0</text>\n{}{}{}",
        LEFT - 6.0,
        top + 10.0,
        scale.pods,
        LEFT - 6.0,
        goal.unwrap_or_default(),
        line(|it| it.pending, DASHES),
        line(|it| it.bound, ""),
    )
}

/// Steps from zero: a value holds until the next, the last until the end.
fn steps(points: impl Iterator<Item = (f64, f64)>, (end, bottom): (f64, f64)) -> String {
    let mut path = format!("M{LEFT} {bottom}");
    for (x, y) in points {
        // Writing to a String does not fail.
        let _ = write!(path, "H{x:.1}V{y:.1}");
    }
    let _ = write!(path, "H{end:.1}");
    path
}

/// Events of a kind, and how many there are.
fn lane(y: f64, lane: &Lane, (scale, colour): (&Scale, &str)) -> String {
    let refused = lane.events.iter().filter(|it| it.failed).count();
    let total = match refused {
        0 => lane.events.len().to_string(),
        _ => format!("{} ({refused})", lane.events.len()),
    };
    let mut drawn = format!(
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\
         <path d=\"M{LEFT} {y}H{RIGHT}\" stroke=\"{GRID}\"/>\
         <text x=\"{}\" y=\"{}\">{total}</text>\n",
        LEFT - 6.0,
        y + 4.0,
        lane.name,
        RIGHT + 12.0,
        y + 4.0,
    );
    for group in groups(&lane.events, scale) {
        let _ = writeln!(drawn, "{}", group.drawn(y, colour));
    }
    drawn
}

/// Events that are drawn as one mark.
struct Group {
    from: f64,
    to: f64,
    number: usize,
    failed: bool,
}

fn groups(events: &[Event], scale: &Scale) -> Vec<Group> {
    let mut found: Vec<Group> = Vec::new();
    for event in events {
        let x = scale.x(event.at_ms);
        match found.last_mut() {
            Some(last) if last.failed == event.failed && x - last.from < MARK => {
                last.to = x;
                last.number += 1;
            }
            Some(_) | None => found.push(Group { from: x, to: x, number: 1, failed: event.failed }),
        }
    }
    found
}

impl Group {
    /// A dot, or a bar with rounded ends from the first to the last, with their number above.
    fn drawn(&self, y: f64, colour: &str) -> String {
        if self.number == 1 {
            return mark((self.from, y), colour, self.failed);
        }
        let (x, width) = (self.from - RADIUS, self.to - self.from + 2.0 * RADIUS);
        let fill = if self.failed { "#ffffff" } else { colour };
        format!(
            "<rect x=\"{x:.1}\" y=\"{}\" width=\"{width:.1}\" height=\"{}\" rx=\"{RADIUS}\" \
             fill=\"{fill}\" stroke=\"{colour}\" stroke-width=\"1.5\"/>\
             <text x=\"{:.1}\" y=\"{}\" font-size=\"10\">{}</text>",
            y - RADIUS,
            2.0 * RADIUS,
            self.from - RADIUS,
            y - RADIUS - 2.5,
            self.number,
        )
    }
}

/// Half the height of a mark.
const RADIUS: f64 = 4.0;

fn mark((x, y): (f64, f64), colour: &str, failed: bool) -> String {
    let fill = if failed { "#ffffff" } else { colour };
    format!(
        "<circle cx=\"{x:.1}\" cy=\"{y}\" r=\"{RADIUS}\" fill=\"{fill}\" stroke=\"{colour}\" \
         stroke-width=\"1.5\"/>"
    )
}
