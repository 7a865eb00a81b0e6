//! Which kinds of object bear on a plan, and in which version they are read.
//!
//! Invariant: an object of a kind that matters is read or refused, never passed over in silence.

use serde_json::Value;

/// A kind that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Known {
    /// `kind`.
    pub kind: &'static str,
    /// `apiVersion`.
    pub version: &'static str,
    /// Whether its objects live in a namespace.
    pub namespaced: bool,
}

const fn known(kind: &'static str, version: &'static str, namespaced: bool) -> Known {
    Known { kind, version, namespaced }
}

/// All of them.
pub const KNOWN: [Known; 24] = [
    known("NodePool", "karpenter.sh/v1", false),
    known("Provisioner", "karpenter.sh/v1alpha5", false),
    known("EC2NodeClass", "karpenter.k8s.aws/v1", false),
    known("AWSNodeTemplate", "karpenter.k8s.aws/v1alpha1", false),
    known("NodeOverlay", "karpenter.sh/v1alpha1", false),
    known("NodeClaim", "karpenter.sh/v1", false),
    known("CapacityBuffer", "autoscaling.x-k8s.io/v1beta1", true),
    known("Deployment", "apps/v1", true),
    known("StatefulSet", "apps/v1", true),
    known("ReplicaSet", "apps/v1", true),
    known("DaemonSet", "apps/v1", true),
    known("Job", "batch/v1", true),
    known("Pod", "v1", true),
    known("PodTemplate", "v1", true),
    known("Node", "v1", false),
    known("Namespace", "v1", false),
    known("PersistentVolumeClaim", "v1", true),
    known("PersistentVolume", "v1", false),
    known("StorageClass", "storage.k8s.io/v1", false),
    known("CSINode", "storage.k8s.io/v1", false),
    known("DeviceClass", "resource.k8s.io/v1", false),
    known("ResourceClaimTemplate", "resource.k8s.io/v1", true),
    known("ResourceSlice", "resource.k8s.io/v1", false),
    known("PodDisruptionBudget", "policy/v1", true),
];

/// Groups in which kinds of the same name are the same thing in another version.
const GROUPS: [&str; 10] = [
    "",
    "apps",
    "batch",
    "extensions",
    "policy",
    "storage.k8s.io",
    "resource.k8s.io",
    "autoscaling.x-k8s.io",
    "karpenter.sh",
    "karpenter.k8s.aws",
];

/// What an object is to a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Class {
    /// One that is read.
    Read(Known),
    /// A kind that is read, in a version that is not.
    OtherVersion(Known),
    /// One that does not bear on a plan.
    Passed,
    /// Not an object at all.
    NoObject,
}

/// What a document is to a plan.
#[must_use]
pub fn class(value: &Value) -> Class {
    let (Some(version), Some(kind)) = (value["apiVersion"].as_str(), value["kind"].as_str()) else {
        return Class::NoObject;
    };
    let Some(found) = KNOWN.into_iter().find(|known| known.kind == kind) else {
        return Class::Passed;
    };
    let group = version.split_once('/').map_or("", |(group, _)| group);
    match () {
        () if found.version == version => Class::Read(found),
        () if GROUPS.contains(&group) => Class::OtherVersion(found),
        () => Class::Passed,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn versions_decide_and_foreign_groups_pass() {
        let of = |version: &str, kind: &str| class(&json!({"apiVersion": version, "kind": kind}));
        assert!(matches!(of("karpenter.sh/v1", "NodePool"), Class::Read(_)));
        assert!(matches!(of("karpenter.sh/v1beta1", "NodePool"), Class::OtherVersion(_)));
        assert!(matches!(of("extensions/v1beta1", "Deployment"), Class::OtherVersion(_)));
        assert_eq!(of("batch.volcano.sh/v1alpha1", "Job"), Class::Passed);
        assert_eq!(of("v1", "Service"), Class::Passed);
        assert_eq!(class(&json!({"kind": "Pod"})), Class::NoObject);
        assert_eq!(class(&json!("text")), Class::NoObject);
    }
}
