//! Which directives of a session are carried out, and when.
//!
//! Invariant: what ends or frees something never waits for what opens or writes something, and
//! neither waits for nodes that wait for their pods: each lane has places of its own. What is done
//! ahead of time delays nothing. Directives about one claim are carried out in the order in which
//! they came. One that has waited too long by this process's own clock is not started; no other
//! host's clock is asked.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use longshore_proto::cluster::v1::directive::Action;
use longshore_proto::cluster::v1::{Directive, DirectiveResult};
use longshore_proto::limits::{DIRECTIVE_QUEUE, DIRECTIVE_TTL_MS};
use longshore_proto::time::time_ms;
use longshore_runtime::planted;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::Directives;

/// How long a directive that expires may wait for its start.
pub const WAIT_MAX: Duration = Duration::from_millis(DIRECTIVE_TTL_MS as u64);
/// Places in the lane of what ends something, and in that of all other writes: enough to keep an
/// API server busy, few enough for its fairness.
const PLACES: usize = 64;
/// Places of nodes whose pods are let in before they join: few, or the pods of those that have
/// joined would wait for the writes about all others.
const EARLY_PLACES: usize = 2;
/// Places of nodes that are being opened. They mostly wait for pods to be bound.
const OPENING_PLACES: usize = 256;

/// A directive and when it came.
pub(super) struct Arrived {
    pub(super) directive: Directive,
    pub(super) at: Instant,
}

impl Arrived {
    /// True when it must not be started any more.
    pub(super) fn is_expired(&self, now_ms: i64) -> bool {
        if planted::is("S23") {
            return self.directive.expire_time.as_ref().is_some_and(|t| time_ms(t) <= now_ms);
        }
        self.directive.expire_time.is_some() && self.at.elapsed() > WAIT_MAX
    }
}

#[derive(Default)]
struct Lane<'a> {
    waiting: VecDeque<Arrived>,
    /// Claims with a directive under way.
    busy: BTreeSet<String>,
    under_way: FuturesUnordered<BoxFuture<'a, (String, DirectiveResult)>>,
}

impl<'a> Lane<'a> {
    /// Starts what there are places for: in order, but passing by those whose claim is busy.
    fn start(&mut self, places: usize, by: &'a Directives) {
        while self.under_way.len() < places {
            let free = |arrived: &Arrived| !self.busy.contains(claim(&arrived.directive));
            let Some(next) = self.waiting.iter().position(free) else { return };
            let Some(arrived) = self.waiting.remove(next) else { return };
            let claim = claim(&arrived.directive).to_owned();
            if !claim.is_empty() {
                self.busy.insert(claim.clone());
            }
            self.under_way.push(Box::pin(async move { (claim, by.answer(arrived).await) }));
        }
    }

    fn finished(&mut self, claim: &str) {
        self.busy.remove(claim);
    }
}

impl Directives {
    /// Carries out what is queued until the queue is closed. What earlier sessions were answered is
    /// forgotten: ids are theirs. Directives under way are dropped with this future; whoever asked
    /// will ask again.
    pub async fn run(
        &self,
        mut queue: mpsc::Receiver<Directive>,
        results: mpsc::Sender<DirectiveResult>,
    ) {
        if !planted::is("S1") {
            self.forget();
        }
        let (mut ending, mut opening, mut early, mut writing) =
            (Lane::default(), Lane::default(), Lane::default(), Lane::default());
        let mut open = true;
        loop {
            ending.start(PLACES, self);
            opening.start(OPENING_PLACES, self);
            early.start(EARLY_PLACES, self);
            writing.start(PLACES, self);
            let waiting = ending.waiting.len() + opening.waiting.len() + writing.waiting.len();
            let idle = [&ending, &opening, &early, &writing].map(|lane| lane.under_way.is_empty());
            if !open && idle.iter().all(|idle| *idle) {
                return;
            }
            let (claim, result, lane) = tokio::select! {
                biased;
                Some((claim, result)) = ending.under_way.next() => (claim, result, &mut ending),
                directive = queue.recv(), if open && waiting < DIRECTIVE_QUEUE => {
                    match directive {
                        None => open = false,
                        Some(directive) => {
                            let lane = match lane_of(&directive) {
                                Course::Ending => &mut ending,
                                Course::Opening => &mut opening,
                                Course::Early => &mut early,
                                Course::Writing => &mut writing,
                            };
                            lane.waiting.push_back(Arrived { directive, at: Instant::now() });
                        }
                    }
                    continue;
                }
                Some((claim, result)) = opening.under_way.next() => (claim, result, &mut opening),
                Some((claim, result)) = writing.under_way.next() => (claim, result, &mut writing),
                Some((claim, result)) = early.under_way.next() => (claim, result, &mut early),
            };
            lane.finished(&claim);
            // A closed session wants no results.
            let _ = results.send(result).await;
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Course {
    Ending,
    Opening,
    Early,
    Writing,
}

fn lane_of(directive: &Directive) -> Course {
    if planted::is("S25") {
        return Course::Writing;
    }
    match &directive.action {
        Some(
            Action::DeleteClaim(_)
            | Action::ReleaseClaim(_)
            | Action::DisruptClaim(_)
            | Action::RecordLaunch(_)
            | Action::RecordLaunchFailure(_),
        ) => Course::Ending,
        Some(Action::RegisterNode(_) | Action::NominatePods(_)) => Course::Opening,
        Some(Action::PinPods(_)) => Course::Early,
        Some(
            Action::CreateClaim(_)
            | Action::SetNodeClassStatus(_)
            | Action::SetNodePoolStatus(_)
            | Action::SetConditions(_)
            | Action::PublishEvent(_)
            | Action::NoteDrift(_),
        )
        | None => Course::Writing,
    }
}

/// The claim whose directives keep their order; empty for those that need none.
fn claim(directive: &Directive) -> &str {
    match &directive.action {
        Some(Action::DeleteClaim(a)) => &a.claim,
        Some(Action::ReleaseClaim(a)) => &a.claim,
        Some(Action::DisruptClaim(a)) => &a.claim,
        Some(Action::RecordLaunch(a)) => &a.claim,
        Some(Action::RecordLaunchFailure(a)) => &a.claim,
        Some(
            Action::RegisterNode(_)
            | Action::NominatePods(_)
            | Action::PinPods(_)
            | Action::CreateClaim(_)
            | Action::SetNodeClassStatus(_)
            | Action::SetNodePoolStatus(_)
            | Action::SetConditions(_)
            | Action::PublishEvent(_)
            | Action::NoteDrift(_),
        )
        | None => "",
    }
}

#[cfg(test)]
mod tests;
