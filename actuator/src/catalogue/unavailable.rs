//! Offerings that were not to be had lately.
//!
//! Invariant: pure; an offering closes for a fixed time, and every closing and reopening is told
//! exactly once.

use std::collections::BTreeMap;

use longshore_proto::types::v1::{CapacityType, OfferingUpdate};

/// How long an offering stays closed, in milliseconds.
pub const CLOSED_MS: i64 = 180_000;

/// One way to buy a type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OfferingKey {
    /// Type.
    pub instance_type: String,
    /// Zone name.
    pub zone: String,
    /// How it is bought.
    pub capacity_type: CapacityType,
}

impl OfferingKey {
    /// A key.
    #[must_use]
    pub fn new(instance_type: &str, zone: &str, capacity_type: CapacityType) -> Self {
        Self { instance_type: instance_type.to_owned(), zone: zone.to_owned(), capacity_type }
    }

    fn update(&self, available: bool) -> OfferingUpdate {
        OfferingUpdate {
            instance_type: self.instance_type.clone(),
            zone: self.zone.clone(),
            capacity_type: self.capacity_type.into(),
            available,
            ..OfferingUpdate::default()
        }
    }
}

/// Closed offerings, with the time each reopens.
#[derive(Clone, Debug, Default)]
pub struct Unavailable {
    reopen_ms: BTreeMap<OfferingKey, i64>,
}

impl Unavailable {
    /// True while an offering is closed.
    #[must_use]
    pub fn is_closed(&self, key: &OfferingKey, now_ms: i64) -> bool {
        self.reopen_ms.get(key).is_some_and(|reopen| *reopen > now_ms)
    }

    /// Closes an offering, or keeps it closed for longer; returns what to tell.
    pub fn close(&mut self, key: OfferingKey, now_ms: i64) -> Option<OfferingUpdate> {
        let update = key.update(false);
        let news = self.reopen_ms.insert(key, now_ms + CLOSED_MS).is_none();
        news.then_some(update)
    }

    /// Reopens what has been closed for long enough; returns what to tell.
    pub fn reopen(&mut self, now_ms: i64) -> Vec<OfferingUpdate> {
        let due: Vec<_> = self
            .reopen_ms
            .iter()
            .filter(|(_, reopen)| **reopen <= now_ms)
            .map(|(key, _)| key.clone())
            .collect();
        for key in &due {
            self.reopen_ms.remove(key);
        }
        due.iter().map(|key| key.update(true)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offering_closes_and_reopens_once() {
        let key = OfferingKey::new("t4g.small", "a", CapacityType::Spot);
        let other = OfferingKey::new("t4g.small", "a", CapacityType::OnDemand);
        let mut closed = Unavailable::default();
        assert!(!closed.close(key.clone(), 0).unwrap().available);
        assert_eq!(closed.close(key.clone(), 1000), None);
        assert!(closed.is_closed(&key, CLOSED_MS) && !closed.is_closed(&other, 0));
        assert!(closed.reopen(CLOSED_MS + 999).is_empty());
        let reopened = closed.reopen(CLOSED_MS + 1000);
        assert_eq!((reopened.len(), reopened[0].available), (1, true));
        assert!(closed.reopen(CLOSED_MS + 1000).is_empty());
    }
}
