//! Narrowings in words.
//!
//! Invariant: each text names the constraint in the words of the manifest that holds it.

use std::fmt;

use crate::explain::choices::By;

impl By {
    /// Stable machine-readable name.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Market => "MARKET",
            Self::Pools { .. } => "NODE_POOLS",
            Self::Taints => "TAINTS",
            Self::Requirement { .. } => "REQUIREMENT",
            Self::Size { .. } => "REQUESTS",
            Self::DaemonSets => "DAEMON_SETS",
            Self::Preference { .. } => "PREFERENCE",
            Self::Topology { .. } => "TOPOLOGY",
            Self::Weight { .. } => "WEIGHT",
            Self::Neighbour { .. } => "COMPANY",
            Self::Rest => "LIMITS",
        }
    }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Market => f.write_str("on sale in the region"),
            Self::Pools { pools: 1 } => f.write_str("allowed by the NodePool"),
            Self::Pools { pools } => write!(f, "allowed by one of {pools} NodePools"),
            Self::Taints => f.write_str("in NodePools whose taints the pod tolerates"),
            Self::Requirement { key, wanted } => write!(f, "pod wants {key} {wanted}"),
            Self::Size { requests } => write!(f, "room for the pod: {requests}"),
            Self::DaemonSets => {
                f.write_str("without DaemonSet pods that it cannot share a node with")
            }
            Self::Preference { wanted } => write!(f, "pod prefers {wanted}"),
            Self::Topology { key, domain } => {
                write!(f, "{key} {domain}, by spread or affinity between pods")
            }
            Self::Weight { weight } => write!(f, "in NodePools of weight {weight}"),
            Self::Neighbour { pods } => write!(f, "room for all {pods} pods packed on the node"),
            Self::Rest => f.write_str(
                "within limits, reservations and minValues that the rest of the plan leaves",
            ),
        }
    }
}
