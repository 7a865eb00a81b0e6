//! Volumes of a node whose pods have left: it is not ended while they are attached to it, because
//! their pods could not start elsewhere for minutes.
//!
//! Invariant: volumes of pods that stay are not waited for, and no volume for longer than the
//! claim's deadline or than Kubernetes itself would wait.

use kube::ResourceExt as _;

use super::{Step, must_leave};
use crate::api::NodeClaim;
use crate::api::keys::conditions;
use crate::index::{Index, Now};
use crate::project::claim::condition;

/// Longest wait, in milliseconds: kube-controller-manager takes a volume off by force six minutes
/// after its pod has gone.
const PATIENCE_MS: i64 = 6 * 60_000;
/// Most volumes that are named to people.
const NAMED_MAX: usize = 3;

/// What has become of the volumes of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Volumes {
    /// None is attached that a pod could miss.
    Detached,
    /// These are waited for.
    Attached(String),
    /// These are waited for no longer.
    GivenUp(String),
}

/// Volumes of a node that are waited for, as VolumeAttachment and PersistentVolume.
pub(super) fn awaited<'a>(
    index: &'a Index,
    node: &'a str,
    now: Now,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let stay = index.pods_on(node).filter(move |pod| !must_leave(pod, now));
    let kept: Vec<&str> = stay.flat_map(|pod| index.volumes_of(&pod.row.uid)).collect();
    index.attached_to(node).filter(move |(_, volume)| !kept.contains(volume))
}

/// True when the pods have been gone for so long that volumes are waited for no longer: by the API
/// server's clock, and by what was seen here.
pub(super) fn are_late(index: &Index, claim: &NodeClaim, now: Now) -> bool {
    let status = claim.status.as_ref();
    let drained = status.and_then(|status| condition(&status.conditions, conditions::DRAINED));
    let late = drained.is_some_and(|at| now.wall_ms - at.0.as_millisecond() > PATIENCE_MS);
    let going_ms = index.going_since_ms(&claim.name_any()).unwrap_or(now.steady_ms);
    late && now.steady_ms - going_ms > PATIENCE_MS
}

/// What is written down of a node without pods; nothing while that says it already.
pub(super) fn step(claim: &NodeClaim, attached: &[(&str, &str)], late: bool) -> Option<Step> {
    let status = claim.status.as_ref();
    let drained = status.and_then(|it| condition(&it.conditions, conditions::DRAINED)).is_some();
    let volumes = match (attached, late) {
        ([], _) => Volumes::Detached,
        (attached, true) => Volumes::GivenUp(names(attached)),
        (attached, false) => Volumes::Attached(names(attached)),
    };
    let said = drained && matches!(volumes, Volumes::Attached(_));
    (!said).then(|| Step::MarkDrained { claim: claim.name_any(), volumes })
}

fn names(attached: &[(&str, &str)]) -> String {
    let named: Vec<&str> = attached.iter().take(NAMED_MAX).map(|(_, volume)| *volume).collect();
    let more = attached.len().saturating_sub(NAMED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", named.join(", "))
}
