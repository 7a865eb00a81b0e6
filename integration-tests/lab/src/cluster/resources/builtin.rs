//! The built-in kinds.
//!
//! Invariant: one row for each kind; the row says all that the server treats differently.

use super::Resource;

const NAMESPACED: u8 = 1;
const STATUS: u8 = 2;
const SCALE: u8 = 4;

/// Group and version, plural, kind, short name, traits.
type Row = (&'static str, &'static str, &'static str, &'static str, u8);

const ROWS: &[Row] = &[
    ("v1", "configmaps", "ConfigMap", "cm", NAMESPACED),
    ("v1", "endpoints", "Endpoints", "ep", NAMESPACED),
    ("v1", "events", "Event", "ev", NAMESPACED),
    ("v1", "limitranges", "LimitRange", "limits", NAMESPACED),
    ("v1", "namespaces", "Namespace", "ns", STATUS),
    ("v1", "nodes", "Node", "no", STATUS),
    ("v1", "persistentvolumeclaims", "PersistentVolumeClaim", "pvc", NAMESPACED | STATUS),
    ("v1", "persistentvolumes", "PersistentVolume", "pv", STATUS),
    ("v1", "pods", "Pod", "po", NAMESPACED | STATUS),
    ("v1", "podtemplates", "PodTemplate", "", NAMESPACED),
    ("v1", "replicationcontrollers", "ReplicationController", "rc", NAMESPACED | STATUS | SCALE),
    ("v1", "resourcequotas", "ResourceQuota", "quota", NAMESPACED | STATUS),
    ("v1", "secrets", "Secret", "", NAMESPACED),
    ("v1", "serviceaccounts", "ServiceAccount", "sa", NAMESPACED),
    ("v1", "services", "Service", "svc", NAMESPACED | STATUS),
    (
        "admissionregistration.k8s.io/v1",
        "mutatingwebhookconfigurations",
        "MutatingWebhookConfiguration",
        "",
        0,
    ),
    (
        "admissionregistration.k8s.io/v1",
        "validatingadmissionpolicies",
        "ValidatingAdmissionPolicy",
        "",
        STATUS,
    ),
    (
        "admissionregistration.k8s.io/v1",
        "validatingwebhookconfigurations",
        "ValidatingWebhookConfiguration",
        "",
        0,
    ),
    (
        "apiextensions.k8s.io/v1",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        "crd",
        STATUS,
    ),
    ("apps/v1", "controllerrevisions", "ControllerRevision", "", NAMESPACED),
    ("apps/v1", "daemonsets", "DaemonSet", "ds", NAMESPACED | STATUS),
    ("apps/v1", "deployments", "Deployment", "deploy", NAMESPACED | STATUS | SCALE),
    ("apps/v1", "replicasets", "ReplicaSet", "rs", NAMESPACED | STATUS | SCALE),
    ("apps/v1", "statefulsets", "StatefulSet", "sts", NAMESPACED | STATUS | SCALE),
    (
        "autoscaling/v2",
        "horizontalpodautoscalers",
        "HorizontalPodAutoscaler",
        "hpa",
        NAMESPACED | STATUS,
    ),
    ("batch/v1", "cronjobs", "CronJob", "cj", NAMESPACED | STATUS),
    ("batch/v1", "jobs", "Job", "", NAMESPACED | STATUS),
    ("coordination.k8s.io/v1", "leases", "Lease", "", NAMESPACED),
    ("discovery.k8s.io/v1", "endpointslices", "EndpointSlice", "", NAMESPACED),
    ("events.k8s.io/v1", "events", "Event", "ev", NAMESPACED),
    ("networking.k8s.io/v1", "networkpolicies", "NetworkPolicy", "netpol", NAMESPACED),
    ("node.k8s.io/v1", "runtimeclasses", "RuntimeClass", "", 0),
    ("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget", "pdb", NAMESPACED | STATUS),
    ("rbac.authorization.k8s.io/v1", "clusterrolebindings", "ClusterRoleBinding", "", 0),
    ("rbac.authorization.k8s.io/v1", "clusterroles", "ClusterRole", "", 0),
    ("rbac.authorization.k8s.io/v1", "rolebindings", "RoleBinding", "", NAMESPACED),
    ("rbac.authorization.k8s.io/v1", "roles", "Role", "", NAMESPACED),
    ("resource.k8s.io/v1", "deviceclasses", "DeviceClass", "", 0),
    ("resource.k8s.io/v1", "resourceclaims", "ResourceClaim", "", NAMESPACED | STATUS),
    ("resource.k8s.io/v1", "resourceclaimtemplates", "ResourceClaimTemplate", "", NAMESPACED),
    ("resource.k8s.io/v1", "resourceslices", "ResourceSlice", "", 0),
    ("scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", "pc", 0),
    ("storage.k8s.io/v1", "csidrivers", "CSIDriver", "", 0),
    ("storage.k8s.io/v1", "csinodes", "CSINode", "", 0),
    ("storage.k8s.io/v1", "csistoragecapacities", "CSIStorageCapacity", "", NAMESPACED),
    ("storage.k8s.io/v1", "storageclasses", "StorageClass", "sc", 0),
    ("storage.k8s.io/v1", "volumeattachments", "VolumeAttachment", "", STATUS),
];

/// All built-in resources.
pub fn resources() -> impl Iterator<Item = Resource> {
    ROWS.iter().map(resource)
}

fn resource((group_version, plural, kind, short, traits): &Row) -> Resource {
    let (group, version) = group_version.split_once('/').unwrap_or(("", group_version));
    let short_names = Some(*short).filter(|name| !name.is_empty());
    Resource {
        group: group.to_owned(),
        versions: vec![version.to_owned()],
        plural: (*plural).to_owned(),
        singular: kind.to_lowercase(),
        kind: (*kind).to_owned(),
        short_names: short_names.into_iter().map(str::to_owned).collect(),
        namespaced: traits & NAMESPACED != 0,
        status: traits & STATUS != 0,
        scale: traits & SCALE != 0,
        ..Resource::default()
    }
}
