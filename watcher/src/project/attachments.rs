//! Volumes as something a node has a limit of: how many of each CSI driver can be attached.
//!
//! Invariant: a pod requests, and a node has, attachments under one name for each driver. A node
//! that says nothing of a driver has no limit.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PersistentVolume, Volume};
use k8s_openapi::api::storage::v1::{CSINode, CSINodeDriver};
use longshore_proto::types::v1::Resources;

/// Name of the attachments of a driver among resources: this, then the driver.
pub const PREFIX: &str = "attachable-volumes-";
/// The driver behind EBS volumes, whatever API they were made with.
const EBS: &str = "ebs.csi.aws.com";
/// EBS in the API from before CSI.
const EBS_IN_TREE: &str = "kubernetes.io/aws-ebs";
/// Provisioners inside Kubernetes, whose volumes are not attached by a CSI driver.
const IN_TREE_PREFIX: &str = "kubernetes.io/";

/// Number of volumes by driver.
pub type Attachments = BTreeMap<String, i64>;

/// The driver that attaches a volume; empty when none does.
#[must_use]
pub fn of_volume(volume: &PersistentVolume) -> String {
    let Some(spec) = &volume.spec else { return String::new() };
    match (&spec.csi, &spec.aws_elastic_block_store) {
        (Some(source), _) => source.driver.clone(),
        (None, Some(_)) => EBS.to_owned(),
        (None, None) => String::new(),
    }
}

/// The driver that attaches the volumes of a class with this provisioner; empty when none does.
#[must_use]
pub fn of_provisioner(provisioner: &str) -> String {
    match provisioner {
        EBS_IN_TREE => EBS.to_owned(),
        other if other.starts_with(IN_TREE_PREFIX) => String::new(),
        other => other.to_owned(),
    }
}

/// The driver of a volume that a pod has without a claim; empty when none attaches it.
#[must_use]
pub fn of_inline(volume: &Volume) -> &str {
    match (&volume.csi, &volume.aws_elastic_block_store) {
        (Some(source), _) => &source.driver,
        (None, Some(_)) => EBS,
        (None, None) => "",
    }
}

/// One volume of a driver; nothing for an empty one.
#[must_use]
pub fn one(driver: &str) -> Attachments {
    if driver.is_empty() { Attachments::new() } else { [(driver.to_owned(), 1)].into() }
}

/// How many volumes of each driver a node can attach.
#[must_use]
pub fn limits(node: &CSINode) -> Attachments {
    let limit = |driver: &CSINodeDriver| {
        let count = driver.allocatable.as_ref()?.count?;
        Some((driver.name.clone(), i64::from(count)))
    };
    node.spec.drivers.iter().filter_map(limit).collect()
}

/// Writes attachments among resources.
pub fn write(attachments: &Attachments, resources: &mut Resources) {
    let named = attachments.iter().map(|(driver, count)| (format!("{PREFIX}{driver}"), *count));
    resources.extended.extend(named);
}

/// The attachments among resources.
#[must_use]
pub fn read(resources: Option<&Resources>) -> Attachments {
    let all = resources.iter().flat_map(|resources| &resources.extended);
    let named = all.filter_map(|(name, count)| Some((name.strip_prefix(PREFIX)?, *count)));
    named.map(|(driver, count)| (driver.to_owned(), count)).collect()
}
