//! Whether four books say the same: instances in EC2, the ledger, NodeClaims and Nodes.
//!
//! Invariant: a pure comparison by instance id; every disagreement is named, not only the first.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, ensure};
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use longshore_lab::instance::{Instance, InstanceState};
use longshore_proto::capacity::v1::{InstancePhase, LaunchPhase};
use serde_json::Value;

use super::ledger::Ledger;
use crate::demo::audit::LAUNCH_TAG;

/// Instance ids that one party names, with what it says of each.
type Book = BTreeMap<String, String>;

/// What each party says.
pub struct Books<'a> {
    /// All instances of the region.
    pub instances: &'a [Instance],
    /// What the leading actuator reports.
    pub ledger: &'a Ledger,
    /// All NodeClaims.
    pub claims: &'a [DynamicObject],
    /// All Nodes.
    pub nodes: &'a [DynamicObject],
}

impl Books<'_> {
    /// Compares all four.
    ///
    /// # Errors
    /// When they differ; the message names every instance, claim and launch in dispute.
    pub fn agree(&self) -> Result<()> {
        let truth = self.alive();
        let mut disputes = self.unfinished();
        let parties = [
            ("ledger's launches", self.launched()),
            ("ledger's instances", self.listed()),
            ("NodeClaims", by_instance(self.claims, "/status/providerID")),
            ("Nodes", by_instance(self.nodes, "/spec/providerID")),
        ];
        for (party, book) in &parties {
            disputes.extend(missing(&truth, book).map(|id| format!("{id}: not in the {party}")));
            disputes.extend(missing(book, &truth).map(|id| format!("{id}: only in the {party}")));
        }
        for (id, launch_id) in &truth {
            let told = parties[0].1.get(id);
            if told.is_some_and(|told| told != launch_id) {
                disputes.push(format!("{id}: its tag says {launch_id}, the ledger {told:?}"));
            }
        }
        ensure!(disputes.is_empty(), "{} disputes: {}", disputes.len(), disputes.join("; "));
        Ok(())
    }

    /// Launch ids of the instances that live, by their own tags.
    fn alive(&self) -> Book {
        let alive = self.instances.iter().filter(|instance| {
            matches!(instance.state, InstanceState::Pending | InstanceState::Running)
        });
        let tag = |instance: &Instance| instance.tags.get(LAUNCH_TAG).cloned().unwrap_or_default();
        alive.map(|instance| (instance.instance_id.clone(), tag(instance))).collect()
    }

    fn launched(&self) -> Book {
        let launches = self.ledger.launches.values();
        let launched = launches.filter(|launch| launch.phase() == LaunchPhase::Launched);
        launched.map(|launch| (launch.instance_id.clone(), launch.launch_id.clone())).collect()
    }

    fn listed(&self) -> Book {
        let alive = self.ledger.instances.values().filter(|instance| {
            matches!(instance.phase(), InstancePhase::Pending | InstancePhase::Running)
        });
        alive.map(|instance| (instance.instance_id.clone(), instance.launch_id.clone())).collect()
    }

    /// What is still under way: pending launches, claims without an instance.
    fn unfinished(&self) -> Vec<String> {
        let launches = self.ledger.launches.values();
        let pending = launches.filter(|launch| launch.phase() == LaunchPhase::Pending);
        let pending = pending.map(|launch| format!("launch {} is pending", launch.launch_id));
        let bare = self.claims.iter().filter(|claim| id_at(claim, "/status/providerID").is_none());
        let bare = bare.map(|claim| format!("claim {} has no instance", claim.name_any()));
        pending.chain(bare).collect()
    }
}

/// Provider ids of claims.
pub fn provider_ids(claims: &[DynamicObject]) -> impl Iterator<Item = String> {
    let id =
        |claim: &DynamicObject| claim.data.pointer("/status/providerID")?.as_str().map(Into::into);
    claims.iter().filter_map(id)
}

fn by_instance(objects: &[DynamicObject], provider_id: &str) -> Book {
    let found = objects.iter().map(|object| Some((id_at(object, provider_id)?, object.name_any())));
    found.flatten().collect()
}

fn id_at(object: &DynamicObject, provider_id: &str) -> Option<String> {
    let provider_id = object.data.pointer(provider_id).and_then(Value::as_str)?;
    provider_id.rsplit('/').next().filter(|id| !id.is_empty()).map(ToOwned::to_owned)
}

fn missing<'a>(wanted: &'a Book, book: &Book) -> impl Iterator<Item = &'a String> {
    let known: BTreeSet<String> = book.keys().cloned().collect();
    wanted.keys().filter(move |id| !known.contains(*id))
}
