//! Device classes, claim templates and the devices of nodes in the index.
//!
//! Invariant: a node on which a pod has devices that are not counted offers none: which of them are
//! left is not known.

use std::collections::BTreeSet;

use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaimTemplate, ResourceSlice};

use super::surroundings::Stale;
use super::{Index, Name, Source, Watched, name_of};
use crate::project::Fault;
use crate::project::devices::{self, Devices};

impl Watched for DeviceClass {
    const SOURCE: Source = Source::DeviceClass;

    fn apply(self, index: &mut Index) -> Result<(), Fault> {
        if index.around.set_device_class(&self) {
            index.class_changed();
        }
        Ok(())
    }

    fn forget(index: &mut Index, (_, name): &Name) {
        if index.around.device_classes.remove(name).is_some() {
            index.class_changed();
        }
    }
}

impl Watched for ResourceClaimTemplate {
    const SOURCE: Source = Source::ResourceClaimTemplate;

    fn apply(self, index: &mut Index) -> Result<(), Fault> {
        if index.around.set_claim_template(&self) {
            index.stale.add(&name_of(&self.metadata).0);
        }
        Ok(())
    }

    fn forget(index: &mut Index, name: &Name) {
        if index.around.claim_templates.remove(name).is_some() {
            index.stale.add(&name.0);
        }
    }
}

impl Watched for ResourceSlice {
    const SOURCE: Source = Source::ResourceSlice;

    fn apply(self, index: &mut Index) -> Result<(), Fault> {
        let (_, name) = name_of(&self.metadata);
        let nodes = index.slices.put(&name, (&self).into());
        index.devices_changed(&nodes);
        Ok(())
    }

    fn forget(index: &mut Index, (_, name): &Name) {
        let nodes = index.slices.remove(name);
        index.devices_changed(&nodes);
    }
}

impl Index {
    /// The devices that drivers say a node has.
    #[must_use]
    pub fn devices_on(&self, node: &str) -> Devices {
        devices::on_node(node, &self.slices, &self.around)
    }

    /// The devices of a node that pods of the view have, or could have.
    pub(super) fn offered_devices(&self, node: &str) -> Devices {
        if self.pods_on(node).any(|pod| pod.facts.uncounted) {
            return Devices::new();
        }
        self.devices_on(node)
    }

    fn class_changed(&mut self) {
        self.stale = Stale::All;
        let nodes = self.slices.nodes().cloned().collect();
        self.devices_changed(&nodes);
    }

    fn devices_changed(&mut self, nodes: &BTreeSet<String>) {
        for node in nodes {
            self.show_node_again(node);
        }
    }
}
