//! Letting go of a claim whose instance is gone.
//!
//! Invariant: the Node goes before its claim, so that no claim without finalizer leaves a Node that
//! nobody tends.

use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, Preconditions};
use longshore_proto::cluster::v1::ReleaseClaim;

use super::{Directives, Outcome};
use crate::names;
use crate::patch::{Part, code, edit, found, remove_finalizer};

impl Directives {
    pub(super) async fn release_claim(&self, release: &ReleaseClaim) -> Outcome {
        let name = &release.claim;
        if release.on_absence {
            self.losses.note(name);
        }
        let node = self.store.read(|index| {
            let claim = index.claim(name)?;
            index.node_of(claim).map(|node| node.as_ref().clone())
        });
        if let Some(node) = node {
            let node_name = node.name_any();
            let api = self.nodes();
            // Only this Node: another instance may have taken its name.
            let uid = node.metadata.uid.clone();
            let exactly = Preconditions { uid: uid.clone(), ..Preconditions::default() };
            let params = DeleteParams { preconditions: Some(exactly), ..DeleteParams::default() };
            match api.delete(&node_name, &params).await {
                Err(error) if matches!(code(&error), Some(404 | 409)) => {}
                other => drop(other?),
            }
            let free = |node: &mut Node| {
                if node.metadata.uid == uid {
                    remove_finalizer(node, names::TERMINATION);
                }
            };
            edit(&api, &node_name, Part::Main, None, free).await?;
        }
        let api = self.claims();
        found(api.delete(name, &DeleteParams::default()).await)?;
        let free = |claim: &mut _| remove_finalizer(claim, names::TERMINATION);
        edit(&api, name, Part::Main, None, free).await?;
        Ok(())
    }
}
