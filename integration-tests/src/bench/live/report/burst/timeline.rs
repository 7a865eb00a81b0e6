//! What one contender did from the first pod on, as series and events.
//!
//! Invariant: pure; times are milliseconds from the first pod, and nothing outside the window is
//! kept.

use std::collections::{BTreeMap, BTreeSet};

use crate::bench::live::args::Contender;
use crate::bench::live::figures::{CREATE_FLEET, is_eviction};
use crate::bench::live::recorder::seen::{ClaimState, Mark, NodeState, PodState, What};
use crate::bench::live::results::Run;
use crate::bench::live::world::HOST;
use crate::bench::numbers::count;

/// What is drawn after the last change: the time in which nothing happens is cut.
const AFTER_MS: u64 = 2_000;

/// A run, ready to be drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// Whose.
    pub contender: Contender,
    /// Where it ends.
    pub length_ms: u64,
    /// When all pods ran.
    pub goal_ms: Option<u64>,
    /// Pods from each moment on.
    pub pods: Vec<Pods>,
    /// Events by kind.
    pub lanes: [Lane; 4],
}

/// Pods that are there from a moment on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pods {
    /// The moment.
    pub at_ms: u64,
    /// Those that are not bound.
    pub pending: u64,
    /// Those that are bound, running ones included.
    pub bound: u64,
}

/// Events of a kind, in order of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// Its name.
    pub name: &'static str,
    /// What happened.
    pub events: Vec<Event>,
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub at_ms: u64,
    /// Whether it was refused.
    pub failed: bool,
}

impl Timeline {
    /// The timeline of a run's first phase; none where it has no pod.
    #[must_use]
    pub fn of(run: &Run) -> Option<Self> {
        let played = run.phases.first()?;
        let span = &played.span;
        let is_pod = |mark: &&Mark| matches!(mark.what, What::Pod { .. });
        let in_phase =
            run.marks.iter().filter(|it| (span.began_ms..=span.end_ms).contains(&it.at_ms));
        let from = in_phase.filter(is_pod).map(|mark| mark.at_ms).min()?;
        let settled = played.figures.settled_ms.map(|ms| span.began_ms + ms + AFTER_MS);
        let until = settled.unwrap_or(span.end_ms).clamp(from, span.end_ms.max(from));
        let window = Window { from, until };
        Some(Self {
            contender: run.contender,
            length_ms: until - from,
            goal_ms: span.goal_ms.map(|goal| goal.saturating_sub(from)),
            pods: pods(&run.marks, window),
            lanes: lanes(&run.marks, window),
        })
    }
}

#[derive(Clone, Copy)]
struct Window {
    from: u64,
    until: u64,
}

impl Window {
    fn place(self, at_ms: u64) -> Option<u64> {
        (self.from..=self.until).contains(&at_ms).then(|| at_ms - self.from)
    }
}

fn pods(marks: &[Mark], window: Window) -> Vec<Pods> {
    let mut states: BTreeMap<&str, PodState> = BTreeMap::new();
    let mut found: Vec<Pods> = Vec::new();
    for mark in marks {
        let What::Pod { name, is } = &mark.what else { continue };
        states.insert(name, *is);
        let Some(at_ms) = window.place(mark.at_ms) else { continue };
        let of =
            |wanted: &[PodState]| count(states.values().filter(|it| wanted.contains(it)).count());
        let pending = of(&[PodState::Waiting]);
        let now = Pods { at_ms, pending, bound: of(&[PodState::Bound, PodState::Running]) };
        match found.last_mut().filter(|last| last.at_ms == at_ms) {
            Some(last) => *last = now,
            None => found.push(now),
        }
    }
    found
}

fn lanes(marks: &[Mark], window: Window) -> [Lane; 4] {
    let lane = |name, is: &dyn Fn(&What) -> Option<bool>| {
        let events = marks.iter().filter_map(|mark| {
            let (at_ms, failed) = (window.place(mark.at_ms)?, is(&mark.what)?);
            Some(Event { at_ms, failed })
        });
        Lane { name, events: events.collect() }
    };
    let claim =
        |what: &What| matches!(what, What::Claim { is: ClaimState::Made, .. }).then_some(false);
    let call = |what: &What| {
        let What::Cloud { api, failed } = what else { return None };
        (api == CREATE_FLEET).then_some(*failed)
    };
    [
        lane("NodeClaims made", &claim),
        lane("CreateFleet calls", &call),
        Lane { name: "nodes Ready", events: ready(marks, window) },
        lane("evictions", &|what| is_eviction(what).then_some(false)),
    ]
}

/// When each node was Ready for the first time. That of Fargate is there from the beginning, and
/// may be seen after the first pod.
fn ready(marks: &[Mark], window: Window) -> Vec<Event> {
    let mut known = BTreeSet::new();
    let mut events = Vec::new();
    for mark in marks {
        let What::Node { name, is: NodeState::Ready | NodeState::Open } = &mark.what else {
            continue;
        };
        if name != HOST.0 && known.insert(name) {
            events.extend(window.place(mark.at_ms).map(|at_ms| Event { at_ms, failed: false }));
        }
    }
    events
}
