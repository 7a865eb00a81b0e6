//! Letting go of a claim whose instance is gone.
//!
//! Invariant: only of one that is being deleted, for a reason that its deletion has named. The Node
//! goes before its claim, so that no claim without finalizer leaves a Node that nobody tends.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, Preconditions};
use longshore_proto::cluster::v1::ReleaseClaim;

use super::{DirectiveError, Directives, Outcome};
use crate::api::NodeClaim;
use crate::names;
use crate::patch::{Part, Precondition, code, edit, edit_node, remove_finalizer};

impl Directives {
    pub(super) async fn release_claim(&self, release: &ReleaseClaim) -> Outcome {
        let name = &release.claim;
        // The scheduler reckons with the deletion that it has asked for, which may have failed.
        if !self.is_going(name).await? {
            let text = format!("claim {name} is not being deleted; it is let go after that");
            return Err(DirectiveError::refused("NOT_DELETED", text));
        }
        if release.on_absence {
            self.losses.note(name);
        }
        let node = self.store.read(|index| index.node_of(index.claim(name)?));
        if let Some(node) = &node {
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
            edit_node(&api, &node_name, None, Precondition::Itself, free).await?;
        }
        let first = AtomicBool::new(false);
        let free = |claim: &mut NodeClaim| {
            first.store(claim.finalizers().iter().any(|f| f == names::TERMINATION), Relaxed);
            remove_finalizer(claim, names::TERMINATION);
        };
        let freed = edit(&self.claims(), name, Part::Main, None, free).await?;
        if let Some(claim) = freed.filter(|_| first.into_inner()) {
            self.count_released(&claim, node.as_ref());
        }
        Ok(())
    }

    /// Whether a claim is being deleted, or gone: by what the watch has shown, else by the API
    /// server, since the watch may be late.
    async fn is_going(&self, name: &str) -> kube::Result<bool> {
        let going = |claim: &NodeClaim| claim.metadata.deletion_timestamp.is_some();
        if self.store.read(|index| index.claim(name).is_some_and(|claim| going(claim))) {
            return Ok(true);
        }
        Ok(self.claims().get_opt(name).await?.as_ref().is_none_or(going))
    }
}
