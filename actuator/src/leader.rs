//! What a leader works with during its term.
//!
//! Invariant: made anew for each term and thrown away with it; nothing here is state that the
//! ledger or EC2 could not give back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use longshore_proto::capacity::v1::RegionInfo;
use longshore_proto::capacity::v1::region_change::Change;
use longshore_runtime::platform::Platform;
use longshore_runtime::tasks::Supervisor;
use tokio::sync::{Notify, OnceCell, watch};
use tokio::time::Instant;

use crate::audit::{self, Bought, Refused};
use crate::board::Board;
use crate::catalogue::{MarketView, Prices, Unavailable};
use crate::cloud::{Caller, Cloud};
use crate::config::{Sharing, Tuning};
use crate::election::Term;
use crate::events::Events;
use crate::inventory::Inventory;
use crate::ledger::{
    self, Book, Claimant, LaunchRecord, Ledger, Observer, Store, StoreError, Witness,
};
use crate::nodeclass::{Place, Problem, Resolved};
use crate::pace::Paces;
use crate::policy::{Policies, Rates};
use crate::wire;

/// Node classes by cluster id and name.
pub type Classes = BTreeMap<(String, String), Arc<Resolved>>;

/// After a shared call that the ledger refused to note, none is made for this long.
const SHARE_AGAIN: Duration = Duration::from_secs(60);

/// A launch template in use.
#[derive(Clone, Debug, Default)]
pub struct KnownTemplate {
    /// Milliseconds since 1970 of its latest use.
    pub used_ms: i64,
    /// Set once it is known to exist; of several launches that need it, one makes it.
    pub made: Arc<OnceCell<()>>,
}

/// What stays the same from term to term.
#[derive(Clone)]
pub struct RegionContext {
    /// Region.
    pub region: String,
    /// Who we are.
    pub caller: Caller,
    /// The cloud.
    pub cloud: Arc<dyn Cloud>,
    /// Intervals and bounds.
    pub tuning: Tuning,
    /// Logs and counts.
    pub events: Events,
    /// What each cluster may have.
    pub policies: Policies,
    /// Clock, randomness and network.
    pub platform: Platform,
}

/// A leader's working set.
pub struct Leader {
    /// What stays the same.
    pub context: RegionContext,
    /// The term.
    pub term: Term,
    /// Milliseconds since 1970 at which it began.
    pub since_ms: i64,
    /// Launches, durable.
    pub ledger: Ledger,
    /// Where the audit record is read; the ledger's task alone writes.
    pub store: Store,
    /// State as it is sent to those who watch the region.
    pub board: Arc<Board>,
    /// Instances as EC2 listed them last.
    pub inventory: watch::Sender<Inventory>,
    /// What node classes amount to.
    pub classes: watch::Sender<Classes>,
    /// What is sold.
    pub market: watch::Sender<Arc<MarketView>>,
    /// Asks for a listing soon.
    pub look: Notify,
    /// Asks for node classes to be resolved anew.
    pub resolve: Notify,
    /// Asks for node classes to be shown anew.
    pub show: Notify,
    /// Launch templates in use, by name.
    pub templates: Mutex<BTreeMap<String, KnownTemplate>>,
    /// Problems of interruption queues, by name.
    pub queues: Mutex<BTreeMap<String, Problem>>,
    /// How fast clusters have got and ended nodes of late.
    pub rates: Arc<Mutex<Rates>>,
    /// What was refused of late.
    pub refused: Arc<Mutex<Refused>>,
    closed: Mutex<Unavailable>,
    full_subnets: Mutex<BTreeMap<String, i64>>,
    busy: Mutex<BTreeSet<String>>,
    faults: Mutex<BTreeMap<(String, String), (Problem, i64)>>,
    paces: Mutex<Paces>,
    shared: Mutex<Shared>,
}

/// What bears on calls for several launches.
#[derive(Default)]
struct Shared {
    /// First session of each cluster in this term.
    first_epochs: BTreeMap<String, u64>,
    /// When such calls are made again, after the ledger had no room for one.
    again: Option<Instant>,
}

impl Leader {
    /// Reads the ledger and begins a term; the ledger's task is on `supervisor`.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn begin(
        context: RegionContext,
        term: Term,
        store: Store,
        supervisor: &Supervisor,
    ) -> Result<Arc<Self>, StoreError> {
        let book = Book::read(store.load().await?);
        context.events.unreadable(&book);
        let inventory = Inventory::after(&book, context.platform.clock.now_ms(), Instant::now());
        let board = Arc::new(shown(&context, &term, &book));
        let (ledger, backlog) = Ledger::open(book);
        let prices = Prices::embedded(&context.region);
        let view = MarketView { prices, ..MarketView::default() };
        let (inventory, market) =
            (watch::Sender::new(inventory), watch::Sender::new(Arc::new(view)));
        let eyes = (witness(&inventory, &market), observer(&board, &context.events));
        let writing = ledger::run(backlog, store.clone(), term.clone(), eyes);
        supervisor.spawn_once("ledger", async move { Ok(writing.await?) });
        let since_ms = context.platform.clock.now_ms();
        Ok(Arc::new(Self {
            context,
            term,
            since_ms,
            ledger,
            store,
            board,
            inventory,
            classes: watch::Sender::new(Classes::new()),
            market,
            look: Notify::new(),
            resolve: Notify::new(),
            show: Notify::new(),
            templates: Mutex::default(),
            queues: Mutex::default(),
            rates: Arc::default(),
            refused: Arc::default(),
            closed: Mutex::default(),
            full_subnets: Mutex::default(),
            busy: Mutex::default(),
            faults: Mutex::default(),
            paces: Mutex::default(),
            shared: Mutex::default(),
        }))
    }

    /// Time of day in milliseconds since 1970.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        self.context.platform.clock.now_ms()
    }

    /// The cloud.
    #[must_use]
    pub fn cloud(&self) -> &dyn Cloud {
        &*self.context.cloud
    }

    /// Logs and counts.
    #[must_use]
    pub const fn events(&self) -> &Events {
        &self.context.events
    }

    /// Where node classes are resolved.
    #[must_use]
    pub fn place(&self) -> Place {
        let caller_arn = self.context.caller.arn.clone();
        Place { region: self.context.region.clone(), caller_arn }
    }

    /// A launch as it is recorded.
    #[must_use]
    pub fn record(&self, launch_id: &str) -> Option<Arc<LaunchRecord>> {
        self.ledger.book().launches.get(launch_id).cloned()
    }

    /// The node class of a launch; none while it is not resolved.
    #[must_use]
    pub fn class_of(&self, record: &LaunchRecord) -> Option<Arc<Resolved>> {
        let name = record.launch.as_ref()?.node_class.clone();
        self.classes.borrow().get(&(record.cluster_id.clone(), name)).cloned()
    }

    /// Launches of a cluster that were made in sessions before this one may have been asked for by
    /// a process whose ledger is lost; none when it is not.
    #[must_use]
    pub fn fresh_from(&self, claimant: &Claimant) -> Option<u64> {
        let (id, epoch) = (&claimant.cluster_id, claimant.fence.session_epoch);
        if self.context.tuning.sharing != Sharing::Fresh {
            return None;
        }
        // Nothing is launched for a cluster that is not known.
        if !self.ledger.book().clusters.contains_key(id) {
            return Some(epoch);
        }
        Some(*lock(&self.shared).first_epochs.entry(id.clone()).or_insert(epoch))
    }

    /// True while launches that are alike may go to EC2 in one call.
    #[must_use]
    pub fn shares_calls(&self) -> bool {
        let again = lock(&self.shared).again;
        self.context.tuning.sharing != Sharing::None
            && again.is_none_or(|again| again <= Instant::now())
    }

    /// The ledger has no room for what is asked for together: each launch is asked for alone for a
    /// while.
    pub fn share_nothing(&self) {
        lock(&self.shared).again = Some(Instant::now() + SHARE_AGAIN);
    }

    /// Offerings that were not to be had lately.
    pub fn closed(&self) -> MutexGuard<'_, Unavailable> {
        lock(&self.closed)
    }

    /// Launches and instances that something is being done about.
    pub fn busy(&self) -> MutexGuard<'_, BTreeSet<String>> {
        lock(&self.busy)
    }

    /// What is remembered of launches and instances that are tried again.
    pub fn paces(&self) -> MutexGuard<'_, Paces> {
        lock(&self.paces)
    }

    /// Remembers that a subnet has no address left, for as long as an offering stays closed.
    pub fn subnet_full(&self, subnet_id: &str, until_ms: i64) {
        lock(&self.full_subnets).insert(subnet_id.to_owned(), until_ms);
    }

    /// Subnets without addresses.
    #[must_use]
    pub fn full_subnets(&self, now_ms: i64) -> BTreeSet<String> {
        let mut full = lock(&self.full_subnets);
        full.retain(|_, until| *until > now_ms);
        full.keys().cloned().collect()
    }

    /// Instances were launched into these reservations: less is left there, as the next look-up
    /// will say, too.
    pub fn drawn<'a>(&self, reservation_ids: impl Iterator<Item = &'a str>) {
        let drawn: Vec<_> = reservation_ids.filter(|id| !id.is_empty()).collect();
        if drawn.is_empty() {
            return;
        }
        self.classes.send_modify(|classes| {
            for class in classes.values_mut() {
                drawn.iter().for_each(|id| Resolved::draw(class, id));
            }
        });
    }

    /// Shows on a node class why launches from it fail, until `until_ms`.
    pub fn fault(&self, class: &Resolved, problem: Problem, until_ms: i64) {
        let key = (class.cluster_id.clone(), class.class.name.clone());
        lock(&self.faults).insert(key, (problem, until_ms));
        self.show.notify_one();
    }

    /// Launches from a class succeed again.
    pub fn fault_over(&self, class: &Resolved) {
        let key = (class.cluster_id.clone(), class.class.name.clone());
        if lock(&self.faults).remove(&key).is_some() {
            self.show.notify_one();
        }
    }

    /// Why launches from a class fail at present.
    #[must_use]
    pub fn fault_of(&self, key: &(String, String), now_ms: i64) -> Option<Problem> {
        let mut faults = lock(&self.faults);
        faults.retain(|_, (_, until)| *until > now_ms);
        faults.get(key).map(|(problem, _)| problem.clone())
    }
}

/// Locks; a panic elsewhere does not make the content worthless.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Says what drafts do, with what instances are and cost.
fn witness(
    inventory: &watch::Sender<Inventory>,
    market: &watch::Sender<Arc<MarketView>>,
) -> Witness {
    let (inventory, market) = (inventory.subscribe(), market.subscribe());
    Box::new(move |book, draft| {
        let bought = |id: &str| Bought::of(&inventory.borrow(), &market.borrow().prices, id);
        audit::told(book, draft, bought)
    })
}

/// Shows launches as they are recorded, and says what was refused.
fn observer(board: &Arc<Board>, events: &Events) -> Observer {
    let (board, events) = (Arc::clone(board), events.clone());
    Box::new(move |_, draft| {
        for record in draft.launches.values().flatten() {
            wire::show_launch(&board, record);
        }
        draft.audit.iter().for_each(|entry| events.audited(entry));
    })
}

/// What a leader shows from the beginning of its term.
fn shown(context: &RegionContext, term: &Term, book: &Book) -> Board {
    let board = Board::new();
    board.post(Change::Region(RegionInfo {
        region: context.region.clone(),
        account_id: context.caller.account_id.clone(),
        term: u64::try_from(term.revision).unwrap_or_default(),
    }));
    for record in book.launches.values() {
        wire::show_launch(&board, record);
        if record.vanished {
            wire::show_vanished(&board, None, Some(record));
        }
    }
    board
}
