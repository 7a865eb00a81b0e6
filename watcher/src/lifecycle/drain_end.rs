//! When the drain of a claim ends at the latest, as it is written on the claim.
//!
//! Invariant: one form, to the second, which Karpenter reads too; once a claim goes, what is
//! written stays.

use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt as _;

use crate::api::NodeClaim;
use crate::names::TERMINATION_TIMESTAMP;

/// What is written on a claim, in milliseconds since the epoch; nothing where that is no time.
pub(crate) fn noted_ms(claim: &NodeClaim) -> Option<i64> {
    let noted = claim.annotations().get(TERMINATION_TIMESTAMP)?;
    Some(noted.parse::<Timestamp>().ok()?.as_millisecond())
}

/// Writes it on a claim.
pub(crate) fn note(claim: &mut NodeClaim, at_ms: i64) {
    let at = Timestamp::from_millisecond(at_ms).unwrap_or(Timestamp::MAX);
    let text = at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    claim.annotations_mut().insert(TERMINATION_TIMESTAMP.to_owned(), text);
}

/// Takes it off a claim that stays.
pub(crate) fn take_off(claim: &mut NodeClaim) {
    if claim.metadata.deletion_timestamp.is_none() {
        claim.annotations_mut().remove(TERMINATION_TIMESTAMP);
    }
}
