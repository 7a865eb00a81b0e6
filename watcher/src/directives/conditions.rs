//! Conditions of objects whose status holds nothing else of the scheduler's.
//!
//! Invariant: conditions of other types stay; an object that is gone needs none.

use kube::Api;
use longshore_proto::cluster::v1::SetConditions;
use longshore_proto::types::v1::ObjectKind;

use super::status::conditions;
use super::{DirectiveError, Directives, Outcome};
use crate::api::{CapacityBuffer, NodeOverlay};
use crate::patch::{Part, edit};

impl Directives {
    pub(super) async fn set_conditions(&self, set: &SetConditions) -> Outcome {
        let about = set.about.clone().unwrap_or_default();
        if about.kind() == ObjectKind::NodeOverlay {
            return self.set_overlay_conditions(&about.key, set).await;
        }
        if about.kind() == ObjectKind::CapacityBuffer {
            return self.set_buffer_conditions(&about.key, set).await;
        }
        let message = format!("{} has no such conditions", about.kind().as_str_name());
        Err(DirectiveError::refused("MALFORMED", message))
    }

    async fn set_buffer_conditions(&self, key: &str, set: &SetConditions) -> Outcome {
        let (namespace, name) = key.split_once('/').unwrap_or(("", key));
        let api: Api<CapacityBuffer> = Api::namespaced(self.client.clone(), namespace);
        let at = self.now();
        let write = |buffer: &mut CapacityBuffer| {
            let generation = buffer.metadata.generation;
            let status = buffer.status.get_or_insert_default();
            conditions(&mut status.conditions, &set.conditions, generation, &at);
        };
        edit(&api, name, Part::Status, None, write).await?;
        Ok(())
    }

    async fn set_overlay_conditions(&self, name: &str, set: &SetConditions) -> Outcome {
        let api: Api<NodeOverlay> = Api::all(self.client.clone());
        let at = self.now();
        let write = |overlay: &mut NodeOverlay| {
            let generation = overlay.metadata.generation;
            let status = overlay.status.get_or_insert_default();
            conditions(&mut status.conditions, &set.conditions, generation, &at);
        };
        edit(&api, name, Part::Status, None, write).await?;
        Ok(())
    }
}
