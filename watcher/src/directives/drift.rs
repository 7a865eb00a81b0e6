//! What is known of a claim's drift, written on the claim.
//!
//! Invariant: what a claim counts as made from is written once, unless it is of another version.

use kube::ResourceExt as _;
use longshore_proto::cluster::v1::NoteDrift;

use super::status::conditions;
use super::{Directives, Outcome};
use crate::api::NodeClaim;
use crate::names;
use crate::patch::{Part, edit};

impl Directives {
    pub(super) async fn note_drift(&self, note: &NoteDrift) -> Outcome {
        let (name, api) = (&note.claim, self.claims());
        let mut known = self.known_claim(name);
        if !note.drift_hash.is_empty() {
            let hash = |claim: &mut NodeClaim| {
                let hash = note.drift_hash.clone();
                claim.annotations_mut().insert(names::DRIFT_HASH.to_owned(), hash);
            };
            known = edit(&api, name, Part::Main, known, hash).await?;
        }
        if let Some(drifted) = &note.drifted {
            let at = self.now();
            let write = |claim: &mut NodeClaim| {
                let generation = claim.metadata.generation;
                let status = claim.status.get_or_insert_default();
                conditions(&mut status.conditions, std::slice::from_ref(drifted), generation, &at);
            };
            edit(&api, name, Part::Status, known, write).await?;
        }
        Ok(())
    }
}
