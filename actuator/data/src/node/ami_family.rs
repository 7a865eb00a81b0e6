//! Operating system families of images, and how their kubelets are sized.
//!
//! Invariant: a family's habits are stated here and nowhere else.

use crate::node::GIB;

/// Operating system family of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AmiFamily {
    /// Amazon Linux 2.
    Al2,
    /// Amazon Linux 2023.
    Al2023,
    /// Bottlerocket.
    Bottlerocket,
    /// The user's own image.
    Custom,
    /// Windows Server 2019.
    Windows2019,
    /// Windows Server 2022.
    Windows2022,
    /// Windows Server 2025.
    Windows2025,
}

impl AmiFamily {
    /// The family of that name in a node class: `AL2023`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "AL2" => Self::Al2,
            "AL2023" => Self::Al2023,
            "Bottlerocket" => Self::Bottlerocket,
            "Custom" => Self::Custom,
            "Windows2019" => Self::Windows2019,
            "Windows2022" => Self::Windows2022,
            "Windows2025" => Self::Windows2025,
            _ => return None,
        })
    }

    /// Runs Windows.
    #[must_use]
    pub fn windows(self) -> bool {
        matches!(self, Self::Windows2019 | Self::Windows2022 | Self::Windows2025)
    }

    /// Device that pods write to; `None` where only the image knows.
    #[must_use]
    pub fn data_device(self) -> Option<&'static str> {
        match self {
            Self::Al2 | Self::Al2023 => Some("/dev/xvda"),
            Self::Bottlerocket => Some("/dev/xvdb"),
            Self::Custom => None,
            Self::Windows2019 | Self::Windows2022 | Self::Windows2025 => Some("/dev/sda1"),
        }
    }

    /// Size in bytes of the data volume when the node class does not say.
    pub(crate) fn data_volume_bytes(self) -> u64 {
        if self.windows() { 50 * GIB } else { 20 * GIB }
    }

    /// Interfaces and their addresses limit pods; otherwise a flat 110 does.
    pub(crate) fn eni_limited_density(self) -> bool {
        !self.windows()
    }

    /// Memory kept for the kubelet follows the interfaces' pod count, whatever `maxPods` says.
    pub(crate) fn eni_limited_memory_overhead(self) -> bool {
        matches!(self, Self::Al2 | Self::Al2023 | Self::Custom)
    }

    /// The kubelet takes `podsPerCore`.
    pub(crate) fn pods_per_core(self) -> bool {
        self != Self::Bottlerocket
    }
}
