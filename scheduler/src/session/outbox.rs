//! Directives on their way to the watcher, and what must not be asked again too soon.
//!
//! Invariant: the same need is asked for once until it is answered or its time is over. A full
//! stream loses nothing: needs are derived from state and come up again on the next pass.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use longshore_proto::cluster::v1 as cluster;
use longshore_proto::cluster::v1::directive::Action;
use longshore_proto::cluster::v1::sync_response::Message;
use longshore_proto::limits::{DIRECTIVE_QUEUE, DIRECTIVE_TTL_MS};
use longshore_runtime::backoff::{Backoff, BackoffPolicy};
use longshore_runtime::clock::Clock;
use longshore_runtime::entropy::Entropy;
use longshore_runtime::planted;
use tokio::sync::mpsc;
use tonic::Status;

use super::lifecycle::is_urgent;
use crate::wire::timestamp;

/// How long a need rests after it was met, until watched state shows it, in milliseconds.
const REST_AFTER_DONE_MS: i64 = 2_000;
/// Beginnings of the keys under which the status of objects is said.
const STATUS_KEYS: [&str; 4] = ["class-status/", "pool-status/", "conditions/", "expiring/"];
/// How long a need rests after it could not be met, in milliseconds.
const REST_AFTER_FAILURE_MS: i64 = 3_000;

/// What was asked and is not answered yet.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Need it serves.
    pub key: String,
    /// Claim it is about; empty when it is about none.
    pub claim: String,
    /// True for the creation of a claim.
    pub creates: bool,
    until_ms: i64,
}

/// Waits of a need that nobody could be asked for: an actuator that refuses one is not asked every
/// moment.
const ASKED_AGAIN: BackoffPolicy =
    BackoffPolicy { minimum: Duration::from_millis(500), maximum: Duration::from_secs(60) };
/// A need that has not failed for this long starts over, in milliseconds.
const FAILURE_KEPT_MS: i64 = 10 * 60 * 1000;
/// Most directives without an answer: a plan that needs more waits for results.
const ASKED_MAX: usize = 4 * DIRECTIVE_QUEUE;
/// From this many on, what was said about pods that are gone is forgotten.
const SAID_MAX: usize = DIRECTIVE_QUEUE;

/// A need that could not be met, and when that was last so.
struct Failing {
    waits: Backoff,
    last_ms: i64,
}

/// One lane of the stream to a watcher.
pub type Lane = mpsc::Sender<Result<cluster::SyncResponse, Status>>;

/// The stream to a watcher: what is urgent overtakes what waits.
#[derive(Clone)]
pub struct Lanes {
    /// Interruptions, deletions and releases.
    pub urgent: Lane,
    /// Everything else, in order; its error ends the stream.
    pub plain: Lane,
}

/// Where directives leave.
pub struct Outbox {
    lanes: Lanes,
    session_epoch: u64,
    clock: Clock,
    next_id: u64,
    asked: BTreeMap<String, Asked>,
    resting: BTreeMap<String, i64>,
    failing: BTreeMap<String, Failing>,
    said: BTreeMap<String, String>,
}

/// What goes along with every directive of one plan or pass.
#[derive(Clone, Copy, Debug, Default)]
pub struct Origin<'a> {
    /// Plan the directive stems from; empty for a step of a claim's life.
    pub plan_id: &'a str,
    /// Trace it belongs to.
    pub traceparent: &'a str,
    /// Milliseconds of the session.
    pub now_ms: i64,
}

impl Outbox {
    /// An outbox that writes to the Sync stream of a session.
    #[must_use]
    pub const fn new(lanes: Lanes, session_epoch: u64, clock: Clock) -> Self {
        Self {
            lanes,
            session_epoch,
            clock,
            next_id: 0,
            asked: BTreeMap::new(),
            resting: BTreeMap::new(),
            failing: BTreeMap::new(),
            said: BTreeMap::new(),
        }
    }

    /// Sends a message that is not a directive. False when the stream is full or closed.
    pub fn send(&self, message: Message) -> bool {
        Self::post(&self.lanes.plain, message)
    }

    fn post(lane: &Lane, message: Message) -> bool {
        lane.try_send(Ok(cluster::SyncResponse { message: Some(message) })).is_ok()
    }

    /// True when the need may be asked for now.
    #[must_use]
    pub fn is_free(&self, key: &str, now_ms: i64) -> bool {
        self.resting.get(key).is_none_or(|until| *until <= now_ms)
    }

    /// Lets a need rest until the given time, in milliseconds of the session.
    pub fn rest(&mut self, key: &str, until_ms: i64) {
        self.resting.insert(key.to_owned(), until_ms);
    }

    /// Nobody could be asked for the need: it rests, longer with every time.
    pub fn fail(&mut self, key: &str, now_ms: i64, entropy: &Entropy) {
        let fresh =
            || Failing { waits: Backoff::new(ASKED_AGAIN, entropy.clone()), last_ms: now_ms };
        let failing = self.failing.entry(key.to_owned()).or_insert_with(fresh);
        failing.last_ms = now_ms;
        let wait =
            if planted::is("S29") { ASKED_AGAIN.minimum } else { failing.waits.next_delay() };
        self.rest(key, now_ms + i64::try_from(wait.as_millis()).unwrap_or(i64::MAX / 2));
    }

    /// Somebody could be asked for the need.
    pub fn succeed(&mut self, key: &str) {
        self.failing.remove(key);
    }

    /// Asks for `action`, unless the need rests. True when the directive was sent.
    pub fn direct(&mut self, key: &str, claim: &str, action: Action, origin: Origin<'_>) -> bool {
        let urgent = is_urgent(&action) && !planted::is("S25s");
        if !self.is_free(key, origin.now_ms) || (self.asked.len() >= ASKED_MAX && !urgent) {
            return false;
        }
        self.next_id += 1;
        let directive_id = self.directive_id();
        let until_ms = origin.now_ms + i64::from(DIRECTIVE_TTL_MS);
        let creates = matches!(action, Action::CreateClaim(_));
        let directive = cluster::Directive {
            directive_id: directive_id.clone(),
            plan_id: origin.plan_id.to_owned(),
            expire_time: Some(timestamp(self.clock.now_ms() + i64::from(DIRECTIVE_TTL_MS))),
            traceparent: origin.traceparent.to_owned(),
            action: Some(action),
        };
        let lane = if urgent { &self.lanes.urgent } else { &self.lanes.plain };
        if !Self::post(lane, Message::Directive(directive)) {
            tracing::warn!(key, "directive held back: the watcher's stream is full");
            return false;
        }
        let asked = Asked { key: key.to_owned(), claim: claim.to_owned(), creates, until_ms };
        self.asked.insert(directive_id, asked);
        self.rest(key, until_ms);
        true
    }

    /// Unique for all time: no two sessions of a cluster have the same epoch.
    fn directive_id(&self) -> String {
        if planted::is("S1") {
            return format!("d{}", self.next_id);
        }
        format!("{:x}-{}", self.session_epoch, self.next_id)
    }

    /// Asks for `action` only when its content differs from what was last said under the key. For
    /// status and Events, whose repetition would tell nobody anything new.
    pub fn direct_once(&mut self, key: &str, content: &str, action: Action, origin: Origin<'_>) {
        if self.said.get(key).is_some_and(|said| said == content) {
            return;
        }
        if self.direct(key, "", action, origin) {
            self.said.insert(key.to_owned(), content.to_owned());
        }
    }

    /// Forgets what was said of objects that are gone: one that comes back has no status. `present`
    /// has the keys of the status of all objects there are.
    pub fn forget_gone(&mut self, present: &BTreeSet<&str>) {
        let status = |key: &str| STATUS_KEYS.iter().any(|kind| key.starts_with(kind));
        self.said.retain(|key, _| !status(key) || present.contains(key.as_str()));
    }

    /// Forgets what was said about pods that are gone.
    pub fn forget_pods(&mut self, is_there: impl Fn(&str) -> bool) {
        if self.said.len() > SAID_MAX {
            self.said.retain(|key, _| key.strip_prefix("event/").is_none_or(&is_there));
        }
    }

    /// Takes note of an answer. `None` when the directive is unknown, for example from before.
    pub fn answered(
        &mut self,
        result: &cluster::DirectiveResult,
        now_ms: i64,
    ) -> Option<(Asked, bool)> {
        let asked = self.asked.remove(&result.directive_id)?;
        let done = result.status() == cluster::DirectiveStatus::Done;
        let rest = if done { REST_AFTER_DONE_MS } else { REST_AFTER_FAILURE_MS };
        if !done {
            self.said.remove(&asked.key);
        }
        self.rest(&asked.key, now_ms + rest);
        Some((asked, done))
    }

    /// Forgets what is past its time.
    pub fn expire(&mut self, now_ms: i64) {
        self.asked.retain(|_, asked| asked.until_ms > now_ms);
        self.resting.retain(|_, until| *until > now_ms);
        self.failing.retain(|_, failing| now_ms - failing.last_ms < FAILURE_KEPT_MS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Received = mpsc::Receiver<Result<cluster::SyncResponse, Status>>;

    /// An outbox with room for some in each lane: the urgent one first.
    fn outbox(session_epoch: u64, room: usize) -> (Outbox, Received, Received) {
        let ((urgent, first), (plain, second)) = (mpsc::channel(room), mpsc::channel(room));
        (Outbox::new(Lanes { urgent, plain }, session_epoch, Clock::system()), first, second)
    }

    fn release() -> Action {
        Action::ReleaseClaim(cluster::ReleaseClaim { claim: "a".to_owned(), ..Default::default() })
    }

    fn at(now_ms: i64) -> Origin<'static> {
        Origin { now_ms, ..Default::default() }
    }

    #[test]
    fn a_need_is_asked_once_until_answered_and_rested() {
        let (mut outbox, mut sent, _plain) = outbox(7, 4);
        assert!(outbox.direct("release/a", "a", release(), at(0)));
        assert!(!outbox.direct("release/a", "a", release(), at(1)));
        let result = cluster::DirectiveResult {
            directive_id: "7-1".to_owned(),
            status: cluster::DirectiveStatus::Done.into(),
            ..Default::default()
        };
        let (asked, done) = outbox.answered(&result, 10).unwrap();
        assert!(done && asked.claim == "a");
        assert!(!outbox.direct("release/a", "a", release(), at(11)));
        assert!(outbox.direct("release/a", "a", release(), at(10 + REST_AFTER_DONE_MS)));
        assert!(outbox.answered(&result, 20).is_none());
        assert!(sent.try_recv().is_ok());
    }

    #[test]
    fn directive_ids_never_repeat_over_sessions() {
        let ids = |epoch| {
            let (mut outbox, mut sent, _plain) = outbox(epoch, 4);
            assert!(outbox.direct("release/a", "a", release(), at(0)));
            assert!(outbox.direct("release/b", "b", release(), at(0)));
            let id = |sent: &mut mpsc::Receiver<Result<cluster::SyncResponse, Status>>| match sent
                .try_recv()
                .unwrap()
                .unwrap()
                .message
            {
                Some(Message::Directive(directive)) => directive.directive_id,
                other => panic!("no directive: {other:?}"),
            };
            [id(&mut sent), id(&mut sent)]
        };
        let all: BTreeSet<String> = (1..40).flat_map(ids).collect();
        assert_eq!(all.len(), 78);
    }

    #[test]
    fn what_is_urgent_overtakes_a_plan_that_fills_the_stream() {
        let (mut outbox, mut urgent, _plain) = outbox(7, 1);
        let create = || Action::CreateClaim(cluster::CreateClaim::default());
        assert!(outbox.direct("create/a", "a", create(), at(0)));
        assert!(!outbox.direct("create/b", "b", create(), at(0)), "the lane is full");
        assert!(outbox.direct("release/c", "c", release(), at(0)));
        assert!(urgent.try_recv().is_ok());
        let chosen =
            cluster::DeleteClaim { assumes: Some(Default::default()), ..Default::default() };
        let chosen = Action::DeleteClaim(chosen);
        assert!(!outbox.direct("delete/d", "d", chosen, at(0)), "by choice, it waits its turn");
    }

    #[test]
    fn a_need_that_fails_rests_longer_with_every_time() {
        let (mut outbox, _urgent, _plain) = outbox(7, 1);
        let entropy = Entropy::seeded(1);
        let mut now_ms = 0;
        let mut longest_ms = 0;
        for _ in 0..20 {
            outbox.fail("launch/a", now_ms, &entropy);
            let failed_ms = now_ms;
            while !outbox.is_free("launch/a", now_ms) {
                now_ms += 50;
            }
            longest_ms = longest_ms.max(now_ms - failed_ms);
        }
        assert!((10_000..=60_050).contains(&longest_ms), "{longest_ms}");
        outbox.succeed("launch/a");
        outbox.fail("launch/a", now_ms, &entropy);
        assert!(outbox.is_free("launch/a", now_ms + 500), "it starts over");
    }

    #[test]
    fn what_was_said_about_pods_that_are_gone_is_forgotten() {
        let (mut outbox, _urgent, _plain) = outbox(7, SAID_MAX + 2);
        for index in 0..=SAID_MAX {
            outbox.direct_once(&format!("event/{index}"), "no room", release(), at(0));
        }
        outbox.forget_pods(|uid| uid == "7");
        assert_eq!(outbox.said.len(), 1);
    }

    #[test]
    fn a_full_stream_keeps_the_need_free() {
        let (mut outbox, _sent, _plain) = outbox(7, 1);
        assert!(outbox.direct("release/a", "a", release(), at(0)));
        assert!(!outbox.direct("release/b", "b", release(), at(0)));
        assert!(outbox.is_free("release/b", 0));
    }
}
