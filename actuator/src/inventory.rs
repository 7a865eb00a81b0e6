//! The instances that are ours, as EC2 shows them and as we have just bought them.
//!
//! Invariant: an instance ends here when EC2 says that it ended, or when neither listings nor
//! look-ups by its id have found it for a while. A listing that does not show it says nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use longshore_proto::capacity::v1::InstancePhase;
use longshore_runtime::planted;
use tokio::time::Instant;

use crate::cloud::{Instance, TAG_BATCH, TAG_CLAIM, TAG_CLUSTER, TAG_LAUNCH, TAG_POOL};
use crate::ledger::{Book, LaunchRecord};

/// How long EC2 may take to show a new instance.
pub const VISIBLE_WITHIN: Duration = Duration::from_secs(60);

/// Time between two look-ups by id that found nothing, before an instance counts as vanished:
/// longer than EC2 takes to show a new one.
pub const VANISH_AFTER: Duration = Duration::from_secs(90);

/// Span in which few instances of a cluster may vanish.
pub const VANISH_WINDOW: Duration = Duration::from_secs(600);
const _: () = assert!(
    VISIBLE_WITHIN.as_secs() < VANISH_AFTER.as_secs()
        && VANISH_AFTER.as_secs() < VANISH_WINDOW.as_secs()
);
/// Instances of a cluster that may vanish in that time, however small it is.
const VANISH_MAX: usize = 2;
/// One in so many may vanish in that time: 5 %.
const VANISH_SHARE: usize = 20;

/// What it means that EC2 denies an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denial {
    /// Nothing yet: it may show later.
    Noted,
    /// It vanished.
    Vanished,
    /// It may have vanished, and so would too many others: nothing is concluded.
    Frozen,
}

/// Prefix of the tag that names a cluster in its key.
const CLUSTER_KEY: &str = "kubernetes.io/cluster/";

/// Instances by id. Equal content compares equal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inventory {
    instances: BTreeMap<String, Instance>,
    /// Ids that EC2 said it does not know, since when it has.
    denied: BTreeMap<String, Instant>,
    vanished: BTreeSet<String>,
    /// Instances of calls for several launches that EC2 shows without the tags of their launch.
    untagged: BTreeSet<String>,
    /// Clusters of which instances vanished lately, and until when each counts.
    lately: Vec<(String, Instant)>,
    /// True once a listing of this term has been taken over.
    complete: bool,
}

impl Inventory {
    /// An inventory without instances that knows what vanished in terms before this one.
    #[must_use]
    pub fn after(book: &Book, now_ms: i64, now: Instant) -> Self {
        let vanished = book.launches.values().filter(|record| record.vanished);
        let until = |record: &LaunchRecord| {
            let age_ms = u64::try_from(now_ms.saturating_sub(record.changed_ms)).unwrap_or(0);
            now + VANISH_WINDOW.saturating_sub(Duration::from_millis(age_ms))
        };
        let lately = vanished.map(|record| (record.cluster_id.clone(), until(record))).collect();
        Self { lately, ..Self::default() }
    }

    /// An instance.
    #[must_use]
    pub fn get(&self, instance_id: &str) -> Option<&Instance> {
        self.instances.get(instance_id)
    }

    /// All instances, by id.
    pub fn iter(&self) -> impl Iterator<Item = &Instance> {
        self.instances.values()
    }

    /// True once EC2 has listed the region's instances in this term.
    #[must_use]
    pub const fn complete(&self) -> bool {
        self.complete
    }

    /// True when an instance has ended, by EC2's word or by vanishing.
    #[must_use]
    pub fn ended(&self, instance_id: &str) -> bool {
        let terminated = |instance: &Instance| instance.phase == InstancePhase::Terminated;
        self.vanished(instance_id) || self.get(instance_id).is_some_and(terminated)
    }

    /// True when an instance ended without anybody having seen it end.
    #[must_use]
    pub fn vanished(&self, instance_id: &str) -> bool {
        self.vanished.contains(instance_id)
    }

    /// True when EC2 shows an instance of a call for several launches without the tags of its
    /// launch.
    #[must_use]
    pub fn untagged(&self, instance_id: &str) -> bool {
        self.untagged.contains(instance_id)
    }

    /// True when any instance is on its way up or down, so that a look soon is worth it.
    #[must_use]
    pub fn restless(&self) -> bool {
        let moving = |instance: &Instance| {
            matches!(instance.phase, InstancePhase::Pending | InstancePhase::ShuttingDown)
        };
        self.iter().any(moving) || self.denied.keys().any(|id| !self.vanished(id))
    }

    /// Takes over an instance that was just bought.
    pub fn bought(&mut self, instance: Instance) {
        self.instances.entry(instance.instance_id.clone()).or_insert(instance);
    }

    /// Takes over that instances were asked to terminate.
    pub fn terminating(&mut self, instance_ids: &[String]) {
        for id in instance_ids {
            if let Some(instance) = self.instances.get_mut(id).filter(|found| found.alive()) {
                instance.phase = InstancePhase::ShuttingDown;
            }
        }
    }

    /// Takes over what EC2 shows of an instance; returns it as it is known now, or none when it is
    /// none of ours. What EC2 shows without our tags keeps those we know of.
    pub fn observe(&mut self, book: &Book, instance: Instance) -> Option<Instance> {
        let known = self.instances.get(&instance.instance_id);
        let nameless = instance.tag(TAG_LAUNCH).is_empty();
        let instance = recognised(book, known, instance)?;
        if nameless && !instance.tag(TAG_BATCH).is_empty() {
            self.untagged.insert(instance.instance_id.clone());
        } else {
            self.untagged.remove(&instance.instance_id);
        }
        self.denied.remove(&instance.instance_id);
        self.vanished.remove(&instance.instance_id);
        self.instances.insert(instance.instance_id.clone(), instance.clone());
        Some(instance)
    }

    /// Takes over that it is recorded whose these instances are; returns them as they are known
    /// now.
    pub fn claimed(&mut self, book: &Book, instance_ids: &[String]) -> Vec<Instance> {
        let mut claimed = Vec::new();
        for id in instance_ids {
            let Some(instance) = self.instances.get_mut(id) else { continue };
            for (key, value) in book.of_instance(id).iter().flat_map(|r| recorded_tags(r)) {
                if !value.is_empty() {
                    instance.tags.insert(key.to_owned(), value.to_owned());
                }
            }
            claimed.push(instance.clone());
        }
        claimed
    }

    /// Ids to look up: believed to be there, by the ledger or by what was shown before, and not
    /// listed.
    #[must_use]
    pub fn missing(&self, book: &Book, listed: &[Instance]) -> Vec<String> {
        let listed: BTreeSet<_> = listed.iter().map(|found| found.instance_id.as_str()).collect();
        let shown = self.iter().filter(|known| known.phase != InstancePhase::Terminated);
        let living = book.launches.values().filter(|record| record.living());
        let believed = shown
            .map(|instance| instance.instance_id.as_str())
            .chain(living.map(|record| record.instance_id.as_str()))
            .filter(|id| !listed.contains(id) && !self.vanished.contains(*id));
        believed.collect::<BTreeSet<_>>().into_iter().map(str::to_owned).collect()
    }

    /// Takes over that EC2 neither lists an instance of a cluster nor knows its id.
    pub fn denied(&mut self, instance_id: &str, cluster_id: &str, now: Instant) -> Denial {
        let since = *self.denied.entry(instance_id.to_owned()).or_insert(now);
        if now.duration_since(since) < VANISH_AFTER && !planted::is("S4") {
            return Denial::Noted;
        }
        if self.frozen(cluster_id, now) && !planted::is("S6") {
            return Denial::Frozen;
        }
        if let Some(instance) = self.instances.get_mut(instance_id) {
            instance.phase = InstancePhase::Terminated;
        }
        self.lately.push((cluster_id.to_owned(), now + VANISH_WINDOW));
        self.vanished.insert(instance_id.to_owned());
        Denial::Vanished
    }

    /// True when as many instances of a cluster have vanished lately as may: more would rather be
    /// EC2's mistake than the truth. It is over by itself with time, or when EC2 shows them again.
    fn frozen(&mut self, cluster_id: &str, now: Instant) -> bool {
        self.lately.retain(|(_, until)| now < *until);
        let vanished = self.lately.iter().filter(|(cluster, _)| cluster == cluster_id).count();
        let known = self.iter().filter(|found| found.tag(TAG_CLUSTER) == cluster_id).count();
        vanished >= VANISH_MAX.max(known / VANISH_SHARE)
    }

    /// Takes over that a listing is done with: instances that ended, are not listed any more and
    /// that no launch waits for are dropped. Returns their ids.
    pub fn settle(&mut self, book: &Book, listed: &BTreeSet<String>) -> Vec<String> {
        self.complete = true;
        let waited = |id: &String| {
            listed.contains(id) || book.of_instance(id).is_some_and(|record| !record.finished())
        };
        let gone = self
            .instances
            .iter()
            .filter(|(id, instance)| instance.phase == InstancePhase::Terminated && !waited(id));
        let gone: Vec<_> = gone.map(|(id, _)| id.clone()).collect();
        for id in &gone {
            self.instances.remove(id);
        }
        let instances = &self.instances;
        self.untagged.retain(|id| instances.contains_key(id));
        self.vanished.retain(|id| instances.contains_key(id) || waited(id));
        self.denied.retain(|id, _| instances.contains_key(id) || waited(id));
        gone
    }
}

/// An instance with the tags that make it ours: those it has, those it had, those its launch is
/// recorded with, or those of the cluster whose name another autoscaler gave it.
fn recognised(book: &Book, known: Option<&Instance>, mut instance: Instance) -> Option<Instance> {
    let record = book.of_instance(&instance.instance_id);
    for (key, value) in record.iter().flat_map(|record| recorded_tags(record)) {
        fill(&mut instance, key, value);
    }
    for key in [TAG_LAUNCH, TAG_BATCH, TAG_CLUSTER, TAG_CLAIM, TAG_POOL] {
        fill(&mut instance, key, known.map_or("", |known| known.tag(key)));
    }
    let ours = [TAG_LAUNCH, TAG_BATCH].iter().any(|key| !instance.tag(key).is_empty());
    if record.is_some() || known.is_some() || ours {
        return Some(instance);
    }
    // The claim's name may not have been written yet; claims know their instances.
    if instance.tag(TAG_POOL).is_empty() {
        return None;
    }
    if instance.tag(TAG_CLUSTER).is_empty() {
        let cluster_id = book.cluster_named(cluster_name(&instance)?)?.to_owned();
        fill(&mut instance, TAG_CLUSTER, &cluster_id);
    }
    Some(instance)
}

fn recorded_tags(record: &LaunchRecord) -> [(&'static str, &str); 5] {
    let pool = record.launch.as_ref().map_or("", |launch| &launch.pool);
    let launch_id = if record.adopted { "" } else { record.launch_id() };
    [
        (TAG_LAUNCH, launch_id),
        (TAG_BATCH, &record.batch_id),
        (TAG_CLUSTER, &record.cluster_id),
        (TAG_CLAIM, record.claim()),
        (TAG_POOL, pool),
    ]
}

fn fill(instance: &mut Instance, key: &str, value: &str) {
    if instance.tag(key).is_empty() && !value.is_empty() {
        instance.tags.insert(key.to_owned(), value.to_owned());
    }
}

/// Name of the cluster that an instance's owner gave it.
#[must_use]
pub fn cluster_name(instance: &Instance) -> Option<&str> {
    let named = instance.tag(crate::cloud::TAG_CLUSTER_NAME);
    let owned = instance.tags.iter().filter(|(_, value)| *value == "owned");
    let mut keyed = owned.filter_map(|(key, _)| key.strip_prefix(CLUSTER_KEY));
    if named.is_empty() { keyed.next() } else { Some(named) }
}

#[cfg(test)]
mod tests;
