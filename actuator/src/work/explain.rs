//! Errors in words, with the node class they are about.
//!
//! Invariant: an explanation never fails; at worst it is the error itself.

use longshore_proto::types::v1::NodeClass;

use crate::cloud::{Class, CloudError};
use crate::leader::Leader;
use crate::ledger::LaunchRecord;
use crate::nodeclass::{Explainer, Resolved, explain_profile};

/// An error about launching from a class.
pub async fn for_class(leader: &Leader, class: &Resolved, error: &CloudError) -> String {
    let place = leader.place();
    let explainer = Explainer { cloud: leader.cloud(), place: &place, class: &class.class };
    if error.class == Class::Profile {
        return explain_profile(&explainer, &class.instance_profile).await;
    }
    explainer.explain(error).await
}

/// An error about a launch whose class may be unknown by now.
pub async fn for_launch(
    leader: &Leader,
    record: Option<&LaunchRecord>,
    error: &CloudError,
) -> String {
    if let Some(class) = record.and_then(|record| leader.class_of(record)) {
        return for_class(leader, &class, error).await;
    }
    let (place, class) = (leader.place(), NodeClass::default());
    Explainer { cloud: leader.cloud(), place: &place, class: &class }.explain(error).await
}
