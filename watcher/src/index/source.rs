//! The kinds that are watched, and which of them nothing can be decided without.
//!
//! Invariant: what is named here is what the view is made of; it is complete when each has been
//! listed.

/// Kinds of Kubernetes object that are watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "each is the Kubernetes kind of its name")]
pub enum Source {
    Namespace,
    StorageClass,
    DeviceClass,
    ResourceClaimTemplate,
    ResourceSlice,
    PersistentVolume,
    PersistentVolumeClaim,
    NodePool,
    Provisioner,
    EC2NodeClass,
    AWSNodeTemplate,
    NodeOverlay,
    NodeClaim,
    Node,
    CSINode,
    VolumeAttachment,
    DaemonSet,
    PodDisruptionBudget,
    CapacityBuffer,
    Pod,
}

impl Source {
    /// All of them.
    pub const ALL: [Self; 20] = [
        Self::Namespace,
        Self::StorageClass,
        Self::DeviceClass,
        Self::ResourceClaimTemplate,
        Self::ResourceSlice,
        Self::PersistentVolume,
        Self::PersistentVolumeClaim,
        Self::NodePool,
        Self::Provisioner,
        Self::EC2NodeClass,
        Self::AWSNodeTemplate,
        Self::NodeOverlay,
        Self::NodeClaim,
        Self::Node,
        Self::CSINode,
        Self::VolumeAttachment,
        Self::DaemonSet,
        Self::PodDisruptionBudget,
        Self::CapacityBuffer,
        Self::Pod,
    ];

    /// True for the kinds without which nothing can be decided: those that every API server has,
    /// and NodeClaims. That one of them is not served is never the same as that there are no
    /// objects of it.
    #[must_use]
    pub const fn is_needed(self) -> bool {
        match self {
            Self::Namespace
            | Self::StorageClass
            | Self::PersistentVolume
            | Self::PersistentVolumeClaim
            | Self::NodeClaim
            | Self::Node
            | Self::CSINode
            | Self::VolumeAttachment
            | Self::DaemonSet
            | Self::PodDisruptionBudget
            | Self::Pod => true,
            Self::DeviceClass
            | Self::ResourceClaimTemplate
            | Self::ResourceSlice
            | Self::NodePool
            | Self::Provisioner
            | Self::EC2NodeClass
            | Self::AWSNodeTemplate
            | Self::NodeOverlay
            | Self::CapacityBuffer => false,
        }
    }
}
