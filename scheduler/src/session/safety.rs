//! What keeps a session from ending what is well: time to settle, the breaker, and what has been
//! spared.
//!
//! Invariant: measured by the session's own clock. Nothing that rests on absence is admitted before
//! the view has been whole for [`SETTLE_MS`] without a stall, or beyond the breaker.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use longshore_core::question::Spared;
use longshore_core::vocabulary::ids::ClaimName;
use longshore_proto::limits::DIRECTIVE_TTL_MS;
use longshore_runtime::planted;
use tokio::time::Instant;

use super::breaker::Breaker;
use super::dispatch::PLAN_TTL_MS;
use super::sightings::Sightings;
use crate::counters::{Counters, OneMore};

/// How long a view must have been whole before absence in it means anything, in milliseconds: what
/// an earlier session asked for is carried out and seen by then: it is longer than directives live.
const SETTLE_MS: i64 = 30_000;
const _: () = assert!(SETTLE_MS > DIRECTIVE_TTL_MS as i64);
/// A session that has not looked for this long was stopped, in milliseconds: what it knows is old.
/// Longer than any pass, and than the timer behind every signal.
const STALL_MS: i64 = 10_000;
/// How long a launch that was asked of the actuator may take to be seen, in milliseconds: longer
/// than a recorded plan may wait.
const LAUNCH_SEEN_MS: i64 = 90_000;
const _: () = assert!(LAUNCH_SEEN_MS > PLAN_TTL_MS);
/// How long a node whose disruption was called off is left alone, in milliseconds.
const SPARED_MS: i64 = 5 * 60 * 1000;
/// Most nodes that are named when something is frozen.
pub const NAMED: usize = 20;

/// Why nodes are not ended that otherwise would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Freeze {
    /// CamelCase, stable.
    pub reason: &'static str,
    /// What is the matter, and the way out.
    pub message: String,
    /// Claims and instances that it is about, the first of them.
    pub claims: Vec<String>,
}

/// What a session remembers for safety's sake.
pub struct Safety {
    /// Since when states have lasted that must not last.
    pub sightings: Sightings,
    /// Claims of whose instances nothing has been known for long.
    pub unknown: BTreeSet<String>,
    /// Pools of which too many nodes ail for any to be replaced, and how it stands with them.
    pub repair_blocked: BTreeMap<String, String>,
    breaker: Arc<Mutex<Breaker>>,
    whole_since_ms: Option<i64>,
    looked_ms: i64,
    launched: BTreeMap<String, i64>,
    spared: BTreeMap<String, i64>,
    held_back: BTreeSet<String>,
    /// What the look before held back, too: it has been counted.
    held_before: BTreeSet<String>,
    losses_accepted: bool,
    freeze: Option<Freeze>,
    counters: Counters,
    counted: Option<OneMore>,
}

impl Safety {
    /// At the beginning of a session of a cluster that has this breaker.
    #[must_use]
    pub fn new(breaker: Arc<Mutex<Breaker>>, counters: Counters) -> Self {
        Self {
            sightings: Sightings::default(),
            unknown: BTreeSet::new(),
            repair_blocked: BTreeMap::new(),
            breaker,
            whole_since_ms: None,
            looked_ms: 0,
            launched: BTreeMap::new(),
            spared: BTreeMap::new(),
            held_back: BTreeSet::new(),
            held_before: BTreeSet::new(),
            losses_accepted: false,
            freeze: None,
            counters,
            counted: None,
        }
    }

    /// The view has come whole.
    pub const fn whole(&mut self, now_ms: i64) {
        self.whole_since_ms = Some(now_ms);
    }

    /// The session looks at everything. After a stall it begins to observe anew.
    pub fn look(&mut self, now_ms: i64) {
        if now_ms - self.looked_ms > STALL_MS && self.whole_since_ms.is_some() {
            self.sightings.clear();
            self.whole_since_ms = Some(now_ms);
        }
        self.looked_ms = now_ms;
        self.launched.retain(|_, asked_ms| now_ms - *asked_ms < LAUNCH_SEEN_MS);
        self.spared.retain(|_, since_ms| now_ms - *since_ms < SPARED_MS);
        self.held_before = std::mem::take(&mut self.held_back);
    }

    /// True when absence in the view means something.
    #[must_use]
    pub fn is_settled(&self, now_ms: i64) -> bool {
        let settled = self.whole_since_ms.is_some_and(|since_ms| now_ms - since_ms >= SETTLE_MS);
        settled || planted::is("S1a")
    }

    /// A launch for the claim is asked of the actuator. True when that is so for the first time, as
    /// far as is known.
    pub fn launching(&mut self, claim: &str, now_ms: i64) -> bool {
        self.launched.insert(claim.to_owned(), now_ms).is_none()
    }

    /// Claims whose launch may be on its way.
    #[must_use]
    pub fn asked(&self) -> BTreeSet<String> {
        self.launched.keys().cloned().collect()
    }

    /// The disruption of a claim has been called off.
    pub fn spare(&mut self, claim: &str, now_ms: i64) {
        self.spared.entry(claim.to_owned()).or_insert(now_ms);
    }

    /// Claims that are left alone for now, and until when.
    #[must_use]
    pub fn spared(&self) -> BTreeMap<ClaimName, Spared> {
        let until = |(claim, since_ms): (&String, &i64)| {
            (ClaimName::new(claim), Spared::UntilMs(since_ms + SPARED_MS))
        };
        self.spared.iter().map(until).collect()
    }

    /// True when the claim is left alone for now.
    #[must_use]
    pub fn is_spared(&self, claim: &str) -> bool {
        self.spared.contains_key(claim)
    }

    /// A person lets everything go that seems to be gone, or does not any more.
    pub const fn accept_losses(&mut self, accepted: bool) {
        self.losses_accepted = accepted;
    }

    /// Whether something may end on absence, in a cluster of `nodes` nodes. What may not is
    /// remembered.
    pub fn admits(&mut self, name: &str, nodes: usize) -> bool {
        let mut breaker = self.breaker.lock().unwrap_or_else(PoisonError::into_inner);
        let admitted = breaker.admits(name, nodes, Instant::now()) || self.losses_accepted;
        drop(breaker);
        if !admitted && self.held_back.insert(name.to_owned()) && !self.held_before.contains(name) {
            self.counters.held_back.inc();
        }
        admitted
    }

    /// Says what is frozen after a look; `unreadable` is why something cannot be judged at all.
    pub fn conclude(&mut self, cluster: &str, unreadable: Option<String>) {
        let freeze = match (unreadable, self.held_back.len()) {
            (Some(why), _) => Some(Freeze {
                reason: "Unreadable",
                message: format!(
                    "{why}; no node is ended by choice or on absence until it can be read: correct or \
                     delete the object, or upgrade longshore-watcher"
                ),
                claims: Vec::new(),
            }),
            (None, 0) => None,
            (None, count) => Some(Freeze {
                reason: "Frozen",
                message: format!(
                    "{count} nodes or instances seem to be gone and nobody said so, more than may end on \
                     that within ten minutes; compare EC2, NodeClaims and Nodes. It goes on by itself, \
                     a few at a time, or stops when they are there again; to let all of them go, annotate \
                     a NodePool with longshore.dev/accept-losses-until and a time a few minutes ahead"
                ),
                claims: self.held_back.iter().take(NAMED).cloned().collect(),
            }),
        };
        let reason = |freeze: &Option<Freeze>| freeze.as_ref().map(|freeze| freeze.reason);
        if reason(&freeze) != reason(&self.freeze) {
            match &freeze {
                Some(freeze) => {
                    tracing::error!(cluster, reason = freeze.reason, "{}", freeze.message);
                }
                None => tracing::info!(cluster, "nodes may be ended again"),
            }
        }
        if freeze.is_some() != self.counted.is_some() {
            self.counted = freeze.as_ref().map(|_| OneMore::of(&self.counters.frozen));
        }
        self.freeze = freeze;
    }

    /// Why nodes are not ended that otherwise would be.
    #[must_use]
    pub const fn freeze(&self) -> Option<&Freeze> {
        self.freeze.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absence_means_nothing_until_the_view_has_settled_and_not_after_a_stall() {
        let mut safety = Safety::new(Arc::default(), Counters::default());
        safety.look(0);
        assert!(!safety.is_settled(SETTLE_MS * 2), "there is no view yet");
        safety.whole(1_000);
        let mut at_ms = 1_000;
        while at_ms < 1_000 + SETTLE_MS {
            safety.look(at_ms);
            assert!(!safety.is_settled(at_ms));
            at_ms += 1_000;
        }
        safety.look(at_ms);
        assert!(safety.is_settled(at_ms));
        safety.sightings.observe(BTreeSet::from(["orphan/i-1".to_owned()]), at_ms);
        let stopped_ms = at_ms + STALL_MS + 1;
        safety.look(stopped_ms);
        assert!(!safety.is_settled(stopped_ms), "what it knows is old");
        assert_eq!(safety.sightings.lasted_ms("orphan/i-1", stopped_ms), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn what_the_breaker_holds_back_is_said_and_forgotten_when_it_is_over() {
        let mut safety = Safety::new(Arc::default(), Counters::default());
        safety.look(0);
        let admitted = ["a", "b", "c"].map(|name| safety.admits(name, 3));
        assert_eq!(admitted, [true, true, false]);
        safety.conclude("prod", None);
        let freeze = safety.freeze().unwrap();
        assert_eq!((freeze.reason, freeze.claims.as_slice()), ("Frozen", &["c".to_owned()][..]));
        safety.accept_losses(true);
        assert!(safety.admits("c", 3), "somebody has looked");
        safety.accept_losses(false);
        assert!(!safety.admits("c", 3));
        safety.look(1);
        safety.conclude("prod", None);
        assert_eq!(safety.freeze(), None, "it is there again");
        safety.conclude("prod", Some("NODE_CLAIM a cannot be read".to_owned()));
        assert_eq!(safety.freeze().unwrap().reason, "Unreadable");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_frozen_is_counted_while_it_is_and_what_is_held_back_once() {
        let metrics = longshore_runtime::metrics::Metrics::new();
        let counters = Counters::registered(&metrics);
        let shown = |name: &str| {
            let text = metrics.text();
            let line = text.lines().find_map(|line| line.strip_prefix(name).map(str::to_owned));
            line.unwrap_or_default().trim().to_owned()
        };
        let frozen = || shown("longshore_scheduler_frozen_clusters ");
        let held = || shown("longshore_scheduler_breaker_held_back_total ");
        let of = || Safety::new(Arc::default(), counters.clone());
        let (mut one, mut other) = (of(), of());
        let look = |safety: &mut Safety, names: &[&str], at_ms: i64| {
            safety.look(at_ms);
            for name in names {
                safety.admits(name, 3);
            }
            safety.conclude("prod", None);
        };
        look(&mut one, &["a", "b", "c"], 0);
        assert_eq!((frozen(), held()), ("1".to_owned(), "1".to_owned()));
        look(&mut one, &["c", "d"], 1);
        look(&mut other, &["a"], 1);
        other.conclude("dev", Some("kind Pod cannot be read".to_owned()));
        assert_eq!((frozen(), held()), ("2".to_owned(), "2".to_owned()));
        look(&mut one, &[], 2);
        assert_eq!(frozen(), "1", "it goes on");
        drop(other);
        assert_eq!(frozen(), "0", "its session is over");
        look(&mut one, &["d"], 3);
        assert_eq!((frozen(), held()), ("1".to_owned(), "3".to_owned()));
    }
}
