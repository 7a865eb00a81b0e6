//! Nodes that ail, and claims that go because theirs does.
//!
//! Invariant: a node ails from when its API server says so until it says otherwise, by true time,
//! whoever has seen it. What is decided on that is carried out a while later: what has been true
//! [`OF_LATE`] still counts.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::claims::pool_of;
use super::going::UNHEALTHY;
use super::lately::Lately;
use super::pods::moment_ms;
use super::{CLAIMS, Judge, NODES, Seen};
use crate::clock::EPOCH_MS;

/// Condition, the status that says that something is wrong, and how long that is put up with, in
/// minutes.
const AILMENTS: [(&str, &str, i64); 7] = [
    ("Ready", "False", 30),
    ("Ready", "Unknown", 30),
    ("AcceleratedHardwareReady", "False", 10),
    ("StorageReady", "False", 30),
    ("NetworkingReady", "False", 30),
    ("KernelReady", "False", 30),
    ("ContainerRuntimeReady", "False", 30),
];
/// How long it must have been so, whatever the node says: five minutes, less what passes between
/// two looks.
const SEEN: Duration = Duration::from_secs(5 * 60 - 1);
/// What the clock may be off by which a node has ailed for too long, in milliseconds.
const SKEW_MS: i64 = 300_000;
/// From what a decision rests on to the claim's going: an order lives for twenty seconds, and takes
/// three writes.
const OF_LATE: Duration = Duration::from_secs(60);
/// Share of a pool that may ail for any to go, in percent, rounded up.
const FEW_PERCENT: usize = 20;

/// What is known of nodes that ail, by cluster label.
#[derive(Debug, Default)]
pub(super) struct Ailing(BTreeMap<String, OfCluster>);

#[derive(Debug, Default)]
struct OfCluster {
    /// Revisions of nodes and claims at the last look.
    revisions: [u64; 2],
    /// By node.
    spells: BTreeMap<String, Spell>,
    /// By pool: whether few ail.
    few: BTreeMap<String, Lately<bool>>,
}

/// A time for which a node has ailed without a break.
#[derive(Clone, Copy, Debug)]
struct Spell {
    from: Instant,
    /// When it ended, if it did.
    until: Option<Instant>,
    /// When it is too long, in milliseconds since 1970.
    due_ms: i64,
}

impl Judge {
    /// Remembers which nodes ail.
    pub(super) fn note_ailing(&self, cluster: &Seen) {
        let revisions = [NODES, CLAIMS].map(|kind| cluster.handle.revision_of(kind));
        let mut state = self.lock();
        let known = state.ailing.0.entry(cluster.label.clone()).or_default();
        if known.revisions == revisions {
            return;
        }
        known.revisions = revisions;
        known.look(cluster);
    }

    /// A claim begins to go: its node must have ailed for so long, and few others of its pool.
    pub(super) fn ails(&self, cluster: &Seen, claim: &Value, reason: &str) {
        if reason != UNHEALTHY {
            return;
        }
        let name = claim["metadata"]["name"].as_str().unwrap_or_default();
        let node = claim["status"]["nodeName"].as_str().unwrap_or_default();
        let now_ms = EPOCH_MS + self.journal.elapsed_ms();
        let (spell, few) = {
            let state = self.lock();
            let known = state.ailing.0.get(&cluster.label);
            let few = known.and_then(|known| known.few.get(&pool_of(claim)));
            let spell = known.and_then(|known| known.spells.get(node).copied());
            (spell, few.is_none_or(|few| few.values().any(|few| *few)))
        };
        let label = &cluster.label;
        if spell.is_none_or(|spell| !spell.is_long(now_ms)) {
            let lasted = spell.map(|spell| spell.lasted());
            let text = format!("claim {name} of {label} goes as {reason}: {node} ailed {lasted:?}");
            self.violate("a node was replaced before it had ailed for long", text);
        }
        if !few {
            let text = format!("claim {name} of {label} goes as {reason}: many of its pool ail");
            self.violate("one of many nodes that ail was replaced", text);
        }
    }
}

impl OfCluster {
    fn look(&mut self, cluster: &Seen) {
        let mut due = BTreeMap::new();
        cluster.handle.visit(NODES, |node| {
            due.extend(due_ms(node).map(|due_ms| (name_of(node), due_ms)));
        });
        self.see(&due, Instant::now());
        let mut pools: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        cluster.handle.visit(CLAIMS, |claim| {
            if is_in_service(claim) {
                let node = claim["status"]["nodeName"].as_str().unwrap_or_default();
                let (ailing, nodes) = pools.entry(pool_of(claim)).or_default();
                *ailing += usize::from(due.contains_key(node));
                *nodes += 1;
            }
        });
        for (pool, (ailing, nodes)) in pools {
            let few = ailing <= (nodes * FEW_PERCENT).div_ceil(100);
            self.few.entry(pool).or_default().set(few, OF_LATE);
        }
    }

    /// Nodes that ail now, and when that is too long for each.
    fn see(&mut self, due: &BTreeMap<String, i64>, now: Instant) {
        for (node, due_ms) in due {
            let fresh = Spell { from: now, until: None, due_ms: *due_ms };
            let spell = self.spells.entry(node.clone()).or_insert(fresh);
            if spell.until.is_some() {
                *spell = fresh;
            }
            spell.due_ms = *due_ms;
        }
        let over = self.spells.iter_mut().filter(|(node, _)| !due.contains_key(*node));
        over.for_each(|(_, spell)| spell.until = spell.until.or(Some(now)));
        self.spells.retain(|_, spell| spell.until.is_none_or(|until| now - until <= OF_LATE));
    }
}

impl Spell {
    fn lasted(&self) -> Duration {
        self.until.unwrap_or_else(Instant::now).duration_since(self.from)
    }

    /// True when its node may go for it, or might have a moment ago.
    fn is_long(&self, now_ms: i64) -> bool {
        let late = self.until.is_some_and(|until| until.elapsed() > OF_LATE);
        !late && self.lasted() >= SEEN && self.due_ms - SKEW_MS <= now_ms
    }
}

/// When what is wrong with a node will have been so for too long, in milliseconds since 1970; none
/// when it is well.
fn due_ms(node: &Value) -> Option<i64> {
    let said = node["status"]["conditions"].as_array().into_iter().flatten();
    let ailments = said.filter_map(|said| {
        let mut known = AILMENTS.iter();
        let (_, _, minutes) =
            known.find(|(kind, status, _)| said["type"] == *kind && said["status"] == *status)?;
        Some(moment_ms(&said["lastTransitionTime"])? + minutes * 60_000)
    });
    ailments.min()
}

/// True for a claim whose node has been in service.
fn is_in_service(claim: &Value) -> bool {
    let mut said = claim["status"]["conditions"].as_array().into_iter().flatten();
    said.any(|one| one["type"] == "Initialized" && one["status"] == "True")
}

fn name_of(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW_MS: i64 = EPOCH_MS;

    async fn pass(seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }

    #[test]
    fn what_is_too_long_first_counts_and_nothing_else_is_an_ailment() {
        let said = |kind: &str, status: &str| {
            let since = "1970-01-01T00:00:00Z";
            json!({ "type": kind, "status": status, "lastTransitionTime": since })
        };
        let node = |conditions: &[Value]| json!({ "status": { "conditions": conditions } });
        let well = [said("Ready", "True"), said("DiskPressure", "True")];
        assert_eq!(due_ms(&node(&well)), None);
        let ailing = [said("Ready", "Unknown"), said("AcceleratedHardwareReady", "False")];
        assert_eq!(due_ms(&node(&ailing)), Some(600_000));
        assert_eq!(due_ms(&node(&ailing[..1])), Some(1_800_000));
    }

    #[tokio::test(start_paused = true)]
    async fn a_spell_is_long_that_had_no_break_and_is_over_only_just_now() {
        let mut known = OfCluster::default();
        let ill = BTreeMap::from([("n".to_owned(), NOW_MS + SKEW_MS)]);
        let long = |known: &OfCluster, now_ms| known.spells["n"].is_long(now_ms);
        known.see(&ill, Instant::now());
        pass(298).await;
        assert!(!long(&known, NOW_MS), "for less than five minutes");
        pass(1).await;
        assert!(long(&known, NOW_MS));
        assert!(!long(&known, NOW_MS - 1), "by no clock it is due");
        known.see(&BTreeMap::new(), Instant::now());
        pass(60).await;
        assert!(long(&known, NOW_MS), "over, of late");
        known.see(&ill, Instant::now());
        pass(60).await;
        assert!(!long(&known, NOW_MS), "it began anew");
        known.see(&BTreeMap::new(), Instant::now());
        pass(61).await;
        known.see(&BTreeMap::new(), Instant::now());
        assert!(known.spells.is_empty());
    }
}
