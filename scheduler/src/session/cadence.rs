//! When to plan, and what a plan need not look at yet.
//!
//! Invariant: what waits does so for a named time, measured by the process's own clock. Pods that
//! need a place are planned for at once; what only may matter is planned for together; the tail of
//! a burst is bought when the burst is over.

use std::time::Duration;

use tokio::time::Instant;

/// A plan waits until no change has come for this long, so that a burst of pods is packed together.
const QUIET: Duration = Duration::from_millis(50);
/// A plan waits no longer than this after the first change.
const GATHER_MAX: Duration = Duration::from_millis(300);
/// Changes after which no pod needs another place (one is bound, a claim is registered) are planned
/// for together, this long after the plan before.
const ECHO_EVERY: Duration = Duration::from_secs(1);
/// What nodes could go by choice is looked at no more often than this.
const CONSOLIDATE_EVERY: Duration = Duration::from_secs(1);
/// Neither is done more often than so many times as long as the plan before took: a large cluster
/// that changes all the time leaves the processor to others, and to its own pods.
const REST_FACTOR: u32 = 10;
/// Pods that come within this time of each other are one burst: twice what a plan waits for quiet,
/// for controllers create pods in rounds.
const BURST_GAP: Duration = Duration::from_millis(100);
/// Pods that kube-scheduler places in a second, at the most: by default its client may make fifty
/// requests a second.
const PLACES_PER_SECOND: u32 = 200;
/// However much is ahead of a burst's tail, it is held no longer than this many times `burst_max`.
const PATIENCE: u32 = 5;
/// Pods that come within this part of that time of each other are one burst, too.
const GAPS: u32 = 10;
const _: () = assert!(
    BURST_GAP.as_millis() == 2 * QUIET.as_millis()
        && BURST_GAP.as_millis() < GATHER_MAX.as_millis()
);

/// What a change of the view calls for, from the least to the most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stir {
    /// Nothing: no plan would differ.
    #[default]
    Nothing,
    /// A plan may differ, but no pod waits for it.
    Echo,
    /// A pod may need a place, or what a user wants has changed.
    Demand,
    /// A pod has come that needs a place, and more may follow.
    Arrival,
}

/// Changes that are planned for together.
#[derive(Clone, Copy)]
struct Gathered {
    first: Instant,
    last: Instant,
}

impl Gathered {
    /// When no more have come for a moment; as late as may be while more are expected.
    fn due_at(self, more: bool) -> Instant {
        let latest = self.first + GATHER_MAX;
        if more { latest } else { latest.min(self.last + QUIET) }
    }
}

/// A wish to plan.
struct Wish {
    gathered: Gathered,
    traceparents: Vec<String>,
}

/// Pods that come one after the other.
struct Burst {
    /// When the first came, or what came until then was served.
    first: Instant,
    last: Instant,
    /// Messages that brought pods.
    rounds: u64,
}

/// How often a plan is asked what keeps nodes: it looks at all of them for that.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// When the next plan is due.
pub struct Cadence {
    /// Launches that more pods could better are held no longer than this after a burst has begun.
    burst_max: Duration,
    wish: Option<Wish>,
    /// How many more pods are to come is about to be known.
    counting: bool,
    echo: Option<Gathered>,
    wake: Option<Instant>,
    not_before: Option<Instant>,
    burst: Option<Burst>,
    /// How long kube-scheduler has others to place before it comes to the tail of the burst.
    busy_for: Duration,
    planned: Option<Instant>,
    consolidated: Option<Instant>,
    /// How long the newest plan took.
    took: Duration,
    /// When a plan was last asked what keeps nodes.
    looked: Option<Instant>,
}

impl Cadence {
    /// Nothing is wanted yet.
    #[must_use]
    pub const fn new(burst_max: Duration) -> Self {
        Self {
            burst_max,
            wish: None,
            counting: false,
            echo: None,
            wake: None,
            not_before: None,
            burst: None,
            busy_for: Duration::ZERO,
            planned: None,
            consolidated: None,
            took: Duration::ZERO,
            looked: None,
        }
    }

    /// True when a plan is to say once more what keeps nodes.
    pub fn looks_again(&mut self) -> bool {
        let due = self.looked.is_none_or(|at| at.elapsed() >= LOOK_EVERY);
        if due {
            self.looked = Some(Instant::now());
        }
        due
    }

    /// Something has changed; `traceparent` is the trace of the change, empty when untraced.
    pub fn stir(&mut self, stir: Stir, traceparent: &str) {
        let now = Instant::now();
        match stir {
            Stir::Nothing => {}
            Stir::Echo => self.echo.get_or_insert(Gathered { first: now, last: now }).last = now,
            Stir::Demand => self.want(now, traceparent),
            Stir::Arrival => {
                self.arrive(now);
                self.want(now, traceparent);
            }
        }
    }

    fn want(&mut self, now: Instant, traceparent: &str) {
        let gathered = Gathered { first: now, last: now };
        let wish = self.wish.get_or_insert(Wish { gathered, traceparents: Vec::new() });
        wish.gathered.last = now;
        if !traceparent.is_empty() && !wish.traceparents.iter().any(|known| known == traceparent) {
            wish.traceparents.push(traceparent.to_owned());
        }
    }

    fn arrive(&mut self, now: Instant) {
        let fresh = Burst { first: now, last: now, rounds: 0 };
        let gap = self.gap();
        let burst = self.burst.take().filter(|burst| now < burst.last + gap);
        let burst = self.burst.insert(burst.unwrap_or(fresh));
        burst.last = now;
        burst.rounds += 1;
    }

    /// Whether it is about to be known how many more pods are to come: a plan waits for that as
    /// long as for a burst of changes.
    pub const fn count(&mut self, counting: bool) {
        self.counting = counting;
    }

    /// True when somebody waits for a plan already.
    #[must_use]
    pub const fn is_wanted(&self) -> bool {
        self.wish.is_some()
    }

    /// Plans nothing for a while.
    pub fn hold(&mut self, wait: Duration) {
        self.not_before = Some(Instant::now() + wait);
    }

    /// Holds plans back no more.
    pub const fn release(&mut self) {
        self.not_before = None;
    }

    /// Plans again after a while, also when nothing changes.
    pub fn wake_after(&mut self, wait: Duration) {
        let at = Instant::now() + wait;
        self.wake = Some(self.wake.map_or(at, |wake| wake.min(at)));
    }

    /// When the next plan is due; none while nothing is waited for. One that somebody waits for is
    /// not begun before its time because of what only may matter: that is planned for with it.
    #[must_use]
    pub fn due_at(&self) -> Option<Instant> {
        let wished = self.wish.as_ref().map(|wish| wish.gathered.due_at(self.counting));
        let at = wished.or_else(|| [self.echoed_at(), self.wake].into_iter().flatten().min())?;
        Some(self.not_before.map_or(at, |until| at.max(until)))
    }

    /// When echoes are due: not in the midst of a burst of them, which may end with a node empty.
    fn echoed_at(&self) -> Option<Instant> {
        let (echo, every) = (self.echo?, ECHO_EVERY.max(self.took * REST_FACTOR));
        let settled = echo.due_at(false);
        Some(self.planned.map_or(settled, |planned| settled.max(planned + every)))
    }

    /// A plan begins, which answers everything until now; `expects` when it knows of pods to come.
    /// Returns the traces that asked for it, and whether it is to look at what could go by choice:
    /// not while pods come, and not more often than is of use.
    pub fn begin(&mut self, expects: bool) -> (Vec<String>, bool) {
        let now = Instant::now();
        let wish = self.wish.take();
        (self.echo, self.wake, self.planned) = (None, None, Some(now));
        let every = CONSOLIDATE_EVERY.max(self.took * REST_FACTOR);
        let tired_for = self.consolidated.map(|last| (last + every).saturating_duration_since(now));
        let rest = tired_for.filter(|rest| !rest.is_zero());
        let consolidates = rest.is_none() && !expects && self.gathers_until().is_none();
        if consolidates {
            self.consolidated = Some(now);
        } else {
            self.wake_after(rest.unwrap_or(every));
        }
        (wish.map(|wish| wish.traceparents).unwrap_or_default(), consolidates)
    }

    /// The plan that has begun is there.
    pub fn ended(&mut self) {
        self.took = self.planned.map_or(Duration::ZERO, |began| began.elapsed());
    }

    /// Until when what more pods could better is not bought yet; none when no more pods are coming,
    /// or these have waited for long enough. One pod alone is no burst.
    #[must_use]
    pub fn gathers_until(&self) -> Option<Instant> {
        let burst = self.burst.as_ref().filter(|burst| burst.rounds > 1)?;
        let until = (burst.last + self.gap()).min(burst.first + self.patience());
        (until > Instant::now()).then_some(until)
    }

    /// How many pods that have a place kube-scheduler has to come to before those of the tail: for
    /// as long as that takes, the tail can wait and nobody runs later for it.
    pub fn comes_after(&mut self, pods: usize) {
        let pods = u32::try_from(pods).unwrap_or(u32::MAX);
        self.busy_for = Duration::from_secs(1).saturating_mul(pods) / PLACES_PER_SECOND;
    }

    /// How long the tail of a burst can wait at no loss.
    fn spare(&self) -> Duration {
        self.busy_for.min(self.burst_max * PATIENCE)
    }

    /// How long the tail is held at most.
    fn patience(&self) -> Duration {
        self.spare().max(self.burst_max)
    }

    /// How long no pod comes after a burst.
    fn gap(&self) -> Duration {
        BURST_GAP.max(self.spare() / GAPS)
    }

    /// Everything that has come is served: what follows is a burst of its own.
    pub fn served(&mut self) {
        let now = Instant::now();
        if let Some(burst) = &mut self.burst {
            burst.first = now;
        }
    }
}

#[cfg(test)]
mod tests;
