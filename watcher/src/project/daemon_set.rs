//! DaemonSets: the overhead of every node they would run on.
//!
//! Invariant: the shape of the template equals the shape of its pods.

use k8s_openapi::api::apps::v1::DaemonSet;
use longshore_proto::types::v1 as wire;

use super::fault::Fault;
use super::shape::{self, Workload};
use super::surroundings::Surroundings;

/// A DaemonSet and the shape of its pods.
///
/// # Errors
/// Requests that cannot be read.
pub fn daemon_set(
    set: &DaemonSet,
    around: &Surroundings,
) -> Result<(wire::DaemonSet, wire::PodShape), Fault> {
    let namespace = set.metadata.namespace.as_deref().unwrap_or("default");
    let name = set.metadata.name.as_deref().unwrap_or_default();
    let template = set.spec.as_ref().map(|s| s.template.clone()).unwrap_or_default();
    let workload = Workload { kind: "DaemonSet", namespace, name };
    let shape = shape::template(&workload, &template, around)?;
    let row = wire::DaemonSet {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        shape_id: shape.shape_id.clone(),
    };
    Ok((row, shape))
}
