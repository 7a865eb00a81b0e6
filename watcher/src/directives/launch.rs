//! Recording what became of a launch.
//!
//! Invariant: the instance's labels are on the claim before its condition Launched is true.

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;
use kube::api::DeleteParams;
use longshore_proto::cluster::v1::{RecordLaunch, RecordLaunchFailure};
use longshore_proto::types::v1::Resources;

use super::{DirectiveError, Directives, Outcome};
use crate::api::keys::conditions;
use crate::api::node_claim::NodeClaimStatus;
use crate::api::{NodeClaim, ResourceList};
use crate::events::Happening;
use crate::index::pods::PodEntry;
use crate::names;
use crate::observe::reference;
use crate::patch::{Part, Wanted, edit, found, set_condition};
use crate::project::claim::capacity_label;
use crate::project::quantity::quantities;

impl Directives {
    pub(super) async fn record_launch(&self, launch: &RecordLaunch) -> Outcome {
        let name = &launch.claim;
        let api = self.claims();
        let labelled =
            edit(&api, name, Part::Main, self.known_claim(name), |claim| label(claim, launch));
        let claim = labelled.await?.ok_or_else(|| gone(name))?;
        let at = self.now();
        let recorded = edit(&api, name, Part::Status, Some(claim), |claim| {
            let generation = claim.metadata.generation;
            record(claim.status.get_or_insert_default(), launch, generation, &at);
        });
        let claim = recorded.await?.ok_or_else(|| gone(name))?;
        let note = format!(
            "{} {} in {}: {}",
            capacity_label(launch.capacity_type()),
            launch.instance_type,
            launch.zone,
            launch.provider_id
        );
        self.say_of_claim(&claim, "Launched", note);
        Ok(())
    }

    pub(super) async fn record_launch_failure(&self, failure: &RecordLaunchFailure) -> Outcome {
        let name = &failure.claim;
        let api = self.claims();
        let wanted = Wanted {
            kind: conditions::LAUNCHED,
            status: Some(false),
            reason: &failure.reason,
            message: &failure.message,
        };
        let at = self.now();
        let recorded = edit(&api, name, Part::Status, self.known_claim(name), |claim| {
            let generation = claim.metadata.generation;
            let status = claim.status.get_or_insert_default();
            set_condition(&mut status.conditions, &wanted, generation, &at);
        });
        let Some(claim) = recorded.await? else { return Ok(()) };
        self.announce_failure(&claim, failure);
        if failure.delete && claim.metadata.deletion_timestamp.is_none() {
            found(api.delete(name, &DeleteParams::default()).await)?;
            self.counters.nodes.claim_disrupted(&claim, &failure.reason);
        }
        Ok(())
    }

    fn announce_failure(&self, claim: &NodeClaim, failure: &RecordLaunchFailure) {
        let pods: Vec<ObjectReference> = self.store.read(|index| {
            let waiting = index.planned_for(&failure.claim).filter(|pod| pod.waits());
            waiting.map(PodEntry::reference).collect()
        });
        let claim = reference::<NodeClaim>(&claim.metadata);
        for about in std::iter::once(claim).chain(pods) {
            self.events.publish(Happening {
                about,
                warning: true,
                reason: "LaunchFailed".to_owned(),
                note: format!("{}: {}", failure.reason, failure.message),
            });
        }
    }
}

fn gone(claim: &str) -> DirectiveError {
    DirectiveError::refused("NOT_FOUND", format!("NodeClaim {claim} does not exist any more"))
}

fn label(claim: &mut NodeClaim, launch: &RecordLaunch) {
    let labels = claim.labels_mut();
    labels.extend(launch.labels.clone());
    let facts = [
        (names::INSTANCE_TYPE, launch.instance_type.as_str()),
        (names::ZONE, &launch.zone),
        (names::ZONE_ID, &launch.zone_id),
        (names::CAPACITY_TYPE, capacity_label(launch.capacity_type())),
    ];
    let known = facts.into_iter().filter(|(_, value)| !value.is_empty());
    labels.extend(known.map(|(key, value)| (key.to_owned(), value.to_owned())));
}

fn record(status: &mut NodeClaimStatus, launch: &RecordLaunch, generation: Option<i64>, at: &Time) {
    status.provider_id = Some(launch.provider_id.clone());
    status.image_id = Some(launch.image_id.clone()).filter(|id| !id.is_empty());
    status.capacity = list(launch.capacity.as_ref());
    status.allocatable = list(launch.allocatable.as_ref());
    set_condition(&mut status.conditions, &Wanted::met(conditions::LAUNCHED), generation, at);
}

/// Resources as a status shows them.
pub(super) fn list(resources: Option<&Resources>) -> ResourceList {
    let list = resources.map(quantities).unwrap_or_default();
    list.into_iter().map(|(name, quantity)| (name, quantity.into())).collect()
}
