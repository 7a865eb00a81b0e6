//! How instances change with time and on request: boot, shutdown, reclaim, disappearance.
//!
//! Invariant: every change of state bumps the revision and is announced to the event queues.

use jiff::Timestamp;

use super::super::clock::after;
use super::World;
use crate::instance::InstanceState;

/// State reason of an instance that somebody has ended in the console.
pub const BY_USER: (&str, &str) =
    ("Client.UserInitiatedShutdown", "Client.UserInitiatedShutdown: User initiated shutdown");

impl World {
    /// Carries out every change that is due; cheap when none is.
    pub fn advance(&mut self, now: Timestamp) {
        loop {
            let mut due: Vec<(Timestamp, String)> = self
                .timed()
                .filter(|(at, _)| *at <= now)
                .map(|(at, id)| (at, id.to_owned()))
                .collect();
            if due.is_empty() {
                break;
            }
            due.sort_by_key(|(at, _)| *at);
            due.iter().for_each(|(at, id)| self.change(id, *at));
        }
        self.forget_old(now);
        for queue in self.queues.values_mut() {
            queue.expire(now);
        }
    }

    /// When the next change by itself is due.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.timed().map(|(at, _)| at).min()
    }

    /// Begins to terminate an instance: `code` and `message` become its state reason. Does nothing
    /// when it is already ending.
    pub fn terminate(&mut self, instance_id: &str, reason: (&str, &str), now: Timestamp) {
        let shutdown_ms = self.config.timing.shutdown_ms;
        let Some(record) = self.instances.get_mut(instance_id) else { return };
        if !record.holds_capacity() {
            return;
        }
        record.seen.state = InstanceState::ShuttingDown;
        record.due = Some(after(now, shutdown_ms));
        record.warned_at = None;
        record.reclaimed_at = None;
        record.reason = Some((reason.0.to_owned(), reason.1.to_owned()));
        let offer = record.offer();
        self.market.give_back(&offer);
        self.touch();
        self.announce_state(instance_id, now);
    }

    /// Warns of the end of an instance of the spot market or of a capacity reservation, and sets
    /// the time for it; false for other instances.
    pub fn interrupt(&mut self, instance_id: &str, now: Timestamp) -> bool {
        let notice_ms = self.config.timing.spot_notice_ms;
        let Some(record) = self.instances.get_mut(instance_id) else { return false };
        let spot = record.seen.spot;
        if !spot && record.capacity_reservation.is_none() {
            return false;
        }
        record.warned_at = None;
        record.reclaimed_at = record.holds_capacity().then(|| after(now, notice_ms));
        self.touch();
        if spot {
            self.announce_interruption(instance_id, now);
        } else {
            self.announce_reservation_interruption(instance_id, now);
        }
        true
    }

    /// Instances that change by themselves, with the moment.
    fn timed(&self) -> impl Iterator<Item = (Timestamp, &str)> {
        self.instances.iter().filter_map(|(id, record)| {
            let moments = [record.due, record.warned_at, record.reclaimed_at];
            Some((moments.into_iter().flatten().min()?, id.as_str()))
        })
    }

    fn change(&mut self, instance_id: &str, at: Timestamp) {
        let Some(record) = self.instances.get_mut(instance_id) else { return };
        if record.reclaimed_at.is_some_and(|reclaimed| reclaimed <= at) {
            let reason = "Server.SpotInstanceTermination: Instance terminated by EC2";
            self.terminate(instance_id, ("Server.SpotInstanceTermination", reason), at);
            return;
        }
        if record.warned_at.is_some_and(|warned| warned <= at) {
            self.interrupt(instance_id, at);
            return;
        }
        record.due = None;
        match record.seen.state {
            InstanceState::Pending => record.seen.state = InstanceState::Running,
            InstanceState::ShuttingDown => self.end(instance_id, at),
            InstanceState::Running | InstanceState::Terminated => return,
        }
        self.touch();
        self.announce_state(instance_id, at);
    }

    fn end(&mut self, instance_id: &str, at: Timestamp) {
        let Some(record) = self.instances.get_mut(instance_id) else { return };
        record.seen.state = InstanceState::Terminated;
        record.ended = Some(at);
        let address = record.seen.private_ip.parse();
        let subnet_id = record.subnet_id.clone();
        if let Ok(address) = address {
            self.addresses.give_back(&subnet_id, address);
        }
    }

    fn forget_old(&mut self, now: Timestamp) {
        let listed_ms = self.config.timing.listed_after_end_ms;
        let before = self.instances.len();
        self.instances
            .retain(|_, record| record.ended.is_none_or(|ended| after(ended, listed_ms) > now));
        if self.instances.len() != before {
            self.touch();
        }
    }
}
