//! Status that actuators have found out and users read in the cluster.
//!
//! Invariant: each status carries a digest of its content, so that equal status is written once.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use longshore_proto::cluster::v1::PublishEvent;
use longshore_proto::cluster::v1::directive::Action;
use prost::Message;

use super::state::{ClusterState, Refused};
use crate::region::RegionState;

/// A status to write, with its need's key and a digest of its content.
pub struct Written {
    /// Key of the need.
    pub key: String,
    /// Digest of the content.
    pub content: String,
    /// The directive.
    pub action: Action,
}

/// Directives that write the status of the cluster's node classes.
#[must_use]
pub fn node_classes(state: &ClusterState, region: &RegionState) -> Vec<Written> {
    let known = |name: &String| region.node_class(state.cluster_id(), name);
    let resolved = state.node_classes().keys().filter_map(known);
    let status = resolved.filter_map(|resolution| resolution.status.clone());
    let written = status.map(|status| {
        let mut hasher = DefaultHasher::new();
        status.encode_to_vec().hash(&mut hasher);
        Written {
            key: format!("class-status/{}", status.node_class),
            content: format!("{:x}", hasher.finish()),
            action: Action::SetNodeClassStatus(status),
        }
    });
    written.collect()
}

/// Events for objects that could not be read.
#[must_use]
pub fn refusals(refused: Vec<Refused>) -> Vec<Written> {
    let written = refused.into_iter().map(|Refused { about, error }| Written {
        key: format!("refused/{}/{}", about.kind, about.key),
        content: error.to_string(),
        action: Action::PublishEvent(PublishEvent {
            about: Some(about),
            warning: true,
            reason: "InvalidObject".to_owned(),
            message: error.to_string(),
        }),
    });
    written.collect()
}
