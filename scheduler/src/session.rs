//! One task per connected cluster: it owns the view, plans, and directs.
//!
//! Invariant: one straight loop. Messages, region changes, outcomes and time only change state;
//! every effect is derived from the whole state by [`Session::pass`], on a signal and on a timer.

mod binding;
mod breaker;
mod buffers;
mod cadence;
mod candidates;
mod commit;
mod company;
mod dispatch;
mod drift;
mod duds;
mod effects;
mod evictions;
mod explain;
mod foresight;
mod health;
mod holds;
mod inbox;
mod joined;
mod lifecycle;
mod live;
mod outage;
mod outbox;
mod overlays;
mod planning;
mod pools;
mod proposal;
mod protocol;
mod quarantine;
mod record;
mod rest;
mod rollout;
mod safety;
mod sightings;
mod state;
mod status;
mod stir;
mod supply;
mod tombstones;
mod unclaimed;
mod verdict;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use longshore_proto::cluster::v1 as cluster;
use longshore_proto::cluster::v1::sync_response::Message;
use longshore_proto::limits::{BOOKMARK_INTERVAL_SECONDS, DIRECTIVE_QUEUE, SYNC_WINDOW};
use longshore_proto::reason::Reason;
use longshore_runtime::identity::Identity;
use longshore_runtime::planted;
use longshore_runtime::tasks::Supervisor;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};

use self::commit::early::Early;
use self::dispatch::{Dispatched, Numbering, Parcel};
use self::holds::Holds;
use self::outage::Outage;
use self::outbox::Outbox;
use self::planning::Planning;
use self::protocol::Receiver;
use self::rest::Rest;
use self::safety::Safety;
use self::state::ClusterState;
use crate::counters::Counters;
use crate::memory::ViewMemory;
use crate::region::directory::{Region, Regions};
use crate::settings::Settings;

pub use self::breaker::Breaker;
pub use self::explain::Query;
pub use self::outbox::{Lane, Lanes};
pub use self::protocol::hello;

/// The timer behind every signal: what needs doing is looked at anew at least this often.
const TICK: Duration = Duration::from_secs(1);
/// A session that has not come round for this long has stalled, and the process ends: its clusters
/// are taken over by others.
const ROUND_MAX: Duration = Duration::from_secs(120);
/// Sign of life after which a silent watcher is dropped: three bookmarks missed.
const SILENCE: Duration = Duration::from_secs(3 * BOOKMARK_INTERVAL_SECONDS);

/// What a session is made of.
pub struct Parts {
    /// First message of the stream.
    pub hello: cluster::Hello,
    /// The stream from the watcher.
    pub inbound: Streaming<cluster::SyncRequest>,
    /// The stream to the watcher.
    pub outbound: Lanes,
    /// The regions within reach.
    pub regions: Regions,
    /// Questions from the planning service.
    pub queries: mpsc::Receiver<Query>,
    /// Cancelled when another session takes over or the process ends.
    pub token: CancellationToken,
    /// Owner of the session's tasks.
    pub supervisor: Supervisor,
    /// How plans are made.
    pub settings: Settings,
    /// What has ended on absence alone, in this session of the cluster and those before.
    pub breaker: Arc<Mutex<Breaker>>,
    /// What is counted.
    pub counters: Counters,
    /// What the view may take.
    pub memory: ViewMemory,
    /// Who the watcher has proved to be.
    pub identity: Option<Arc<Identity>>,
}

/// A session under way.
struct Session {
    state: ClusterState,
    receiver: Receiver,
    outbox: Outbox,
    planning: Planning,
    regions: Regions,
    parcels: mpsc::Sender<Parcel>,
    /// What the newest plan knew of the region's supply.
    supply: Option<(u64, u64)>,
    /// Why nothing can be bought at present, as people have been told.
    outage: Option<Outage>,
    /// Pods that were let in to nodes which have yet to join.
    early: Early,
    /// What keeps nodes.
    holds: Holds,
    /// When people are told again what has changed, in milliseconds of the session.
    status_due_ms: i64,
    /// When the session began: its own clock, which no other host sets.
    began: Instant,
    /// When the watcher is asked to connect anew; none once it has been.
    moves_at: Option<Instant>,
    /// Until when what another session of the cluster asked for just before may be on its way; none
    /// where there was none, or once that is known to whoever plans.
    follows_until: Option<Instant>,
    safety: Safety,
    memory: Option<ViewMemory>,
    /// Who the watcher has proved to be.
    identity: Option<Arc<Identity>>,
    /// Tells of changes in the cluster's region.
    region_changes: Option<watch::Receiver<u64>>,
    /// Owner of tasks, and what the process has of the world outside.
    supervisor: Supervisor,
}

/// How long a session lasts at least before its watcher is asked to connect anew, so that sessions
/// spread over schedulers that have come since.
const SESSION_AGE: Duration = Duration::from_secs(30 * 60);
/// How much longer one may last: watchers that came together do not go together.
const SESSION_AGE_SPREAD: Duration = Duration::from_secs(10 * 60);
/// Longest time that a watcher is asked to wait before it connects again.
const GO_AWAY_DELAY: Duration = Duration::from_secs(2);

/// Size of the channel towards the watcher: directives and the answers to a full window.
#[must_use]
pub const fn outbound_queue() -> usize {
    DIRECTIVE_QUEUE + SYNC_WINDOW as usize
}

/// Runs a session until the watcher leaves, the token is cancelled or the protocol is broken.
///
/// # Errors
/// The status that the stream ended with.
pub async fn run(parts: Parts) -> Result<(), Status> {
    let (mut session, mut outcomes) = begin(&parts);
    let Parts { hello, mut inbound, mut queries, token, memory, .. } = parts;
    session.memory = Some(memory);
    let mut changes = session.regions.changes();
    let (mut heard, mut rest, mut plans) = (Instant::now(), Rest::default(), false);
    session.outbox.send(protocol::welcome());
    let pulse = session.supervisor.platform().pulses.begin("session", ROUND_MAX);
    loop {
        pulse.beat();
        // Where a plan cannot begin, a signal or the timer comes next, not this loop again at once.
        let wake = session.planning.wake_at().filter(|_| plans);
        let wake = rest.wake_at(wake.unwrap_or_else(|| Instant::now() + TICK));
        let mut can_rest = false;
        tokio::select! {
            // In an order of its own, so that a simulation can repeat it. Nothing that comes before
            // the messages comes without end, and a pass looks at what comes after them.
            biased;
            () = token.cancelled() => return Err(session.ended(&hello.cluster_id)),
            proposal = session.planning.finished() => {
                proposal.into_iter().for_each(|proposal| session.commit(proposal));
            }
            Some(outcome) = outcomes.recv() => session.outcome(&outcome),
            Some(query) = queries.recv() => session.answer(query),
            messages = inbox::arrived(&mut inbound) => {
                let messages = messages?;
                if messages.is_empty() {
                    return Ok(());
                }
                heard = Instant::now();
                messages.into_iter().try_for_each(|message| session.receive(message))?;
                can_rest = true;
            }
            // An interruption is among these.
            _ = changes.changed() => {}
            () = changed(&mut session.region_changes) => {}
            () = tokio::time::sleep_until(wake.min(Instant::now() + TICK)) => {}
        }
        if heard.elapsed() > SILENCE {
            return Err(Status::deadline_exceeded("no message from the watcher for too long"));
        }
        if can_rest && rest.takes() {
            continue;
        }
        session.move_on();
        let began = Instant::now();
        plans = session.pass();
        rest.after(began.elapsed());
    }
}

/// A session with its road to the actuator, and what comes back on that.
fn begin(parts: &Parts) -> (Session, mpsc::Receiver<Dispatched>) {
    let (hello, supervisor) = (&parts.hello, parts.supervisor.clone());
    let (platform, epoch) = (supervisor.platform().clone(), hello.session_epoch);
    let numbering = Numbering::new(hello.cluster_id.clone(), epoch, platform.clock.clone());
    let (parcels, parcel_queue) = mpsc::channel(dispatch::QUEUE);
    let (outcomes, outcome_queue) = mpsc::channel(dispatch::QUEUE);
    let dispatching = unless(parts.token.clone(), dispatch::run(numbering, parcel_queue, outcomes));
    let (ended, watcher) = (parts.token.clone(), parts.outbound.plain.clone());
    let cluster_id = hello.cluster_id.clone();
    // Without its road to the actuator a session is of no use; the next one has a new one.
    supervisor.spawn_contained("dispatch", dispatching, move |outcome| {
        if let Err(error) = outcome {
            let message = format!("plans of cluster {cluster_id} are sent no more: {error:#}");
            // Before the session's own last word, which knows of no reason. A watcher that has gone
            // already does not need it.
            let _ = watcher.try_send(Err(Status::internal(message)));
            ended.cancel();
        }
    });
    let planning = Planning::new(epoch, parts.settings.clone(), &platform);
    let state = ClusterState::new(hello.cluster_id.clone(), platform.clock.now_ms());
    let outbox = Outbox::new(parts.outbound.clone(), epoch, platform.clock.clone());
    let roads = (parts.regions.clone(), parcels);
    let mut session = Session::new(state, planning, outbox, roads, supervisor);
    session.state.pins_pods = hello.pins_pods;
    session.follows_until = (epoch > 1).then(|| inbox::settled_at(hello));
    session.identity.clone_from(&parts.identity);
    session.planning.shown = parts.counters.clusters.of(&hello.cluster_id, epoch);
    session.safety = Safety::new(Arc::clone(&parts.breaker), parts.counters.clone());
    (session, outcome_queue)
}

/// Runs a task until the token is cancelled.
async fn unless(token: CancellationToken, task: impl Future<Output = ()>) -> anyhow::Result<()> {
    token.run_until_cancelled(task).await;
    Ok(())
}

/// Waits for a change, for ever while there is nothing that could change.
async fn changed(changes: &mut Option<watch::Receiver<u64>>) {
    let Some(changes) = changes else { return std::future::pending().await };
    if changes.changed().await.is_err() {
        std::future::pending().await
    }
}

fn superseded(cluster_id: &str) -> Status {
    Reason::SessionSuperseded.status(format!("the session of cluster {cluster_id} ends; reconnect"))
}

impl Session {
    fn new(
        state: ClusterState,
        planning: Planning,
        outbox: Outbox,
        (regions, parcels): (Regions, mpsc::Sender<Parcel>),
        supervisor: Supervisor,
    ) -> Self {
        let spread = Duration::ZERO..=SESSION_AGE_SPREAD;
        let age = SESSION_AGE + supervisor.platform().entropy.range(spread);
        Self {
            state,
            receiver: Receiver::default(),
            outbox,
            planning,
            regions,
            parcels,
            supply: None,
            outage: None,
            early: Early::new(),
            holds: Holds::default(),
            status_due_ms: 0,
            began: Instant::now(),
            moves_at: Some(Instant::now() + age),
            follows_until: None,
            safety: Safety::new(Arc::default(), Counters::default()),
            memory: None,
            identity: None,
            region_changes: None,
            supervisor,
        }
    }

    /// The cluster's region, when it is within reach.
    fn region(&self) -> Option<Region> {
        let facts = self.state.facts()?;
        self.regions.find(&facts.account_id, &facts.region).ok()
    }

    /// Time of day, in milliseconds since 1970.
    fn now_ms(&self) -> i64 {
        self.supervisor.platform().clock.now_ms()
    }

    /// Milliseconds since the session began, by a clock that nobody sets.
    fn session_ms(&self) -> i64 {
        i64::try_from(self.began.elapsed().as_millis()).unwrap_or(i64::MAX)
    }

    /// Asks the watcher to connect anew, to whichever scheduler it reaches. False when it cannot be
    /// told.
    fn go_away(&self, reason: &str) -> bool {
        let delay = self.supervisor.platform().entropy.range(Duration::ZERO..=GO_AWAY_DELAY);
        let delay = prost_types::Duration::try_from(delay).ok();
        let reason = reason.to_owned();
        self.outbox.send(Message::GoAway(cluster::GoAway { delay, reason }))
    }

    /// Sessions move from time to time, so that schedulers share them.
    fn move_on(&mut self) {
        let due = self.moves_at.is_some_and(|at| at <= Instant::now()) && !planted::is("S28");
        if due && self.go_away("sessions move from time to time, so that schedulers share them") {
            self.moves_at = None;
        }
    }

    /// The status of a session that is ended from here.
    fn ended(&self, cluster_id: &str) -> Status {
        if !self.supervisor.token().is_cancelled() {
            return superseded(cluster_id);
        }
        self.go_away("the scheduler is shutting down");
        Reason::Draining.status("the scheduler is shutting down; reconnect to another")
    }

    /// Hears of changes in the cluster's region from now on, and in no other.
    fn listen(&mut self, region: Option<&Region>) {
        let news = region.map(|region| region.changes.subscribe());
        let heard = match (&self.region_changes, &news) {
            (Some(known), Some(news)) => known.same_channel(news),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        if !heard {
            self.region_changes = news;
        }
    }

    /// Derives every effect that the state calls for. Cheap when nothing does. False when nothing
    /// can be planned: the view is not whole, or the region out of reach.
    fn pass(&mut self) -> bool {
        let now_ms = self.session_ms();
        self.outbox.expire(now_ms);
        let stir = self.state.expire(now_ms);
        self.planning.cadence.stir(stir, "");
        if self.receiver.revision().is_none() {
            return false;
        }
        self.safety.look(now_ms);
        self.safety.accept_losses(self.state.losses_accepted(self.now_ms()));
        self.watch_region();
        let region = self.region();
        self.listen(region.as_ref());
        // What claims need comes first: an interruption is not to wait behind status.
        if let Some(region) = &region {
            self.live(region, now_ms);
        }
        self.publish_status(now_ms);
        let Some(region) = region else { return false };
        let supply = region.read(|state| (state.stream, state.supply));
        if self.supply.replace(supply) != Some(supply) {
            self.planning.want("");
        }
        self.settle(&region);
        let now_ms = self.now_ms();
        let spared = self.spared();
        self.planning.start_if_due(&mut self.state, &region, spared, now_ms);
        true
    }
}
