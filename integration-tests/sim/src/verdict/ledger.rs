//! What may be written into a ledger.
//!
//! Invariant: judged at each write, before anybody can read it: only by the present leader, no
//! fence ever goes back, and no launch is less far than it was, unless its instance is alive after
//! all.

use longshore_actuator::cloud::Class;
use longshore_actuator::ledger::{FenceRecord, LaunchRecord, Phase};
use prost::Message as _;
use tokio::time::Instant;

use super::{Judge, State};
use crate::etcd::Change;

/// What is said of a launch whose class is not in order.
const CLASS_NOT_READY: &str = "NODE_CLASS_NOT_READY";
/// Part of what AWS says when a person has to act, under a fault of that kind.
const DENIED: &str = " is denied to ";

/// A write into a ledger, as its key says what it is about.
struct Written<'a> {
    kind: &'a str,
    id: &'a str,
    change: &'a Change,
}

impl Judge {
    /// Somebody has written a key into the etcd of a site.
    pub(super) fn written(&self, site: usize, change: &Change) {
        let Some(entry) = change.after.as_ref().or(change.before.as_ref()) else { return };
        let path = String::from_utf8_lossy(&entry.key);
        // /longshore/v1/ACCOUNT/REGION/KIND/ID
        let parts: Vec<&str> = path.splitn(7, '/').collect();
        let [_, _, _, _, _, kind, id] = parts[..] else { return };
        let written = Written { kind, id, change };
        if kind == "leader" {
            self.campaigns(site, &written);
            return;
        }
        self.by_the_leader(site, &written);
        match kind {
            "fence" => self.fence(&written),
            "launch" => self.launch(site, &written),
            _ => {}
        }
    }

    /// Keeps who campaigns: the oldest key leads.
    fn campaigns(&self, site: usize, written: &Written<'_>) {
        let mut state = self.lock();
        if let Some(before) = &written.change.before {
            state.campaigns.remove(&(site, before.create_revision));
        }
        if let Some(after) = &written.change.after {
            state.campaigns.insert((site, after.create_revision));
        }
        let leader = state.leader(site);
        if state.terms.get(&site).map(|(_, term)| *term) != leader {
            state.terms.remove(&site);
            let began = leader.map(|term| (Instant::now(), term));
            state.terms.extend(began.map(|began| (site, began)));
        }
        drop(state);
        let does = if written.change.after.is_some() { "campaigns" } else { "has resigned" };
        let entry = written.change.after.as_ref().or(written.change.before.as_ref());
        let who = entry.map(|entry| String::from_utf8_lossy(&entry.value).into_owned());
        self.journal.note(&format!("etcd-{site}: {} {does}", who.unwrap_or_default()));
    }

    /// What EC2 announced about an instance has been taken off the queue: the ledger must know it.
    pub(super) fn heard(&self, site: usize, instance_id: &str) {
        let Some(etcd) = self.etcds.get(site) else { return };
        let known = etcd.read(|model| {
            let entries = model.under(b"/longshore/v1/");
            let records = entries.filter(|entry| contains(&entry.key, b"/launch/"));
            let mut records = records.filter_map(|entry| LaunchRecord::decode(&*entry.value).ok());
            records.find(|record| record.instance_id == instance_id)
        });
        let lost = |record: &LaunchRecord| {
            record.phase() == Phase::Launched && record.interruptions.is_empty()
        };
        if let Some(record) = known.filter(lost) {
            let text = format!("that of {instance_id}, claim {}", record.claim());
            self.violate("an announcement was thrown away", text);
        }
    }

    fn by_the_leader(&self, site: usize, written: &Written<'_>) {
        let state = self.lock();
        let leader = state.leader(site);
        drop(state);
        let claimed = written
            .change
            .fences
            .iter()
            .find(|(key, _)| String::from_utf8_lossy(key).contains("/leader/"));
        let claimed = claimed.map(|(_, revision)| *revision);
        if claimed.is_none() || claimed != leader {
            let text = format!(
                "{}/{} was written under term {claimed:?}; the leader's is {leader:?}",
                written.kind, written.id
            );
            self.violate("the ledger was written by somebody who does not lead", text);
        }
    }

    fn fence(&self, written: &Written<'_>) {
        let read = |value: &[u8]| FenceRecord::decode(value).unwrap_or_default();
        let before = written.change.before.as_ref().map(|entry| read(&entry.value));
        let after = written.change.after.as_ref().map(|entry| read(&entry.value));
        if let (Some(before), Some(after)) = (before, after)
            && after < before
        {
            let text = format!("cluster {}: from {before:?} to {after:?}", written.id);
            self.violate("a fence went back", text);
        }
    }

    /// A launch is called failed: nothing may live of it, and what is said must last. Here classes
    /// and profiles are always in order.
    fn failed(&self, written: &Written<'_>, record: &LaunchRecord, alive: bool) {
        let (reason, message) = (&record.reason, &record.message);
        let text =
            format!("launch {} of claim {}: {reason}: {message}", written.id, record.claim());
        if alive {
            self.violate("a launch was called failed while its instance lives", text);
        } else if reason == CLASS_NOT_READY && !message.contains(DENIED) {
            self.violate("a launch failed because AWS did not answer", text);
        } else if reason == Class::Profile.reason() {
            self.violate("a launch failed of a profile that had just been made", text);
        }
    }

    fn launch(&self, site: usize, written: &Written<'_>) {
        let read = |value: &[u8]| LaunchRecord::decode(value).unwrap_or_default();
        let Some(before) = written.change.before.as_ref().map(|entry| read(&entry.value)) else {
            return;
        };
        let after = written.change.after.as_ref().map(|entry| read(&entry.value));
        if let Some(after) = &after {
            self.given(after);
        }
        let owner = (before.cluster_id.clone(), before.claim().to_owned());
        let alive = self.regions.get(site).is_some_and(|region| {
            region.with(|model, _| {
                let mut all = model.instances.values();
                all.any(|found| {
                    let id = &found.seen.instance_id;
                    let given = || !owner.1.is_empty() && self.owner(id) == owner;
                    let own = found.token.starts_with(written.id) || *id == before.instance_id;
                    let own = own || given() || self.lock().may_be_of(id, &owner.1);
                    own && found.alive()
                })
            })
        });
        let failed = after.as_ref().filter(|after| after.phase() == Phase::Failed);
        if let Some(after) = failed.filter(|_| before.phase() != Phase::Failed) {
            self.failed(written, after, alive);
        }
        if let Some(wrong) = step_back(&before, after.as_ref(), alive) {
            let text = format!("launch {} of claim {}: {wrong}", written.id, before.claim());
            self.violate("a ledger record went back", text);
        }
    }
}

impl State {
    /// The revision of the campaign that leads at a site: the oldest.
    fn leader(&self, site: usize) -> Option<i64> {
        let leader = self.campaigns.range((site, 0)..(site + 1, 0)).next();
        leader.map(|(_, revision)| *revision)
    }
}

fn contains(key: &[u8], part: &[u8]) -> bool {
    key.windows(part.len()).any(|window| window == part)
}

/// What is wrong with a step, when something is.
fn step_back(before: &LaunchRecord, after: Option<&LaunchRecord>, alive: bool) -> Option<String> {
    let Some(after) = after else {
        let lost = !before.finished() || (alive && before.phase() != Phase::Failed);
        return lost.then(|| format!("forgotten while {:?}", before.phase()));
    };
    if after.attempts < before.attempts {
        return Some(format!("attempt {} after {}", after.attempts, before.attempts));
    }
    if (before.ending && !after.ending) || (before.cancelled && !after.cancelled) {
        return Some("wanted again".to_owned());
    }
    if !before.instance_id.is_empty() && before.instance_id != after.instance_id {
        return Some(format!("from {} to {}", before.instance_id, after.instance_id));
    }
    let (from, to) = (before.phase(), after.phase());
    // What was concluded from absence is taken back when EC2 shows the instance after all.
    let found = before.finished() && !after.finished() && alive;
    (to < from && !found).then(|| format!("from {from:?} to {to:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(phase: Phase, attempts: u32) -> LaunchRecord {
        LaunchRecord { phase: phase.into(), attempts, ..LaunchRecord::default() }
    }

    #[test]
    fn a_record_goes_on_or_back_for_a_reason() {
        let launched = record(Phase::Launched, 1);
        let judged = |after: &LaunchRecord, alive| step_back(&launched, Some(after), alive);
        assert_eq!(judged(&record(Phase::Terminating, 1), true), None);
        assert!(judged(&record(Phase::Pending, 1), true).is_some());
        assert!(judged(&record(Phase::Launched, 0), true).is_some());
        let vanished = record(Phase::Terminated, 1);
        assert_eq!(step_back(&vanished, Some(&launched), true), None, "found again");
        assert!(step_back(&vanished, Some(&launched), false).is_some());
        assert!(step_back(&launched, None, false).is_some(), "forgotten in service");
        assert_eq!(step_back(&vanished, None, false), None);
    }
}
