//! Events: what people see under `kubectl describe`.
//!
//! Invariant: publishing never holds up work: the queue is bounded, what does not fit is counted
//! and dropped, and the same text about the same object is said once in a while, not once a pass. A
//! watcher that is told to end drops what it has not published: Events say what objects show.

mod nominations;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use longshore_runtime::clock::Clock;
use longshore_runtime::platform::Platform;
use tokio::sync::mpsc;
use tokio::time::Instant;

use self::nominations::Nominations;
use crate::counters::Counters;

pub use self::nominations::{GATHERED_FOR, Nominated, Workload};

/// Events waiting to be published: a plan for a thousand pods announces itself on each of them.
const QUEUE: usize = 2048;
/// The same Event is not repeated within this time.
const REPEAT_AFTER_MS: i64 = 2 * 60 * 1000;
/// Who publishes.
const CONTROLLER: &str = "longshore";
/// Namespace of Events about what has none.
const CLUSTER_SCOPED: &str = "default";
/// How long the API server may take for each.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest text; the API server refuses more than 1024 bytes.
const NOTE_BYTES_MAX: usize = 1000;

/// One Event.
#[derive(Clone, Debug, PartialEq)]
pub struct Happening {
    /// What it is about.
    pub about: ObjectReference,
    /// True for Warning, false for Normal.
    pub warning: bool,
    /// CamelCase reason.
    pub reason: String,
    /// For people: what happened and, if something must be done, what.
    pub note: String,
}

/// What is handed in.
#[derive(Debug)]
enum Handed {
    Happening(Happening),
    Nominated(Nominated),
}

/// Where Events are handed in. Clones share one queue.
#[derive(Clone)]
pub struct Events {
    queue: mpsc::Sender<Handed>,
    recent: Arc<Mutex<BTreeMap<String, i64>>>,
    counters: Counters,
    clock: Clock,
}

/// What publishes them.
pub struct Publisher {
    queue: mpsc::Receiver<Handed>,
    client: Client,
    instance: String,
    platform: Platform,
}

/// A queue of Events and what publishes them.
#[must_use]
pub fn events(
    client: Client,
    instance: &str,
    counters: Counters,
    platform: &Platform,
) -> (Events, Publisher) {
    let (sender, queue) = mpsc::channel(QUEUE);
    let (instance, clock) = (instance.to_owned(), platform.clock.clone());
    let publisher = Publisher { queue, client, instance, platform: platform.clone() };
    (Events { queue: sender, recent: Arc::default(), counters, clock }, publisher)
}

impl Events {
    /// Hands in an Event.
    pub fn publish(&self, happening: Happening) {
        if self.is_repeated(&happening, self.clock.now_ms()) {
            return;
        }
        self.hand_in(Handed::Happening(happening));
    }

    /// Announces a node for pods: an Event about one of them, together with what else is coming for
    /// their workload.
    pub fn nominate(&self, nominated: Nominated) {
        self.hand_in(Handed::Nominated(nominated));
    }

    fn hand_in(&self, handed: Handed) {
        if self.queue.try_send(handed).is_err() {
            self.counters.events_dropped.inc();
        }
    }

    fn is_repeated(&self, happening: &Happening, now_ms: i64) -> bool {
        let about = &happening.about;
        let key = format!(
            "{:?}/{:?}/{:?}/{:?}/{}/{}",
            about.kind, about.namespace, about.name, about.uid, happening.reason, happening.note
        );
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.retain(|_, said_ms| now_ms - *said_ms < REPEAT_AFTER_MS);
        if recent.contains_key(&key) {
            return true;
        }
        if recent.len() < QUEUE {
            recent.insert(key, now_ms);
        }
        false
    }
}

impl Publisher {
    /// Publishes until the queue is closed, then what has been gathered. A refusal is logged: it
    /// must not stop anything.
    ///
    /// # Errors
    /// None; the form suits a supervised task.
    pub async fn run(mut self) -> anyhow::Result<()> {
        let mut gathered = Nominations::default();
        loop {
            let handed = match gathered.due() {
                Some(due) => tokio::time::timeout_at(due, self.queue.recv()).await,
                None => Ok(self.queue.recv().await),
            };
            let now = Instant::now();
            let at_once = match handed {
                Ok(Some(Handed::Happening(happening))) => Some(happening),
                Ok(Some(Handed::Nominated(nominated))) => gathered.add(nominated, now),
                Ok(None) => break,
                Err(_) => None,
            };
            // Asked for each time: a queue that is never empty must not keep it back.
            for happening in at_once.into_iter().chain(gathered.take_due(now)) {
                self.create(&happening).await;
            }
        }
        for happening in gathered.take_all() {
            self.create(&happening).await;
        }
        Ok(())
    }

    async fn create(&self, happening: &Happening) {
        let namespace = happening.about.namespace.as_deref().unwrap_or(CLUSTER_SCOPED);
        let api: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        let event = self.event(happening, namespace);
        let params = PostParams::default();
        let created = api.create(&params, &event);
        match tokio::time::timeout(PATIENCE, created).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => {
                tracing::debug!(%error, reason = happening.reason, "Event not published");
            }
            Err(_) => tracing::debug!(reason = happening.reason, "Event not published in time"),
        }
    }

    /// Each happening is an Event of its own: the text is what matters, and repetition is kept down
    /// above.
    fn event(&self, happening: &Happening, namespace: &str) -> Event {
        let about = happening.about.name.as_deref().unwrap_or(CONTROLLER);
        let suffix: u64 = self.platform.entropy.range(0..=u64::MAX);
        Event {
            action: Some(happening.reason.clone()),
            event_time: Some(MicroTime(self.platform.clock.now())),
            metadata: ObjectMeta {
                name: Some(format!("{about}.{suffix:016x}")),
                namespace: Some(namespace.to_owned()),
                ..ObjectMeta::default()
            },
            note: Some(shortened(&happening.note)),
            reason: Some(happening.reason.clone()),
            regarding: Some(happening.about.clone()),
            reporting_controller: Some(CONTROLLER.to_owned()),
            reporting_instance: Some(self.instance.clone()),
            type_: Some(if happening.warning { "Warning" } else { "Normal" }.to_owned()),
            ..Event::default()
        }
    }
}

fn shortened(note: &str) -> String {
    if note.len() <= NOTE_BYTES_MAX {
        return note.to_owned();
    }
    let mut end = NOTE_BYTES_MAX - '…'.len_utf8();
    while !note.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &note[..end])
}

#[cfg(test)]
mod tests;
