//! What is written down of effects and refusals: who asked, by which plan, what came of it, and at
//! which price.
//!
//! Invariant: an entry is recorded with the deed, in one transaction. What a draft does is told
//! from the book before it; what repeats itself is told once an hour.

use std::collections::BTreeMap;

use longshore_proto::capacity::v1::{AuditEntry, AuditKind, Refusal};
use longshore_proto::time::timestamp;
use longshore_proto::types::v1::CapacityType;

use crate::catalogue::Prices;
use crate::inventory::Inventory;
use crate::ledger::{Author, Book, Draft, LaunchRecord, Phase};

/// Time after which the same refusal is told again, in milliseconds.
const AGAIN_MS: i64 = 3_600_000;
/// Most refusals that are remembered, so that they are not told again.
const REMEMBERED_MAX: usize = 10_000;

/// What an instance is, and what it costs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bought {
    instance_type: String,
    zone: String,
    capacity_type: CapacityType,
    micro_usd_per_hour: i64,
}

impl Bought {
    /// An instance as it is listed.
    #[must_use]
    pub fn of(inventory: &Inventory, prices: &Prices, instance_id: &str) -> Option<Self> {
        let instance = inventory.get(instance_id)?;
        let (kind, zone, capacity_type) =
            (&instance.instance_type, &instance.zone, instance.capacity_type);
        let price = prices.micro_usd_per_hour(kind, zone, capacity_type);
        Some(Self {
            instance_type: kind.clone(),
            zone: zone.clone(),
            capacity_type,
            micro_usd_per_hour: price.unwrap_or(0),
        })
    }
}

/// What a draft does to launches; `bought` says what an instance is.
#[must_use]
pub fn told(
    book: &Book,
    draft: &Draft,
    bought: impl Fn(&str) -> Option<Bought>,
) -> Vec<AuditEntry> {
    let changed = draft.launches.values().flatten();
    let entry = |after: &LaunchRecord| {
        let before = book.launches.get(after.launch_id()).map(|record| record.phase());
        let kind = kind(before, after.phase())?;
        let bought = bought(&after.instance_id).unwrap_or_default();
        Some(deed(kind, after, bought, draft.author.as_ref()))
    };
    changed.filter_map(|after| entry(after)).collect()
}

/// What a change of phase is; none when it is nothing that was done. A launch that is only now
/// known, and lives, was told when it was bought.
fn kind(before: Option<Phase>, after: Phase) -> Option<AuditKind> {
    if before == Some(after) {
        return None;
    }
    match (before, after) {
        (Some(Phase::Pending), Phase::Launched | Phase::Terminating) => Some(AuditKind::Launched),
        (_, Phase::Terminating) => Some(AuditKind::Ended),
        (Some(Phase::Launched), Phase::Terminated) => Some(AuditKind::Gone),
        (_, Phase::Failed) => Some(AuditKind::Failed),
        (_, Phase::Pending | Phase::Launched | Phase::Terminated) => None,
    }
}

fn deed(
    kind: AuditKind,
    record: &LaunchRecord,
    bought: Bought,
    author: Option<&Author>,
) -> AuditEntry {
    let launch = record.launch.clone().unwrap_or_default();
    let ended = kind == AuditKind::Ended;
    // A launch is the deed of the plan that asked for it, whoever carries it out.
    let asked = Author { caller: record.caller.clone(), plan_id: record.plan_id.clone() };
    let own = Author::default();
    let author = author.unwrap_or(if ended { &own } else { &asked });
    AuditEntry {
        time: Some(timestamp(record.changed_ms)),
        kind: kind.into(),
        cluster_id: record.cluster_id.clone(),
        caller: author.caller.clone(),
        plan_id: author.plan_id.clone(),
        launch_id: launch.launch_id,
        claim: launch.claim,
        instance_id: record.instance_id.clone(),
        instance_type: bought.instance_type,
        zone: bought.zone,
        capacity_type: bought.capacity_type.into(),
        micro_usd_per_hour: bought.micro_usd_per_hour,
        reason: record.reason.clone(),
        message: record.message.clone(),
        traceparent: if ended {
            record.termination_traceparent.clone()
        } else {
            launch.traceparent
        },
        ..AuditEntry::default()
    }
}

/// Refusals that were told.
#[derive(Debug, Default)]
pub struct Refused(BTreeMap<(String, String, String), i64>);

impl Refused {
    /// Entries of those that were not told of late.
    pub fn told(
        &mut self,
        refusals: &[Refusal],
        (cluster_id, author): (&str, &Author),
        now_ms: i64,
    ) -> Vec<AuditEntry> {
        self.0.retain(|_, told_ms| now_ms.saturating_sub(*told_ms) < AGAIN_MS);
        let mut entries = Vec::new();
        for Refusal { id, reason, message } in refusals {
            let key = (cluster_id.to_owned(), id.clone(), reason.clone());
            if self.0.contains_key(&key) || self.0.len() >= REMEMBERED_MAX {
                continue;
            }
            self.0.insert(key, now_ms);
            let instance = id.starts_with("i-");
            entries.push(AuditEntry {
                time: Some(timestamp(now_ms)),
                kind: AuditKind::Refused.into(),
                cluster_id: cluster_id.to_owned(),
                caller: author.caller.clone(),
                plan_id: author.plan_id.clone(),
                launch_id: if instance { String::new() } else { id.clone() },
                instance_id: if instance { id.clone() } else { String::new() },
                reason: reason.clone(),
                message: message.clone(),
                ..AuditEntry::default()
            });
        }
        entries
    }
}

#[cfg(test)]
mod tests;
