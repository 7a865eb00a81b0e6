//! Events: what people see under `kubectl describe`.
//!
//! Invariant: publishing never holds up work: the queue is bounded, what does not fit is counted
//! and dropped, and the same text about the same object is said once in a while, not once a pass.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use longshore_runtime::clock::now_ms;
use tokio::sync::mpsc;

use crate::counters::Counters;

/// Events waiting to be published: a plan for a thousand pods announces itself on each of them.
const QUEUE: usize = 2048;
/// The same Event is not repeated within this time.
const REPEAT_AFTER_MS: i64 = 2 * 60 * 1000;
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

/// Where Events are handed in. Clones share one queue.
#[derive(Clone)]
pub struct Events {
    queue: mpsc::Sender<Happening>,
    recent: Arc<Mutex<BTreeMap<String, i64>>>,
    counters: Counters,
}

/// What publishes them.
pub struct Publisher {
    queue: mpsc::Receiver<Happening>,
    client: Client,
    reporter: Reporter,
}

/// A queue of Events and what publishes them.
#[must_use]
pub fn events(client: Client, instance: &str, counters: Counters) -> (Events, Publisher) {
    let (sender, queue) = mpsc::channel(QUEUE);
    let reporter =
        Reporter { controller: "longshore".to_owned(), instance: Some(instance.to_owned()) };
    let publisher = Publisher { queue, client, reporter };
    (Events { queue: sender, recent: Arc::default(), counters }, publisher)
}

impl Events {
    /// Hands in an Event.
    pub fn publish(&self, happening: Happening) {
        if self.is_repeated(&happening, now_ms()) {
            return;
        }
        if self.queue.try_send(happening).is_err() {
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
    /// Publishes until the queue is closed. A refusal is logged: it must not stop anything.
    ///
    /// # Errors
    /// None; the form suits a supervised task.
    pub async fn run(mut self) -> anyhow::Result<()> {
        while let Some(happening) = self.queue.recv().await {
            let event = Event {
                type_: if happening.warning { EventType::Warning } else { EventType::Normal },
                action: happening.reason.clone(),
                reason: happening.reason,
                note: Some(shortened(&happening.note)),
                secondary: None,
            };
            // A recorder takes Events of one reason about one object for the same and keeps the first
            // text. Here the text is what matters, and repetition is kept down above.
            let recorder = Recorder::new(self.client.clone(), self.reporter.clone());
            if let Err(error) = recorder.publish(&event, &happening.about).await {
                tracing::debug!(%error, reason = event.reason, "Event not published");
            }
        }
        Ok(())
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
mod tests {
    use super::*;

    #[test]
    fn long_notes_are_cut_between_characters() {
        assert_eq!(shortened("short"), "short");
        let cut = shortened(&"ä".repeat(600));
        assert!(cut.len() <= NOTE_BYTES_MAX && cut.ends_with("ä…"));
    }

    #[tokio::test]
    async fn the_same_event_is_said_once_in_a_while() {
        let (sender, mut queue) = mpsc::channel(8);
        let (recent, counters) = (Arc::default(), Counters::default());
        let events = Events { queue: sender, recent, counters };
        let happening = |note: &str| Happening {
            about: ObjectReference::default(),
            warning: false,
            reason: "Nominated".to_owned(),
            note: note.to_owned(),
        };
        events.publish(happening("a"));
        events.publish(happening("a"));
        events.publish(happening("b"));
        assert_eq!(queue.recv().await.unwrap().note, "a");
        assert_eq!(queue.recv().await.unwrap().note, "b");
        assert!(queue.try_recv().is_err());
        let later_ms = now_ms() + REPEAT_AFTER_MS;
        assert!(!events.is_repeated(&happening("a"), later_ms));
    }
}
