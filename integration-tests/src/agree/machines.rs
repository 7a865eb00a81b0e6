//! What is bought for a planned node, and the Node that its kubelet registers.
//!
//! Invariant: any candidate may be bought; a node has what the catalogue says of its type, the
//! labels and taints of its launch, and is closed until it is registered.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::Node;
use longshore_core::answer::{Candidate, NewNode};
use longshore_core::capacity_group::CapacityGroup;
use longshore_core::resources::Resources as Amounts;
use longshore_proto::cluster::v1::{CreateClaim, RecordLaunch};
use longshore_proto::types::v1::{Catalogue, InstanceType, NodeClaim, Resources};
use longshore_scheduler::wire::{catalogue::capacity_type_to_wire, plan, resources};
use longshore_watcher::api::keys::labels::{CAPACITY_TYPE, HOSTNAME, NODE_POOL, ZONE, ZONE_ID};
use longshore_watcher::names::UNREGISTERED_TAINT;
use longshore_watcher::project::quantity::quantities;
use serde_json::json;

/// A planned node that was bought.
pub struct Machine<'a> {
    /// Name of node and claim.
    pub name: String,
    /// As planned.
    pub planned: &'a NewNode,
    /// What it has for pods and DaemonSets.
    pub room: Amounts,
    candidate: &'a Candidate,
    kind: &'a InstanceType,
}

impl<'a> Machine<'a> {
    /// Buys a candidate for a planned node.
    ///
    /// # Errors
    /// When it has no such candidate, or nothing of that type is sold.
    pub fn buy(
        name: String,
        planned: &'a NewNode,
        choice: usize,
        catalogue: &'a Catalogue,
    ) -> Result<Self> {
        let candidate = planned.candidates.get(choice).context("a launch without candidates")?;
        let wanted = candidate.instance_type.as_str();
        let kind = catalogue.types.iter().find(|kind| kind.name == wanted);
        let kind = kind.with_context(|| format!("{wanted} is not sold"))?;
        // The overhead of a neutral catalogue is nothing.
        let room = resources::from_wire(kind.capacity.as_ref())?;
        Ok(Self { name, planned, room, candidate, kind })
    }

    fn provider_id(&self) -> String {
        format!("aws:///{}/i-{}", self.candidate.zone, self.name)
    }

    fn allocatable(&self) -> Resources {
        resources::to_wire(&self.room)
    }

    /// What makes its claim.
    #[must_use]
    pub fn claim(&self) -> CreateClaim {
        let claim = NodeClaim {
            name: self.name.clone(),
            launch_id: self.name.clone(),
            ..plan::claim(self.planned)
        };
        CreateClaim { claim: Some(claim), ..CreateClaim::default() }
    }

    /// What records its launch.
    #[must_use]
    pub fn launch(&self) -> RecordLaunch {
        RecordLaunch {
            claim: self.name.clone(),
            provider_id: self.provider_id(),
            instance_type: self.kind.name.clone(),
            zone: self.candidate.zone.to_string(),
            zone_id: self.candidate.zone_id.to_string(),
            capacity_type: capacity_type_to_wire(self.candidate.capacity_type).into(),
            capacity: self.kind.capacity.clone(),
            allocatable: Some(self.allocatable()),
            labels: self.instance_labels(),
            ..RecordLaunch::default()
        }
    }

    /// Labels of its type, and of the capacity group of its type and zone.
    fn instance_labels(&self) -> BTreeMap<String, String> {
        let mut labels: BTreeMap<String, String> = self.kind.labels.clone().into_iter().collect();
        labels.extend(CapacityGroup::of(&self.kind.name, self.candidate.zone.as_str()).labels());
        labels
    }

    /// Labels of its Node.
    #[must_use]
    pub fn labels(&self) -> BTreeMap<String, String> {
        let mut labels = self.instance_labels();
        labels.extend(self.planned.labels.clone());
        let own = [
            (HOSTNAME, self.name.as_str()),
            (ZONE, self.candidate.zone.as_str()),
            (ZONE_ID, self.candidate.zone_id.as_str()),
            (CAPACITY_TYPE, self.candidate.capacity_type.label()),
            (NODE_POOL, self.planned.pool.as_str()),
        ];
        labels.extend(own.map(|(key, value)| (key.to_owned(), value.to_owned())));
        labels
    }

    /// The Node, ready and closed.
    ///
    /// # Errors
    /// When it cannot be written as an object.
    pub fn node(&self) -> Result<Node> {
        let room: BTreeMap<_, _> = quantities(&self.allocatable());
        Ok(serde_json::from_value(json!({
            "metadata": {"name": self.name, "labels": self.labels()},
            "spec": {
                "providerID": self.provider_id(),
                "taints": [{"key": UNREGISTERED_TAINT, "effect": "NoExecute"}],
            },
            "status": {
                "capacity": room,
                "allocatable": room,
                "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
            },
        }))?)
    }
}
