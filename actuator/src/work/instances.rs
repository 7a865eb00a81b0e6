//! Listing: keeps the inventory at what EC2 shows.
//!
//! Invariant: one listing at a time and at most one a second, however often it is asked for. What a
//! listing lacks is looked up by its id; a look-up that fails changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use longshore_proto::capacity::v1::InstancePhase;
use longshore_runtime::planted;
use tokio::time::{Instant, timeout};

use crate::cloud::{CallMarks, CloudError, Found, Instance, TAG_CLUSTER};
use crate::inventory::Denial;
use crate::leader::Leader;
use crate::ledger::LaunchRecord;
use crate::reconcile::undecided;
use crate::wire;

/// Shortest time between two listings.
const PAUSE: Duration = Duration::from_millis(1000);
/// Longest time for a listing or a look-up; a region's pages take seconds.
const ANSWER_WITHIN: Duration = Duration::from_secs(180);

/// Longest time from one listing to the next: calls that are answered late, and a calm region's
/// pause.
const ROUND_MAX: Duration = Duration::from_secs(30 * 60);

pub async fn run(leader: Arc<Leader>) -> anyhow::Result<()> {
    let pulse = leader.context.platform.pulses.begin("instances", ROUND_MAX);
    loop {
        pulse.beat();
        let listing = timeout(ANSWER_WITHIN, leader.cloud().instances()).await??;
        let found = look_up(&leader, &listing).await;
        take_over(&leader, &listing, found);
        tokio::time::sleep(PAUSE.min(leader.context.tuning.inventory_interval)).await;
        let restless = leader.inventory.borrow().restless();
        let wait = leader.context.tuning.inventory_wait(restless);
        tokio::select! {
            () = leader.look.notified() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// What EC2 says by id of those that it ought to have listed.
async fn look_up(leader: &Leader, listing: &[Instance]) -> Found {
    let missing = leader.inventory.borrow().missing(&leader.ledger.book(), listing);
    if missing.is_empty() {
        return Found::default();
    }
    if planted::is("S4") {
        return Found { instances: Vec::new(), unknown: missing };
    }
    leader.events().short_listing(missing.len(), listing.len());
    match timeout(ANSWER_WITHIN, leader.cloud().instances_by_id(&missing)).await {
        Ok(Ok(found)) => found,
        Ok(Err(error)) => unanswered(&error.to_string()),
        Err(late) => unanswered(&late.to_string()),
    }
}

fn unanswered(why: &str) -> Found {
    tracing::warn!(why, "instances that were not listed stay as they were");
    Found::default()
}

fn take_over(leader: &Leader, listing: &[Instance], found: Found) {
    let mut news = Vec::new();
    let mut gone = Vec::new();
    let mut frozen = BTreeMap::<String, Vec<&str>>::new();
    leader.inventory.send_if_modified(|inventory| {
        let before = inventory.clone();
        let book = leader.ledger.book();
        for instance in listing.iter().chain(&found.instances) {
            let named = before.get(&instance.instance_id).is_some_and(has_name);
            if let Some(seen) = inventory.observe(&book, with_zone_id(leader, instance)) {
                news.push((seen, named));
            }
        }
        for id in &found.unknown {
            let record = book.of_instance(id).map(|record| &**record);
            let cluster_id = cluster_of(inventory.get(id), record);
            let denial = inventory.denied(id, &cluster_id, Instant::now());
            if denial == Denial::Frozen {
                frozen.entry(cluster_id).or_default().push(id.as_str());
            } else if denial == Denial::Vanished {
                leader.events().vanished(id);
                wire::show_vanished(&leader.board, inventory.get(id), record);
            }
        }
        let listed: BTreeSet<_> = listing.iter().map(|found| found.instance_id.clone()).collect();
        gone = inventory.settle(&book, &listed);
        // The end of a launch's instance is shown for as long as the launch is.
        gone.retain(|id| book.of_instance(id).is_none());
        *inventory != before
    });
    for (cluster_id, ids) in &frozen {
        leader.events().vanishing_frozen(cluster_id, ids);
    }
    for (instance, named) in &news {
        let ours = instance.launch_ms + 1000 >= leader.since_ms;
        if ours && !named && has_name(instance) && instance.alive() {
            leader.events().launched(instance);
        }
        show(leader, instance);
    }
    leader.board.forget(Vec::new(), gone);
}

/// Cluster that an instance is of, by its tags or its launch.
fn cluster_of(instance: Option<&Instance>, record: Option<&LaunchRecord>) -> String {
    let tagged = instance.map(|found| found.tag(TAG_CLUSTER)).filter(|id| !id.is_empty());
    tagged.or(record.map(|record| record.cluster_id.as_str())).unwrap_or_default().to_owned()
}

fn has_name(instance: &Instance) -> bool {
    !instance.private_dns_name.is_empty() && instance.phase != InstancePhase::Terminated
}

/// Takes over instances that a look-up for one launch or announcement has found.
pub fn take_found(leader: &Leader, instances: &[Instance]) -> Vec<Instance> {
    let mut news = Vec::new();
    leader.inventory.send_if_modified(|inventory| {
        let book = leader.ledger.book();
        let seen = instances.iter().map(|instance| with_zone_id(leader, instance));
        news = seen.filter_map(|instance| inventory.observe(&book, instance)).collect();
        !news.is_empty()
    });
    news.iter().for_each(|instance| show(leader, instance));
    news
}

/// Shows an instance, unless it is about to be decided whose it is.
fn show(leader: &Leader, instance: &Instance) {
    if !undecided(&leader.ledger.book(), instance) {
        wire::show_instance(&leader.board, instance);
    }
}

/// What there is of a call.
pub async fn of_call(leader: &Leader, marks: CallMarks<'_>) -> Result<Vec<Instance>, CloudError> {
    let asking = leader.cloud().instances_of_call(marks);
    let answer = timeout(ANSWER_WITHIN, asking).await;
    let found = answer.unwrap_or_else(|_| Err(CloudError::silent("ec2:DescribeInstances")))?;
    Ok(take_found(leader, &found))
}

/// EC2 does not say the zone's id of every instance; subnets do.
fn with_zone_id(leader: &Leader, instance: &Instance) -> Instance {
    let mut instance = instance.clone();
    if instance.zone_id.is_empty() {
        let classes = leader.classes.borrow();
        let subnets = classes.values().flat_map(|class| &class.subnets);
        let mut known = subnets.filter(|subnet| subnet.zone == instance.zone);
        instance.zone_id = known.next().map_or(String::new(), |subnet| subnet.zone_id.clone());
    }
    instance
}
