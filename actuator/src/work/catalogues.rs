//! Showing catalogues and node classes.
//!
//! Invariant: a catalogue is shown before the class that names it; one whose prices alone changed
//! is not sent again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use longshore_proto::capacity::v1::region_change::Change;
use longshore_proto::capacity::v1::{NodeClassResolution, OfferingUpdates};
use longshore_proto::limits::MESSAGE_BYTES_MAX;
use longshore_proto::types::v1::Catalogue;
use longshore_runtime::planted;
use prost::Message;

use crate::catalogue::{build, offering_changes};
use crate::leader::{Classes, Leader, lock};
use crate::nodeclass::{QUEUE_READY, Resolved};

/// Longest time between two looks: faults shown on classes end by themselves.
const INTERVAL: Duration = Duration::from_secs(15);
/// Room left in a message for what surrounds a catalogue.
const ENVELOPE_BYTES: usize = 1024;

pub async fn run(leader: Arc<Leader>) -> anyhow::Result<()> {
    let mut classes = leader.classes.subscribe();
    let mut market = leader.market.subscribe();
    let mut shown: BTreeMap<String, Catalogue> = BTreeMap::new();
    loop {
        let current: Classes = classes.borrow_and_update().clone();
        market.mark_unchanged();
        let mut named = BTreeSet::new();
        for (key, class) in &current {
            let catalogue_id = show_catalogue(&leader, class, &mut shown);
            named.extend(catalogue_id.clone());
            show_class(&leader, key, class, catalogue_id);
        }
        if !planted::is("S14a") {
            shown.retain(|id, _| named.contains(id));
            leader.board.keep_catalogues(&named);
        }
        tokio::select! {
            changed = classes.changed() => changed?,
            changed = market.changed() => changed?,
            () = leader.show.notified() => {}
            () = tokio::time::sleep(INTERVAL) => {}
        }
    }
}

/// Shows the class's catalogue and returns its id; none while nothing is known to be sold.
fn show_catalogue(
    leader: &Leader,
    class: &Resolved,
    shown: &mut BTreeMap<String, Catalogue>,
) -> Option<String> {
    let market = leader.market.borrow().clone();
    let region = &leader.context.region;
    let catalogue = build(&market, class, &leader.closed(), leader.now_ms(), region);
    if catalogue.types.is_empty() {
        return None;
    }
    let id = catalogue.catalogue_id.clone();
    match shown.get(&id) {
        Some(before) => {
            let updates = offering_changes(before, &catalogue);
            let catalogue_id = id.clone();
            leader.board.post_offerings(OfferingUpdates { catalogue_id, updates });
        }
        None if catalogue.encoded_len() + ENVELOPE_BYTES > MESSAGE_BYTES_MAX => {
            tracing::error!(
                bytes = catalogue.encoded_len(),
                types = catalogue.types.len(),
                class = class.class.name,
                "catalogue too large for a message; select fewer zones in the node class"
            );
            return None;
        }
        None => leader.board.post(Change::Catalogue(catalogue.clone())),
    }
    shown.insert(id.clone(), catalogue);
    Some(id)
}

fn show_class(
    leader: &Leader,
    key: &(String, String),
    class: &Resolved,
    catalogue_id: Option<String>,
) {
    let mut shown = class.clone();
    if let Some(fault) = leader.fault_of(key, leader.now_ms()) {
        shown.conditions.set("ValidationSucceeded", Some(fault));
    }
    let queue = &class.cluster.interruption_queue;
    if !queue.is_empty() {
        shown.conditions.set(QUEUE_READY, lock(&leader.queues).get(queue).cloned());
    }
    let ready = shown.conditions.obstacle().is_none() && catalogue_id.is_some();
    leader.board.post(Change::NodeClass(NodeClassResolution {
        cluster_id: class.cluster_id.clone(),
        status: Some(shown.status()),
        hash: class.class.hash.clone(),
        ready,
        catalogue_id: catalogue_id.unwrap_or_default(),
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scripted, leader};

    fn shown(leader: &Leader) -> Vec<String> {
        let state = leader.board.subscribe().unwrap().state;
        let id = |change: Option<Change>| {
            let Some(Change::Catalogue(catalogue)) = change else { return None };
            Some(catalogue.catalogue_id)
        };
        state.iter().filter_map(|change| id(change.change.clone())).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_catalogue_that_no_class_names_is_forgotten() {
        let leader = leader(Arc::new(Scripted::default())).await;
        let looks = async {
            tokio::time::sleep(INTERVAL).await;
            let before = shown(&leader);
            leader.classes.send_modify(|classes| {
                for class in classes.values_mut() {
                    Arc::make_mut(class).subnets.retain(|subnet| subnet.zone == "a");
                }
            });
            tokio::time::sleep(INTERVAL).await;
            (before, shown(&leader))
        };
        let (before, after) = tokio::select! {
            seen = looks => seen,
            outcome = run(Arc::clone(&leader)) => panic!("it has ended: {outcome:?}"),
        };
        assert_eq!((before.len(), after.len()), (1, 1), "{before:?}, then {after:?}");
        assert_ne!(before, after, "another class sells other offerings");
    }
}
