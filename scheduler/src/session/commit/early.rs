//! Pods that are let in to nodes which have yet to join.
//!
//! Invariant: once the burst is over that the nodes are for, since its pods may find other places
//! until then; only pods whose place is at stake; each once for a node. What comes to nothing is
//! made up for when the node registers.

use std::collections::{BTreeMap, BTreeSet};

use longshore_core::vocabulary::ids::PodUid;
use longshore_proto::cluster::v1 as cluster;
use longshore_proto::cluster::v1::directive::Action;
use longshore_proto::types::v1::NodeClaim;
use tokio::time::Instant;

use super::digest;
use crate::session::Session;
use crate::session::outbox::Origin;

/// Pods that were let in to the node of each coming claim.
pub type Early = BTreeMap<String, BTreeSet<String>>;

impl Session {
    /// Has the pods of coming nodes pinned while these boot: the API server has little else to do
    /// then, and they run as soon as a node is there.
    pub(super) fn pin_early(&mut self, origin: Origin<'_>) {
        let any_order = self.planning.newest().is_some_and(|newest| newest.plan.any_order);
        // Those that come are planned for, and this is asked again.
        let pods_come = !self.state.foresight().coming().is_empty();
        if !self.state.pins_pods || any_order || pods_come {
            return;
        }
        let untold = self.untold();
        if let Some(until) = self.planning.cadence.gathers_until().filter(|_| !untold.is_empty()) {
            self.planning.cadence.wake_after(until.saturating_duration_since(Instant::now()));
            return;
        }
        let nominations = self.planning.nominations();
        self.early.retain(|claim, _| nominations.contains_key(claim));
        for (claim, pods) in untold {
            let key = format!("pin/{claim}/{:x}", digest(&pods));
            let pin = cluster::PinPods { claim: claim.clone(), pods: pods.clone() };
            if self.outbox.direct(&key, "", Action::PinPods(pin), origin) {
                self.early.entry(claim).or_default().extend(pods);
            }
        }
    }

    /// Claims whose nodes have yet to join, with the pods that wait for them and were not let in.
    fn untold(&self) -> Vec<(String, Vec<String>)> {
        let (claims, world) = (self.state.claims(), self.state.view().world());
        let nodes = self.state.nodes_by_provider();
        let has_joined = |id: &String| !id.is_empty() && nodes.contains_key(id);
        let is_coming = |claim: &NodeClaim| {
            claim.register_time.is_none() && !claim.deleting && !has_joined(&claim.provider_id)
        };
        let waits = |uid: &String| {
            let pod = world.pods.get(&PodUid::new(uid));
            pod.is_some_and(|pod| pod.node.is_none() && pod.nominated_node.is_none())
        };
        let planned = self.planning.nominations().iter();
        let planned = planned.filter(|(claim, _)| claims.get(*claim).is_some_and(is_coming));
        let untold = planned.map(|(claim, pods)| {
            let told = self.early.get(claim);
            let is_told = |pod: &String| told.is_some_and(|told| told.contains(pod));
            let pods = pods.iter().filter(|pod| !is_told(pod) && waits(pod));
            (claim.clone(), pods.cloned().collect::<Vec<String>>())
        });
        untold.filter(|(_, pods)| !pods.is_empty()).collect()
    }
}
