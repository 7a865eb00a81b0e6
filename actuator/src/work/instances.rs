//! Listing: keeps the inventory at what EC2 shows.
//!
//! Invariant: one listing at a time and at most one a second, however often it is asked for.

use std::sync::Arc;
use std::time::Duration;

use longshore_proto::capacity::v1::InstancePhase;

use crate::cloud::Instance;
use crate::leader::Leader;
use crate::wire;

/// Shortest time between two listings.
const PAUSE: Duration = Duration::from_millis(1000);

pub async fn run(leader: Arc<Leader>) -> anyhow::Result<()> {
    loop {
        let asked_ms = leader.now_ms();
        let listing = leader.cloud().instances().await?;
        take_over(&leader, listing, asked_ms);
        tokio::time::sleep(PAUSE.min(leader.premises.tuning.inventory_interval)).await;
        let restless = leader.inventory.borrow().restless();
        let wait = leader.premises.tuning.inventory_wait(restless);
        tokio::select! {
            () = leader.look.notified() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
}

fn take_over(leader: &Leader, listing: Vec<Instance>, asked_ms: i64) {
    for instance in &listing {
        let known = leader.inventory.borrow().get(&instance.instance_id).cloned();
        let named_before = known.as_ref().is_some_and(|known| !known.private_dns_name.is_empty());
        let ours = instance.launch_ms + 1000 >= leader.since_ms;
        if ours && !named_before && !instance.private_dns_name.is_empty() && instance.alive() {
            leader.events().launched(instance);
        }
        wire::show_instance(&leader.board, &with_zone_id(leader, instance));
    }
    let mut gone = Vec::new();
    leader.inventory.send_if_modified(|inventory| {
        let before = inventory.clone();
        let listed = listing.into_iter().map(|instance| with_zone_id(leader, &instance));
        gone = inventory.listed(listed.collect(), asked_ms);
        for id in &gone {
            if let Some(last) = before.get(id) {
                let ended = Instance { phase: InstancePhase::Terminated, ..last.clone() };
                wire::show_instance(&leader.board, &ended);
            }
        }
        *inventory != before
    });
    leader.board.forget(Vec::new(), gone);
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
