//! Names that objects carry: labels, annotations, taints and finalizers.
//!
//! Invariant: a key is written here once; no other module spells one out.

/// API group of NodePool, NodeClaim, NodeOverlay and Provisioner.
pub const GROUP: &str = "karpenter.sh";
/// API group of EC2NodeClass and AWSNodeTemplate.
pub const AWS_GROUP: &str = "karpenter.k8s.aws";
/// Domain of Longshore's own keys.
pub const OWN_DOMAIN: &str = "longshore.dev";

/// Label keys and their fixed values.
pub mod labels {
    /// NodePool that a node belongs to.
    pub const NODE_POOL: &str = "karpenter.sh/nodepool";
    /// How an instance is bought: `spot`, `on-demand` or `reserved`.
    pub const CAPACITY_TYPE: &str = "karpenter.sh/capacity-type";
    /// `true` on a node whose NodeClaim has been matched to it.
    pub const REGISTERED: &str = "karpenter.sh/registered";
    /// `true` on a node that is ready for its pods.
    pub const INITIALIZED: &str = "karpenter.sh/initialized";
    /// `true` on a node that brought its taints along, so that registration does not copy them.
    pub const DO_NOT_SYNC_TAINTS: &str = "karpenter.sh/do-not-sync-taints";
    /// EC2NodeClass of a node.
    pub const EC2_NODE_CLASS: &str = "karpenter.k8s.aws/ec2nodeclass";
    /// AWSNodeTemplate of a node of a legacy pool.
    pub const AWS_NODE_TEMPLATE: &str = "karpenter.k8s.aws/awsnodetemplate";
    /// Legacy name of the pool's label; nodes of a legacy pool carry both.
    pub const PROVISIONER_NAME: &str = "karpenter.sh/provisioner-name";
    /// Keeps load balancers from sending traffic to a node that is being drained.
    pub const EXCLUDE_FROM_LOAD_BALANCERS: &str =
        "node.kubernetes.io/exclude-from-external-load-balancers";
    /// Value of [`EXCLUDE_FROM_LOAD_BALANCERS`] when the autoscaler set it.
    pub const EXCLUDED_BY_AUTOSCALER: &str = "karpenter";
    /// Marks a Fargate node (`fargate`), which is never ours.
    pub const EKS_COMPUTE_TYPE: &str = "eks.amazonaws.com/compute-type";

    /// Host name of a node.
    pub const HOSTNAME: &str = "kubernetes.io/hostname";
    /// Processor architecture.
    pub const ARCH: &str = "kubernetes.io/arch";
    /// Operating system.
    pub const OS: &str = "kubernetes.io/os";
    /// Availability zone, by name.
    pub const ZONE: &str = "topology.kubernetes.io/zone";
    /// Region.
    pub const REGION: &str = "topology.kubernetes.io/region";
    /// Availability zone, by the id that means the same place in every account.
    pub const ZONE_ID: &str = "topology.k8s.aws/zone-id";
    /// EC2 instance type.
    pub const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
    /// Windows build number.
    pub const WINDOWS_BUILD: &str = "node.kubernetes.io/windows-build";
    /// Zone label of the EBS driver, an alias of [`ZONE`].
    pub const EBS_ZONE: &str = "topology.ebs.csi.aws.com/zone";

    /// Deprecated keys and what they are read as, everywhere.
    pub const ALIASES: [(&str, &str); 6] = [
        ("failure-domain.beta.kubernetes.io/zone", ZONE),
        ("failure-domain.beta.kubernetes.io/region", REGION),
        ("beta.kubernetes.io/arch", ARCH),
        ("beta.kubernetes.io/os", OS),
        ("beta.kubernetes.io/instance-type", INSTANCE_TYPE),
        (EBS_ZONE, ZONE),
    ];

    /// Keys under `karpenter.k8s.aws` that follow from the instance type alone, and the node class.
    pub const AWS_INSTANCE: [&str; 22] = [
        EC2_NODE_CLASS,
        "karpenter.k8s.aws/instance-accelerator-count",
        "karpenter.k8s.aws/instance-accelerator-manufacturer",
        "karpenter.k8s.aws/instance-accelerator-name",
        "karpenter.k8s.aws/instance-capability-flex",
        "karpenter.k8s.aws/instance-category",
        "karpenter.k8s.aws/instance-cpu",
        "karpenter.k8s.aws/instance-cpu-manufacturer",
        "karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz",
        "karpenter.k8s.aws/instance-ebs-bandwidth",
        "karpenter.k8s.aws/instance-encryption-in-transit-supported",
        "karpenter.k8s.aws/instance-family",
        "karpenter.k8s.aws/instance-generation",
        "karpenter.k8s.aws/instance-gpu-count",
        "karpenter.k8s.aws/instance-gpu-manufacturer",
        "karpenter.k8s.aws/instance-gpu-memory",
        "karpenter.k8s.aws/instance-gpu-name",
        "karpenter.k8s.aws/instance-hypervisor",
        "karpenter.k8s.aws/instance-local-nvme",
        "karpenter.k8s.aws/instance-memory",
        "karpenter.k8s.aws/instance-network-bandwidth",
        "karpenter.k8s.aws/instance-size",
    ];
    /// Keys under `karpenter.k8s.aws` that the launch decides.
    pub const AWS_LAUNCH: [&str; 6] = [
        "karpenter.k8s.aws/capacity-reservation-id",
        "karpenter.k8s.aws/capacity-reservation-interruptible",
        "karpenter.k8s.aws/capacity-reservation-type",
        "karpenter.k8s.aws/instance-tenancy",
        "karpenter.k8s.aws/placement-group-id",
        "karpenter.k8s.aws/placement-group-partition",
    ];
}

/// Values of [`labels::CAPACITY_TYPE`].
pub mod capacity_type {
    /// Spare capacity, which EC2 may take back.
    pub const SPOT: &str = "spot";
    /// Bought by the second at list price.
    pub const ON_DEMAND: &str = "on-demand";
    /// From a capacity reservation.
    pub const RESERVED: &str = "reserved";
}

/// Annotation keys.
pub mod annotations {
    /// On a node `true`, on a pod `true` or a duration since its start: leave it alone.
    pub const DO_NOT_DISRUPT: &str = "karpenter.sh/do-not-disrupt";
    /// Legacy form of [`DO_NOT_DISRUPT`] on a pod.
    pub const DO_NOT_EVICT: &str = "karpenter.sh/do-not-evict";
    /// Legacy form of [`DO_NOT_DISRUPT`] on a node.
    pub const DO_NOT_CONSOLIDATE: &str = "karpenter.sh/do-not-consolidate";
    /// Legacy: when a node was first seen empty (RFC 3339).
    pub const EMPTINESS_TIMESTAMP: &str = "karpenter.sh/emptiness-timestamp";
    /// Content hash of a NodePool's template, for drift.
    pub const NODE_POOL_HASH: &str = "karpenter.sh/nodepool-hash";
    /// Algorithm of [`NODE_POOL_HASH`]; hashes of different versions are never compared.
    pub const NODE_POOL_HASH_VERSION: &str = "karpenter.sh/nodepool-hash-version";
    /// Content hash of an EC2NodeClass, for drift.
    pub const EC2_NODE_CLASS_HASH: &str = "karpenter.k8s.aws/ec2nodeclass-hash";
    /// Algorithm of [`EC2_NODE_CLASS_HASH`].
    pub const EC2_NODE_CLASS_HASH_VERSION: &str = "karpenter.k8s.aws/ec2nodeclass-hash-version";
    /// Deadline (RFC 3339) after which a drain no longer waits.
    pub const TERMINATION_TIMESTAMP: &str = "karpenter.sh/nodeclaim-termination-timestamp";
    /// `true` on a claim whose `minValues` were relaxed to launch it at all.
    pub const MIN_VALUES_RELAXED: &str = "karpenter.sh/nodeclaim-min-values-relaxed";
    /// `true` on a claim priced under a NodeOverlay.
    pub const PRICE_OVERLAY_APPLIED: &str = "karpenter.sh/price-overlay-applied";
    /// `true` on a claim whose capacity comes from a NodeOverlay.
    pub const CAPACITY_OVERLAY_APPLIED: &str = "karpenter.sh/capacity-overlay-applied";
    /// `true` on a claim whose instance carries its tags.
    pub const TAGGED: &str = "karpenter.k8s.aws/tagged";
    /// Instance profile that a claim was launched with.
    pub const INSTANCE_PROFILE_NAME: &str = "karpenter.k8s.aws/instance-profile-name";
    /// Weighs a pod's eviction; larger is dearer.
    pub const POD_DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
    /// Role that a service account assumes (IRSA).
    pub const ROLE_ARN: &str = "eks.amazonaws.com/role-arn";
    /// `"true"`: ask the region's own STS endpoint.
    pub const STS_REGIONAL_ENDPOINTS: &str = "eks.amazonaws.com/sts-regional-endpoints";

    /// What a claim counts as made from, by which drift is told: hashes of its pool and node class.
    pub const DRIFT_HASH: &str = "longshore.dev/drift-hash";
    /// Launch that a claim stands for: the scheduler's launch id.
    pub const LAUNCH_ID: &str = "longshore.dev/launch-id";
    /// W3C trace context of the decision that made the object.
    pub const TRACEPARENT: &str = "longshore.dev/traceparent";
    /// Names of the claims, comma separated, that take over from this one.
    pub const REPLACED_BY: &str = "longshore.dev/replaced-by";
    /// `true` on a claim that was made in place of others: its pods have been moved once.
    pub const REPLACEMENT: &str = "longshore.dev/replacement";
    /// On a pod of a Deployment `true`: the next one is to run before this one goes.
    pub const SURGE: &str = "longshore.dev/surge";
    /// On the template of a Deployment: UID of the pod for which its next one was asked.
    pub const SURGED_FOR: &str = "longshore.dev/surged-for";
    /// Highest price that a pod's owner accepts for its node, in millionths of a dollar an hour.
    pub const MAX_PRICE: &str = "longshore.dev/max-price-micro-usd-per-hour";
    /// On a NodePool: how many of the first new nodes of a rollout are looked at before the others
    /// follow, `1` or `10%`; `0` for none.
    pub const CANARY: &str = "longshore.dev/canary";
    /// On a NodePool: how long these must have been ready, their pods running: `30s`.
    pub const CANARY_WAIT: &str = "longshore.dev/canary-wait";
    /// On a NodePool: after how long one that is not has turned out badly: `10m`.
    pub const CANARY_PATIENCE: &str = "longshore.dev/canary-patience";
    /// On a NodePool: the rollout that is tried again although it was stopped, by the name that the
    /// condition gives it.
    pub const RETRY_ROLLOUT: &str = "longshore.dev/retry-rollout";
    /// On a NodePool: how many pods may be moved within any hour to save money: `50`.
    pub const EVICTIONS_PER_HOUR: &str = "longshore.dev/evictions-per-hour";
    /// `off` on a NodePool: its nodes stay however long something is wrong with them.
    pub const NODE_REPAIR: &str = "longshore.dev/node-repair";
    /// `dense` on a NodePool: its nodes may hold more pods of a spread over hosts than the spread's
    /// skew, as long as kube-scheduler allows it. `safe`, the default, never counts on that.
    pub const SPREAD_DENSITY: &str = "longshore.dev/spread-density";
    /// Time in RFC 3339 on a NodePool: until then nodes of the cluster that seem to be gone are let
    /// go, however many they are.
    pub const ACCEPT_LOSSES_UNTIL: &str = "longshore.dev/accept-losses-until";
}

/// Taint keys.
pub mod taints {
    /// NoExecute, from boot until registration.
    pub const UNREGISTERED: &str = "karpenter.sh/unregistered";
    /// NoSchedule, while a node is being disrupted.
    pub const DISRUPTED: &str = "karpenter.sh/disrupted";
    /// Put on by the node lifecycle controller while a node is not ready.
    pub const NOT_READY: &str = "node.kubernetes.io/not-ready";
    /// Put on by the node lifecycle controller while a node is unreachable.
    pub const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
    /// Put on by `kubectl cordon`.
    pub const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
    /// Put on by a kubelet that waits for its cloud provider.
    pub const CLOUD_UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
}

/// Finalizers.
pub mod finalizers {
    /// On a Node and a NodeClaim: drain and terminate first.
    pub const TERMINATION: &str = "karpenter.sh/termination";
    /// On an EC2NodeClass: clean up what was made for it first.
    pub const NODE_CLASS_TERMINATION: &str = "karpenter.k8s.aws/termination";
}

/// Condition types in the status of NodePools, NodeClaims and EC2NodeClasses.
pub mod conditions {
    /// All that the object needs is there.
    pub const READY: &str = "Ready";
    /// The object makes sense as a whole.
    pub const VALIDATION_SUCCEEDED: &str = "ValidationSucceeded";
    /// NodePool: its node class is ready.
    pub const NODE_CLASS_READY: &str = "NodeClassReady";
    /// NodePool: its nodes do come up; not part of [`READY`].
    pub const NODE_REGISTRATION_HEALTHY: &str = "NodeRegistrationHealthy";
    /// NodePool: drifted nodes are being replaced, or none has; not part of [`READY`].
    pub const ROLLOUT_HEALTHY: &str = "RolloutHealthy";
    /// NodeClaim: the instance exists.
    pub const LAUNCHED: &str = "Launched";
    /// NodeClaim: the node joined the cluster.
    pub const REGISTERED: &str = "Registered";
    /// NodeClaim: the node takes pods.
    pub const INITIALIZED: &str = "Initialized";
    /// NodeClaim: quiet for long enough to be consolidated.
    pub const CONSOLIDATABLE: &str = "Consolidatable";
    /// NodeClaim: no longer what its pool or class asks for; the reason says why.
    pub const DRIFTED: &str = "Drifted";
    /// NodeClaim: being disrupted; the reason says why.
    pub const DISRUPTION_REASON: &str = "DisruptionReason";
    /// NodeClaim: pods are gone.
    pub const DRAINED: &str = "Drained";
    /// NodeClaim: volumes are detached.
    pub const VOLUMES_DETACHED: &str = "VolumesDetached";
    /// EC2NodeClass: images were found.
    pub const AMIS_READY: &str = "AMIsReady";
    /// EC2NodeClass: subnets were found.
    pub const SUBNETS_READY: &str = "SubnetsReady";
    /// EC2NodeClass: security groups were found.
    pub const SECURITY_GROUPS_READY: &str = "SecurityGroupsReady";
    /// EC2NodeClass: capacity reservations were looked up; there may be none.
    pub const CAPACITY_RESERVATIONS_READY: &str = "CapacityReservationsReady";
    /// EC2NodeClass: the instance profile is there and holds the role.
    pub const INSTANCE_PROFILE_READY: &str = "InstanceProfileReady";
}
