//! What the marks of a phase amount to.
//!
//! Invariant: pure. Only what happened in the phase counts, and what was not reached has no figure.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::args::Contender;
use super::cases::Goal;
use super::recorder::seen::{Capacity, Mark, PodState, What};
use super::script::Span;
use super::world::BOOT;
use crate::bench::numbers::count;

/// The call that launches.
pub(super) const CREATE_FLEET: &str = "ec2:CreateFleet";
const EVICTION: &str = "pods/eviction";
/// Verbs that write.
const WRITES: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];
/// Resources that are written all the time, or beside the matter.
const ASIDE: [&str; 2] = ["leases", "events"];

/// Figures of a phase.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Figures {
    /// From the first pod, or from the beginning where no pod was first, to the first CreateFleet.
    pub first_call_ms: Option<u64>,
    /// The same to the last CreateFleet before the goal.
    pub last_call_ms: Option<u64>,
    /// Calls of CreateFleet before the goal.
    pub calls_to_goal: u64,
    /// From the beginning to the goal.
    pub goal_ms: Option<u64>,
    /// The same without the time in which a machine boots; where none was launched before the goal,
    /// none.
    pub goal_less_boot_ms: Option<u64>,
    /// Instances and price at the goal, or with the limit.
    pub at_goal: Capacity,
    /// Instances and price in the end.
    pub at_end: Capacity,
    /// From the beginning to the last change.
    pub settled_ms: Option<u64>,
    /// Instances launched.
    pub launches: u64,
    /// Pods that were evicted or deleted by the contender.
    pub evictions: u64,
    /// Calls of AWS by name.
    pub cloud: BTreeMap<String, u64>,
    /// Requests to the API server by verb and resource.
    pub api: BTreeMap<String, u64>,
    /// Requests that write anything but Leases and Events, to the goal and in all.
    pub writes: [u64; 2],
    /// Events written.
    pub events: u64,
    /// Processor time in milliseconds, to the goal and in all.
    pub cpu_ms: [u64; 2],
    /// Largest resident set of the contender since its start, in bytes.
    pub peak_rss_bytes: u64,
    /// The most pods that were away at once, beyond as many as may; none where it is not counted.
    #[serde(default)]
    pub away: Option<u64>,
    /// For how long there were instances, each for itself, in a phase that lasts a fixed time.
    #[serde(default)]
    pub instance_ms: Option<u64>,
}

/// Figures of one run, and how it ended.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Played {
    /// Who.
    pub contender: Contender,
    /// The phase as it was played.
    pub span: Span,
    /// What it amounts to.
    pub figures: Figures,
}

/// The figures of a phase, of marks in order of time.
#[must_use]
pub fn figures(marks: &[Mark], span: &Span) -> Figures {
    let goal_ms = span.goal_ms.unwrap_or(span.end_ms);
    let within = |until: u64| move |mark: &&Mark| (span.began_ms..=until).contains(&mark.at_ms);
    let all: Vec<&Mark> = marks.iter().filter(within(span.end_ms)).collect();
    let early: Vec<&Mark> = marks.iter().filter(within(goal_ms)).collect();
    let calls: Vec<u64> = early.iter().filter(|it| is_launch(it)).map(|it| it.at_ms).collect();
    let first_pod = first_pod(&early).filter(|pod| calls.iter().all(|call| call >= pod));
    let from = first_pod.unwrap_or(span.began_ms);
    let since = |at: Option<&u64>| at.map(|at| at.saturating_sub(from));
    let boot_ms = u64::try_from(BOOT.as_millis()).unwrap_or(u64::MAX);
    let took = span.goal_ms.map(|at| at - span.began_ms);
    let [before, at_goal, at_end] = span.usage;
    Figures {
        first_call_ms: since(calls.iter().min()),
        last_call_ms: since(calls.iter().max()),
        calls_to_goal: count(calls.len()),
        goal_ms: took,
        goal_less_boot_ms: took.filter(|_| !calls.is_empty()).map(|it| it.saturating_sub(boot_ms)),
        at_goal: capacity(marks, goal_ms),
        at_end: capacity(marks, span.end_ms),
        settled_ms: span.is_settled.then(|| last_change(&all, goal_ms) - span.began_ms),
        launches: how_many(&all, |what| matches!(what, What::Instance { is_alive: true, .. })),
        evictions: how_many(&all, is_eviction),
        cloud: by_name(&all, cloud_name),
        api: by_name(&all, api_name),
        writes: [how_many(&early, is_write), how_many(&all, is_write)],
        events: how_many(&all, |what| writes(what).is_some_and(|resource| resource == "events")),
        cpu_ms: [at_goal.cpu_ms - before.cpu_ms, at_end.cpu_ms - before.cpu_ms],
        peak_rss_bytes: at_end.peak_rss_bytes,
        away: span.away.map(|may| most_away(marks, span).saturating_sub(may)),
        instance_ms: span.goal.is_time().then(|| instance_ms(marks, span)),
    }
}

/// The most pods of the goal that did not run at once.
fn most_away(marks: &[Mark], span: &Span) -> u64 {
    let mut running = BTreeSet::new();
    let mut fewest = None;
    for mark in marks.iter().take_while(|mark| mark.at_ms <= span.end_ms) {
        let What::Pod { name, is } = &mark.what else { continue };
        if mark.at_ms >= span.began_ms {
            fewest.get_or_insert(running.len());
        }
        if *is == PodState::Running {
            running.insert(name);
        } else {
            running.remove(name);
        }
        fewest = fewest.map(|fewest: usize| fewest.min(running.len()));
    }
    count(span.goal.pods().saturating_sub(fewest.unwrap_or(running.len())))
}

/// Milliseconds of all instances of a phase together.
fn instance_ms(marks: &[Mark], span: &Span) -> u64 {
    let changes = marks.iter().filter_map(|mark| {
        let What::Capacity(capacity) = mark.what else { return None };
        Some((mark.at_ms, capacity.instances))
    });
    let (mut since, mut instances, mut sum) = (span.began_ms, 0, 0);
    for (at_ms, next) in changes.chain([(span.end_ms, 0)]) {
        let at_ms = at_ms.clamp(since, span.end_ms);
        sum += (at_ms - since) * instances;
        (since, instances) = (at_ms, next);
    }
    sum
}

impl Played {
    /// How many pods were waited for.
    #[must_use]
    pub const fn pods(&self) -> usize {
        let goal: Goal = self.span.goal;
        goal.pods()
    }
}

fn is_launch(mark: &Mark) -> bool {
    matches!(&mark.what, What::Cloud { api, .. } if api == CREATE_FLEET)
}

/// When the first pod came.
fn first_pod(marks: &[&Mark]) -> Option<u64> {
    let waits = |mark: &&&Mark| matches!(mark.what, What::Pod { is: PodState::Waiting, .. });
    marks.iter().filter(waits).map(|mark| mark.at_ms).min()
}

/// What was there at a moment.
fn capacity(marks: &[Mark], at_ms: u64) -> Capacity {
    let known = marks.iter().filter(|mark| mark.at_ms <= at_ms).filter_map(|mark| {
        let What::Capacity(capacity) = mark.what else { return None };
        Some((mark.at_ms, capacity))
    });
    known.max_by_key(|(at_ms, _)| *at_ms).map(|(_, capacity)| capacity).unwrap_or_default()
}

/// When something that is there changed for the last time; not before the goal.
fn last_change(marks: &[&Mark], goal_ms: u64) -> u64 {
    let asked = |what: &What| matches!(what, What::Cloud { .. } | What::Api { .. });
    let changes = marks.iter().filter(|mark| !asked(&mark.what)).map(|mark| mark.at_ms);
    changes.max().unwrap_or(goal_ms).max(goal_ms)
}

/// The resource that is written, and was written.
fn writes(what: &What) -> Option<&str> {
    let What::Api { verb, resource, failed: false } = what else { return None };
    WRITES.contains(&verb.as_str()).then_some(resource)
}

/// Refused ones cost the API server as much as others.
fn is_write(what: &What) -> bool {
    matches!(what, What::Api { verb, resource, .. }
        if WRITES.contains(&verb.as_str()) && !ASIDE.contains(&resource.as_str()))
}

/// Whether a pod was evicted, or deleted by the contender.
pub(super) fn is_eviction(what: &What) -> bool {
    let deletes = |verb: &str, resource: &str| match verb {
        "create" => resource == EVICTION,
        "delete" => resource == "pods",
        _ => false,
    };
    matches!(what, What::Api { verb, resource, failed: false } if deletes(verb, resource))
}

fn cloud_name(what: &What) -> Option<String> {
    if let What::Cloud { api, .. } = what { Some(api.clone()) } else { None }
}

fn api_name(what: &What) -> Option<String> {
    let What::Api { verb, resource, failed } = what else { return None };
    let refused = if *failed { " (refused)" } else { "" };
    Some(format!("{verb} {resource}{refused}"))
}

fn by_name(marks: &[&Mark], name: impl Fn(&What) -> Option<String>) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    for name in marks.iter().filter_map(|mark| name(&mark.what)) {
        *found.entry(name).or_default() += 1;
    }
    found
}

fn how_many(marks: &[&Mark], is: impl Fn(&What) -> bool) -> u64 {
    count(marks.iter().filter(|mark| is(&mark.what)).count())
}

#[cfg(test)]
mod tests;
