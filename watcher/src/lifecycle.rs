//! What the watcher does without being told: initialisation, draining, the clock of consolidation,
//! and telling people about objects that cannot be used.
//!
//! Invariant: steps follow from state alone and are named again on every pass until the state shows
//! them done. The passes are pure; carrying a step out is another matter.

mod act;
pub mod activity;
pub mod buffers;
pub mod classes;
pub mod drain;
pub(crate) mod drain_end;
pub mod initialize;
mod joining;
mod pace;
pub mod report;
mod surge;

use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use kube::ResourceExt as _;
use longshore_proto::types::v1 as wire;
use tokio::time::Instant;

use crate::api::NodeClaim;
use crate::counters::Places;
use crate::directives::Directives;
use crate::index::pods::PodRow;
use crate::index::{Index, Now};
use crate::names;
use drain::Volumes;
use pace::Pace;

/// Steps under way at once.
const CONCURRENCY: usize = 64;
/// Least time between passes: a burst of changes is looked at once.
const PASS_EVERY_MIN: Duration = Duration::from_millis(30);
/// Longest time between passes: some steps become due by time alone.
const PASS_EVERY_MAX: Duration = Duration::from_secs(1);

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The claim of a node that somebody has deleted must go.
    DeleteClaim {
        /// Claim.
        claim: String,
    },
    /// A node that somebody has deleted has no claim: nothing holds it back.
    ReleaseNode {
        /// Node.
        node: String,
    },
    /// A node class that somebody has deleted is used by no claim: nothing holds it back.
    ReleaseClass {
        /// Name of the EC2NodeClass.
        class: String,
    },
    /// Write down when the drain ends at the latest.
    SetDeadline {
        /// Claim.
        claim: String,
        /// Milliseconds since the epoch; none takes off what was written down for a drain that
        /// never began.
        deadline_ms: Option<i64>,
    },
    /// Keep new pods and new connections away.
    Cordon {
        /// Node.
        node: String,
    },
    /// Ask for a pod's eviction.
    Evict {
        /// Pod.
        pod: PodRow,
        /// Claim of its node.
        claim: String,
    },
    /// Have the Deployment of a pod make its next one before this one goes.
    Surge {
        /// Pod.
        pod: PodRow,
    },
    /// Delete a pod whose time is up.
    ForceDelete {
        /// Pod.
        pod: PodRow,
        /// Grace left for it.
        grace_seconds: u32,
    },
    /// Something keeps a node from being drained, and an Event says so.
    Blocked {
        /// Claim of the node.
        claim: String,
        /// What it is: kind, namespace if it has one, name.
        object: String,
        /// CamelCase reason of the Event.
        reason: &'static str,
        /// For people: why, and the way out.
        note: String,
    },
    /// What keeps a node from being drained is other than the scheduler knows.
    NoteBlockers {
        /// Claim of the node.
        claim: String,
        /// All of it.
        blockers: Vec<wire::Blocker>,
    },
    /// What keeps a node from being drained has lasted: the claim says so.
    SayKept {
        /// Claim of the node.
        claim: String,
        /// The condition that waits for it.
        kind: &'static str,
        /// CamelCase reason.
        reason: &'static str,
        /// For people: what, why, and the way out.
        message: String,
    },
    /// No pod is left that the drain must move.
    MarkDrained {
        /// Claim.
        claim: String,
        /// What has become of the volumes of the node.
        volumes: Volumes,
    },
    /// The node takes pods.
    Initialize {
        /// Claim.
        claim: String,
        /// Node.
        node: String,
    },
    /// The node does not take pods yet, or has not registered.
    Await {
        /// Claim.
        claim: String,
        /// The condition that waits for it.
        kind: &'static str,
        /// CamelCase reason.
        reason: &'static str,
        /// For people.
        message: String,
    },
    /// Pods came to a node or left it.
    Touch {
        /// Claim.
        claim: String,
        /// Node.
        node: String,
        /// When, the last time, in milliseconds since 1970.
        at_ms: i64,
    },
    /// A node has become one that may be consolidated, or is none any longer.
    SetConsolidatable {
        /// Claim.
        claim: String,
        /// Whether it is.
        holds: bool,
    },
    /// The pods that a claim was made for all run.
    Running {
        /// Claim.
        claim: String,
        /// What became of the places on its node.
        places: Places,
    },
}

/// The trace that a claim belongs to; empty when it names none.
fn traceparent(claim: &NodeClaim) -> &str {
    claim.annotations().get(names::TRACEPARENT).map_or("", String::as_str)
}

impl Step {
    /// What the step is about: two steps with the same key are never under way together.
    #[must_use]
    pub fn key(&self) -> String {
        match self {
            Self::DeleteClaim { claim } => format!("delete/{claim}"),
            Self::ReleaseNode { node } => format!("release/{node}"),
            Self::ReleaseClass { class } => format!("class/{class}"),
            Self::SetDeadline { claim, .. } => format!("deadline/{claim}"),
            Self::Cordon { node } => format!("cordon/{node}"),
            Self::Evict { pod, .. } | Self::Surge { pod } | Self::ForceDelete { pod, .. } => {
                format!("evict/{}", pod.uid)
            }
            Self::Blocked { claim, object, .. } => format!("blocked/{claim}/{object}"),
            Self::NoteBlockers { claim, .. } => format!("blockers/{claim}"),
            Self::SayKept { claim, .. } => format!("kept/{claim}"),
            Self::MarkDrained { claim, .. } => format!("drained/{claim}"),
            Self::Initialize { claim, .. } => format!("initialize/{claim}"),
            Self::Await { claim, reason, .. } => format!("await/{claim}/{reason}"),
            Self::Touch { claim, .. } => format!("touch/{claim}"),
            Self::SetConsolidatable { claim, .. } => format!("consolidatable/{claim}"),
            Self::Running { claim, .. } => format!("running/{claim}"),
        }
    }
}

impl Step {
    /// How many steps may be under way with this one: what drains a node finds places left when
    /// others are slow.
    const fn places(&self) -> usize {
        match self {
            Self::DeleteClaim { .. }
            | Self::ReleaseNode { .. }
            | Self::SetDeadline { .. }
            | Self::Cordon { .. }
            | Self::Evict { .. }
            | Self::Surge { .. }
            | Self::ForceDelete { .. }
            | Self::NoteBlockers { .. }
            | Self::MarkDrained { .. } => CONCURRENCY,
            Self::Blocked { .. }
            | Self::SayKept { .. }
            | Self::ReleaseClass { .. }
            | Self::Initialize { .. }
            | Self::Await { .. }
            | Self::Touch { .. }
            | Self::SetConsolidatable { .. }
            | Self::Running { .. } => CONCURRENCY / 2,
        }
    }
}

/// Everything that is due; nothing while some kind of object is unknown, because a pod that has not
/// been listed is not a pod that has left.
#[must_use]
pub fn steps(index: &Index, now: Now) -> Vec<Step> {
    if !index.is_complete() {
        return Vec::new();
    }
    let mut steps = drain::steps(index, now);
    steps.extend(joining::steps(index, now.wall_ms));
    steps.extend(initialize::steps(index));
    steps.extend(classes::steps(index));
    steps.extend(activity::steps(index, now.wall_ms));
    steps
}

/// How long until something may become due by time alone.
fn rest(index: &Index, now: Now) -> Duration {
    let wait_ms = drain::due_ms(index, now).map(|at_ms| at_ms - now.steady_ms);
    let wait = wait_ms.and_then(|ms| u64::try_from(ms).ok()).map(Duration::from_millis);
    wait.map_or(PASS_EVERY_MAX, |wait| wait.min(PASS_EVERY_MAX))
}

/// Carries out what is due, for as long as the watcher leads.
pub async fn run(directives: &Directives) {
    let mut changes = directives.store.changes();
    let platform = &directives.platform;
    let mut pace = Pace::new(platform.entropy.clone());
    let mut under_way = FuturesUnordered::new();
    let mut pass_at = Instant::now();
    loop {
        tokio::select! {
            biased;
            () = tokio::time::sleep_until(pass_at) => {}
            Some((key, outcome)) = under_way.next() => {
                pace.finished(key, &outcome, Instant::now());
                pass_at = pass_at.min(Instant::now() + PASS_EVERY_MIN);
                continue;
            }
            changed = changes.changed() => {
                // The store outlives this loop.
                drop(changed);
                changes.mark_unchanged();
                pass_at = pass_at.min(Instant::now() + PASS_EVERY_MIN);
                continue;
            }
        }
        let (due, rest) = directives.store.read(|index| {
            let now = directives.store.now();
            (steps(index, now), rest(index, now))
        });
        let now = Instant::now();
        pace.keep(due.iter().map(Step::key));
        for step in due {
            let key = step.key();
            if under_way.len() < step.places() && pace.may_start(&key, now) {
                under_way.push(async move { (key, directives.carry_out_step(step).await) });
            }
        }
        pass_at = pace.wake_at().map_or(now + rest, |at| at.min(now + rest));
        pass_at = pass_at.max(now + PASS_EVERY_MIN);
    }
}

#[cfg(test)]
mod tests;
