//! The truth of one region of one account: instances, templates, tokens, capacity, the queue.
//!
//! Invariant: synchronous; time comes in as an argument. Everything that happens to an instance is
//! told to whoever watches over the run before anybody else can see it.

mod announce;
mod boot;
mod launch;
mod people;
mod time;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use longshore_actuator::cloud::{FleetOutcome, Instance, Order, Template};
use longshore_ec2_data::{Dataset, InstanceType};
use longshore_lab::region::RegionConfig;
use longshore_proto::capacity::v1::InstancePhase;
use longshore_proto::types::v1::CapacityType;
use tokio::sync::watch;

use crate::clock::WallClock;
use crate::random::Random;

pub use boot::Boots;
pub use people::Refusal;

/// From shutting down to terminated, in milliseconds.
const SHUTDOWN_MS: i64 = 20_000;
/// How long a terminated instance is listed, shortest and longest, in milliseconds: EC2 promises
/// less than an hour.
const LISTED_MS: (u64, u64) = (2 * 60_000, 20 * 60_000);
/// From the warning to the end of a spot instance, in milliseconds.
const NOTICE_MS: i64 = 120_000;
/// The families sold: enough for choices, few enough for speed.
const FAMILIES: [&str; 4] = ["m6i", "c6i", "r6i", "t3"];

/// One instance.
#[derive(Clone, Debug)]
pub struct Record {
    /// As it is listed.
    pub seen: Instance,
    /// When listings begin to show it, in milliseconds since 1970.
    pub visible_ms: i64,
    /// When its phase moves on by itself.
    pub due_ms: Option<i64>,
    /// When EC2 takes it back.
    pub reclaimed_ms: Option<i64>,
    /// When EC2 first announced that it will.
    pub announced_ms: Option<i64>,
    /// Template it was launched from.
    pub template: Template,
    /// Client token of its launch.
    pub token: String,
    /// Node name.
    pub dns_name: String,
    /// Thousandths of a CPU.
    pub cpu_millis: i64,
}

impl Record {
    /// True while it costs money.
    #[must_use]
    pub const fn alive(&self) -> bool {
        matches!(self.seen.phase, InstancePhase::Pending | InstancePhase::Running)
    }
}

/// A launch or an end, as it happens.
#[derive(Clone, Debug)]
pub enum Happening {
    /// Somebody calls CreateFleet with this client token.
    Asked(String),
    /// Somebody hears what came of a call of CreateFleet.
    Answered {
        /// Client token of the call.
        token: String,
        /// For people.
        said: String,
        /// True when the same call would get the same answer again.
        definite: bool,
    },
    /// An instance was bought.
    Launched(Box<Record>),
    /// Somebody looks up a parameter of this name.
    Read(String),
    /// Somebody takes what EC2 has announced about this instance off the queue.
    Heard(String),
    /// Somebody asks EC2 to end an instance that is alive.
    Ending {
        /// The instance as it is before that.
        record: Box<Record>,
        /// True when EC2 or a person did it, not a service of ours.
        outside: bool,
    },
}

/// Is told what happens, before it can be seen.
pub type Observer = Box<dyn Fn(&Happening) + Send>;

/// A message of the queue.
#[derive(Clone, Debug)]
pub struct QueueMessage {
    /// Text.
    pub body: String,
    /// When it can be received.
    pub visible_ms: i64,
}

/// Everything.
pub struct Model {
    /// Name, networks, images.
    pub config: RegionConfig,
    /// Types on sale.
    pub types: BTreeMap<String, InstanceType>,
    /// Instances by id, terminated ones while they are listed.
    pub instances: BTreeMap<String, Record>,
    /// Launch templates by name, with the time of creation.
    pub templates: BTreeMap<String, (Template, i64)>,
    /// Outcomes by client token, with the order that got them.
    pub tokens: BTreeMap<String, (Order, FleetOutcome)>,
    /// Offerings without capacity: type and zone.
    pub sold_out: BTreeSet<(String, String)>,
    /// The queue by receipt.
    pub messages: BTreeMap<u64, QueueMessage>,
    /// Instances that never join their cluster.
    pub never_joins: BTreeSet<String>,
    /// Instances without tags, and the tags that they had.
    pub stripped: Vec<(String, BTreeMap<String, String>)>,
    /// Instances that EC2 denies, in listings and by id.
    pub denied: BTreeSet<String>,
    /// Instances that nobody may end.
    pub protected: BTreeSet<String>,
    /// Launches find no template, whatever is there.
    pub templates_missing: bool,
    /// New instances stay invisible for longer.
    pub slow: bool,
    /// Percent of the launches that fail by EC2's own fault.
    pub failing_percent: u64,
    /// Percent of new instances that never join.
    pub dud_percent: u64,
    /// Instance profiles, and when EC2 learns of each, in milliseconds since 1970.
    profiles: BTreeMap<String, i64>,
    random: Random,
    next: u64,
    observers: Vec<Observer>,
}

/// A region. Clones are the same one.
#[derive(Clone)]
pub struct Region {
    model: Arc<Mutex<Model>>,
    /// The region's own clock.
    pub clock: WallClock,
    changed: watch::Sender<u64>,
}

impl Region {
    /// A region of an account.
    ///
    /// # Errors
    /// When there are no facts about a region of that name.
    pub fn new(
        name: &str,
        account_id: &str,
        clock: WallClock,
        random: Random,
    ) -> anyhow::Result<Self> {
        let mut config = RegionConfig::simple(name)?;
        account_id.clone_into(&mut config.account_id);
        let facts = Dataset::embedded()?;
        let sold = facts.instance_types().iter().filter(|found| {
            FAMILIES.contains(&found.family())
                && !found.bare_metal
                && config.instance_types.iter().any(|sold| sold.name() == &*found.name)
        });
        let types = sold.map(|found| (found.name.to_string(), found.clone())).collect();
        let model = Model {
            config,
            types,
            instances: BTreeMap::new(),
            templates: BTreeMap::new(),
            tokens: BTreeMap::new(),
            sold_out: BTreeSet::new(),
            messages: BTreeMap::new(),
            never_joins: BTreeSet::new(),
            stripped: Vec::new(),
            denied: BTreeSet::new(),
            protected: BTreeSet::new(),
            templates_missing: false,
            slow: false,
            failing_percent: 0,
            dud_percent: 0,
            profiles: BTreeMap::new(),
            random,
            next: 0,
            observers: Vec::new(),
        };
        Ok(Self { model: Arc::new(Mutex::new(model)), clock, changed: watch::Sender::new(0) })
    }

    /// Looks at or changes the model at the present moment.
    pub fn with<T>(&self, act: impl FnOnce(&mut Model, i64) -> T) -> T {
        let mut model = self.lock();
        let now_ms = self.clock.now_ms();
        let moved = model.advance(now_ms);
        let before = model.next;
        let result = act(&mut model, now_ms);
        let touched = moved || model.next != before;
        drop(model);
        if touched {
            self.changed.send_modify(|revision| *revision += 1);
        }
        result
    }

    /// Tells `observer` all that happens from now on.
    pub fn observe(&self, observer: Observer) {
        self.lock().observers.push(observer);
    }

    /// Takes all tags off an instance.
    pub fn strip(&self, instance_id: &str) {
        self.with(|model, _| {
            if let Some(record) = model.instances.get_mut(instance_id) {
                let tags = std::mem::take(&mut record.seen.tags);
                model.stripped.push((instance_id.to_owned(), tags));
            }
        });
    }

    /// Lets kubelets start on instances that have had none, and gives instances their tags back:
    /// whose they are nobody else can know, once an actuator that remembered has gone too.
    pub fn cure(&self) {
        self.with(|model, _| {
            model.never_joins.clear();
            for (id, tags) in std::mem::take(&mut model.stripped) {
                if let Some(record) = model.instances.get_mut(&id) {
                    record.seen.tags.extend(tags);
                }
            }
        });
        self.changed.send_modify(|revision| *revision += 1);
    }

    /// Grows whenever an instance changes.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Moves instances on when their time has come, for as long as it is polled.
    pub async fn keep_time(self) {
        let mut changes = self.changes();
        loop {
            changes.mark_unchanged();
            let due_ms = self.with(|model, _| model.next_due());
            let Some(due_ms) = due_ms else {
                if changes.changed().await.is_err() {
                    return;
                }
                continue;
            };
            tokio::select! {
                biased;
                _ = changes.changed() => {}
                () = tokio::time::sleep_until(self.clock.instant(due_ms)) => {}
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Model {
    /// Begins to end an instance.
    pub fn terminate(&mut self, instance_id: &str, outside: bool, now_ms: i64) {
        let Some(record) = self.instances.get(instance_id).filter(|record| record.alive()) else {
            return;
        };
        self.tell(&Happening::Ending { record: Box::new(record.clone()), outside });
        if let Some(record) = self.instances.get_mut(instance_id) {
            record.seen.phase = InstancePhase::ShuttingDown;
            record.due_ms = Some(now_ms + SHUTDOWN_MS);
            record.reclaimed_ms = None;
            if outside {
                record.announced_ms.get_or_insert(now_ms);
            }
        }
        self.announce_state(instance_id, now_ms);
    }

    /// What instances cost that run, in micro-dollars per hour.
    #[must_use]
    pub fn spending(&self) -> u64 {
        let alive = self.instances.values().filter(|record| record.alive());
        alive.filter_map(|record| self.price(&record.seen)).sum()
    }

    fn price(&self, seen: &Instance) -> Option<u64> {
        if seen.capacity_type != CapacityType::Spot {
            return self.on_demand(&seen.instance_type);
        }
        let mut sold = self.config.instance_types.iter();
        let sold = sold.find(|sold| sold.name() == seen.instance_type)?;
        sold.zones.get(&seen.zone).copied().flatten()
    }

    /// List price of a type, in micro-dollars per hour.
    #[must_use]
    pub fn on_demand(&self, kind: &str) -> Option<u64> {
        let facts = Dataset::embedded().and_then(|facts| facts.region(&self.config.name));
        Some(facts.ok()?.on_demand(kind)?.micro_usd_per_hour)
    }

    /// Announces that a spot instance will be taken back; false for others.
    pub fn interrupt(&mut self, instance_id: &str, now_ms: i64) -> bool {
        let Some(record) = self.instances.get_mut(instance_id) else { return false };
        let spot = record.seen.capacity_type == CapacityType::Spot;
        if !spot || !record.alive() || record.announced_ms.is_some() {
            return false;
        }
        record.announced_ms = Some(now_ms);
        record.reclaimed_ms = Some(now_ms + NOTICE_MS);
        self.announce_interruption(instance_id, now_ms);
        true
    }

    pub(crate) fn tell(&self, happening: &Happening) {
        self.observers.iter().for_each(|observer| observer(happening));
    }

    /// The next id of a kind.
    pub fn id(&mut self, prefix: &str) -> String {
        self.next += 1;
        format!("{prefix}-{:05x}{:012x}", self.next, self.random.between(0, (1 << 48) - 1))
    }
}
