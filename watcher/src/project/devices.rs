//! Pods that ask for devices by ResourceClaim.
//!
//! Invariant: such a pod is refused in words, never placed as if it had asked for nothing: which
//! devices a node to come will have is known to its driver alone.

use k8s_openapi::api::core::v1::PodSpec;

/// True when the pods ask for devices by ResourceClaim.
#[must_use]
pub fn are_claimed(spec: &PodSpec) -> bool {
    spec.resource_claims.as_ref().is_some_and(|claims| !claims.is_empty())
}

/// Why no node can be made for a pod that asks for devices by ResourceClaim; none for any other.
#[must_use]
pub fn refusal(spec: &PodSpec) -> Option<String> {
    let claim = spec.resource_claims.as_ref()?.first()?;
    let source = match (&claim.resource_claim_name, &claim.resource_claim_template_name) {
        (Some(name), _) => format!("ResourceClaim {name}"),
        (None, Some(name)) => format!("ResourceClaimTemplate {name}"),
        (None, None) => "no source".to_owned(),
    };
    Some(format!(
        "it claims a device as {} ({source}), and which devices a new node will have cannot be \
         foreseen; request the device as an extended resource, such as nvidia.com/gpu, or keep \
         nodes that have it in a NodePool with spec.replicas",
        claim.name
    ))
}
