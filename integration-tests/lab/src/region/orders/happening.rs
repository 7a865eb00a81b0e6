//! What happens to instances on order, and whether it can.
//!
//! Invariant: what passes the checks has its effect on each instance that is named.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::super::clock::after;
use super::super::world::{BY_USER, InstanceRecord, World};
use super::{OrderError, in_range};

/// Longest time from an order to the change it schedules, in seconds: EC2 tells of none earlier
/// than a month.
const AHEAD_MAX_S: u32 = 31 * 24 * 3600;
/// Changes that EC2 schedules for instances.
pub const SCHEDULED_CHANGES: [&str; 5] = [
    "instance-reboot",
    "instance-retirement",
    "instance-stop",
    "system-maintenance",
    "system-reboot",
];
/// What may happen to instances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// EC2 warns of taking them back, and does so after its notice.
    SpotInterruption,
    /// EC2 recommends to rebalance them.
    Rebalance,
    /// EC2 schedules a change.
    ScheduledChange {
        /// One of [`SCHEDULED_CHANGES`].
        code: String,
        /// From now to the change, in seconds.
        in_s: u32,
    },
    /// Somebody ends them in the console: they shut down and are terminated, and each change of
    /// state is told.
    StateChange,
}

impl World {
    /// Whether all of it can happen.
    ///
    /// # Errors
    /// What keeps it from happening to one of them, or at all.
    pub(super) fn ensure_can_happen(
        &self,
        instances: &BTreeSet<String>,
        happening: &Happening,
    ) -> Result<(), OrderError> {
        if let Happening::ScheduledChange { code, in_s } = happening {
            if !SCHEDULED_CHANGES.contains(&code.as_str()) {
                let (what, given) = ("event_code", code.clone());
                let allowed = format!("one of {}", SCHEDULED_CHANGES.join(", "));
                return Err(OrderError::OutOfRange { what, given, allowed });
            }
            in_range("in_s", u64::from(*in_s), (0, u64::from(AHEAD_MAX_S)))?;
        }
        let of_spot = matches!(happening, Happening::SpotInterruption | Happening::Rebalance);
        let reserved_too = *happening == Happening::SpotInterruption;
        let of = |is: &dyn Fn(&InstanceRecord) -> bool| -> Vec<String> {
            let found = instances.iter().filter(|id| self.instances.get(*id).is_some_and(is));
            found.cloned().collect()
        };
        let unknown = instances.iter().filter(|id| !self.instances.contains_key(*id));
        let unknown: Vec<String> = unknown.cloned().collect();
        let ending = of(&|record| !record.holds_capacity());
        let on_demand = of(&|record| {
            let reserved = reserved_too && record.capacity_reservation.is_some();
            of_spot && !record.seen.spot && !reserved
        });
        match () {
            () if instances.is_empty() => Err(OrderError::NoInstances),
            () if !unknown.is_empty() => Err(OrderError::UnknownInstances(unknown)),
            () if !ending.is_empty() => Err(OrderError::Ending(ending)),
            () if !on_demand.is_empty() => Err(OrderError::OnDemand(on_demand)),
            () => Ok(()),
        }
    }

    /// Lets it happen to an instance.
    pub(super) fn happen(&mut self, id: &str, happening: &Happening, now: Timestamp) {
        match happening {
            Happening::SpotInterruption => {
                self.interrupt(id, now);
            }
            Happening::Rebalance => self.announce_rebalance(id, now),
            Happening::ScheduledChange { code, in_s } => {
                let start = after(now, in_s.saturating_mul(1000));
                self.schedule_change(id, code, (start, now));
            }
            Happening::StateChange => self.terminate(id, BY_USER, now),
        }
    }
}
