//! SQS queues: at-least-once delivery with visibility timeouts.
//!
//! Invariant: a message is either visible, hidden until a moment, or gone; receiving costs time in
//! proportion to what is received, whatever the depth.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use sha2::{Digest, Sha256};

use super::super::clock::after;
use super::super::config::QueueConfig;

/// A queue.
#[derive(Debug)]
pub struct Queue {
    /// Default time a received message stays hidden, in seconds.
    pub visibility_s: u32,
    /// How long a message is kept, in seconds.
    pub retention_s: u32,
    /// Whether EventBridge rules send here.
    pub receives_events: bool,
    messages: BTreeMap<u64, Message>,
    /// Messages by the moment from which they can be received.
    ready: BTreeSet<(Timestamp, u64)>,
    next: u64,
}

/// A message.
#[derive(Clone, Debug)]
pub struct Message {
    /// Message id.
    pub id: String,
    /// Text.
    pub body: String,
    /// When it was sent.
    pub sent: Timestamp,
    /// When it was first received.
    pub first_received: Option<Timestamp>,
    /// How often it was received.
    pub receives: u32,
    /// Handle of the newest receive.
    pub receipt: String,
    /// From when on it can be received.
    visible_at: Timestamp,
}

impl Queue {
    /// An empty queue.
    pub fn new(config: &QueueConfig) -> Queue {
        Queue {
            visibility_s: config.visibility_s,
            retention_s: config.retention_s,
            receives_events: config.receives_events,
            messages: BTreeMap::new(),
            ready: BTreeSet::new(),
            next: 0,
        }
    }

    /// Adds a message.
    pub fn send(&mut self, id: String, body: String, now: Timestamp) {
        let number = self.next;
        self.next += 1;
        let message = Message {
            id,
            body,
            sent: now,
            first_received: None,
            receives: 0,
            receipt: String::new(),
            visible_at: now,
        };
        self.messages.insert(number, message);
        self.ready.insert((now, number));
    }

    /// Receives up to `most` messages and hides them for `hidden_s` seconds.
    pub fn receive(&mut self, most: usize, hidden_s: u32, now: Timestamp) -> Vec<Message> {
        let due: Vec<(Timestamp, u64)> =
            self.ready.iter().take_while(|(at, _)| *at <= now).take(most).copied().collect();
        due.into_iter()
            .filter_map(|key| {
                self.ready.remove(&key);
                let message = self.messages.get_mut(&key.1)?;
                message.receives += 1;
                message.first_received.get_or_insert(now);
                message.receipt = receipt(key.1, message.receives);
                message.visible_at = after(now, hidden_s.saturating_mul(1000));
                self.ready.insert((message.visible_at, key.1));
                Some(message.clone())
            })
            .collect()
    }

    /// Deletes by receipt handle; false when the handle is none of this queue's.
    pub fn delete(&mut self, receipt: &str) -> bool {
        let Some(number) = number_of(receipt) else { return false };
        if let Some(message) = self.messages.remove(&number) {
            self.ready.remove(&(message.visible_at, number));
        }
        true
    }

    /// Hides a received message for `hidden_s` seconds from now; false for an unknown handle.
    pub fn hide(&mut self, receipt: &str, hidden_s: u32, now: Timestamp) -> bool {
        let Some(number) = number_of(receipt) else { return false };
        let Some(message) = self.messages.get_mut(&number) else { return false };
        self.ready.remove(&(message.visible_at, number));
        message.visible_at = after(now, hidden_s.saturating_mul(1000));
        self.ready.insert((message.visible_at, number));
        true
    }

    /// Drops messages older than the retention.
    pub fn expire(&mut self, now: Timestamp) {
        let retention_ms = self.retention_s.saturating_mul(1000);
        while let Some(entry) = self.messages.first_entry()
            && after(entry.get().sent, retention_ms) <= now
        {
            let (number, message) = entry.remove_entry();
            self.ready.remove(&(message.visible_at, number));
        }
    }

    /// When the next hidden message can be received.
    pub fn next_visible(&self, now: Timestamp) -> Option<Timestamp> {
        self.ready.range((now, u64::MAX)..).next().map(|(at, _)| *at)
    }

    /// Messages sent so far.
    pub fn sent(&self) -> u64 {
        self.next
    }

    /// Messages now visible, and those hidden.
    pub fn depth(&self, now: Timestamp) -> (usize, usize) {
        let visible = self.ready.iter().take_while(|(at, _)| *at <= now).count();
        (visible, self.ready.len() - visible)
    }
}

/// A receipt handle is opaque: number, receive count and a checksum over both.
fn receipt(number: u64, receives: u32) -> String {
    format!("{number}.{receives}.{}", checksum(number, receives))
}

fn number_of(receipt: &str) -> Option<u64> {
    let mut parts = receipt.split('.');
    let number = parts.next()?.parse().ok()?;
    let receives = parts.next()?.parse().ok()?;
    (parts.next()? == checksum(number, receives)).then_some(number)
}

fn checksum(number: u64, receives: u32) -> String {
    let digest = Sha256::digest(format!("receipt {number} {receives}"));
    digest[..12].iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> Queue {
        let mut queue = Queue::new(&QueueConfig {
            name: "q".to_owned(),
            retention_s: 300,
            visibility_s: 30,
            receives_events: true,
        });
        for id in ["a", "b", "c"] {
            queue.send(id.to_owned(), id.to_owned(), Timestamp::UNIX_EPOCH);
        }
        queue
    }

    fn ids(messages: &[Message]) -> Vec<&str> {
        messages.iter().map(|message| message.id.as_str()).collect()
    }

    #[test]
    fn hidden_messages_return_unless_deleted() {
        let (mut queue, start) = (queue(), Timestamp::UNIX_EPOCH);
        let first = queue.receive(2, 20, start);
        assert_eq!(ids(&first), ["a", "b"]);
        assert_eq!(ids(&queue.receive(10, 100, after(start, 19_999))), ["c"]);
        assert!(queue.delete(&first[0].receipt));
        let again = queue.receive(10, 20, after(start, 20_000));
        assert_eq!((ids(&again), again[0].receives), (vec!["b"], 2));
        assert!(!queue.delete("1.1.forged"));
    }

    #[test]
    fn a_message_can_be_shown_again_at_once_and_expires() {
        let (mut queue, start) = (queue(), Timestamp::UNIX_EPOCH);
        let first = queue.receive(1, 1000, start);
        assert!(queue.hide(&first[0].receipt, 0, start));
        assert_eq!(queue.depth(start), (3, 0));
        queue.expire(after(start, 300_000));
        assert_eq!(queue.depth(after(start, 300_000)), (0, 0));
    }
}
