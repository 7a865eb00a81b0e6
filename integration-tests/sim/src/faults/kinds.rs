//! The kinds of what goes wrong.
//!
//! Invariant: a kind's name in counts and arguments is its variant's, in snake case.

use serde::Serialize;
use strum::{IntoStaticStr, VariantNames};

/// Something that goes wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// With a service.
    Process {
        /// Index of the service.
        service: usize,
        /// What.
        fault: ProcessFault,
    },
    /// Between two services.
    Edge {
        /// Index of the one.
        from: usize,
        /// Index of the other.
        to: usize,
        /// What.
        fault: EdgeFault,
    },
    /// With the cloud.
    Cloud {
        /// Index of the site.
        site: usize,
        /// What.
        fault: CloudFault,
    },
    /// With a cluster.
    Cluster {
        /// Index of the cluster.
        cluster: usize,
        /// What.
        fault: ClusterFault,
    },
    /// With etcd.
    Etcd {
        /// Index of the site.
        site: usize,
        /// What.
        fault: EtcdFault,
    },
}

/// What goes wrong with a service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum ProcessFault {
    /// It is killed and starts again.
    Kill,
    /// It is stopped as by SIGSTOP.
    Stop,
    /// It reaches no API server and no cloud.
    Cutoff,
    /// It reaches no member of etcd.
    EtcdUnreachable,
    /// Its clock is this far ahead, in milliseconds; behind when negative.
    Skew(i64),
    /// The next one that asks for the time, or computes, in a function of this path panics.
    Panic(&'static str),
    /// One of its tasks panics: the one of this number, counting those at work in turn.
    TaskPanics(usize),
}

/// What goes wrong between two services.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum EdgeFault {
    /// Nothing passes from the one to the other.
    OneWay,
    /// Nothing passes at all.
    Partition,
    /// Connections are cut, and may be made again at once.
    Cut,
}

/// What goes wrong with the cloud.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum CloudFault {
    /// Calls are throttled.
    Throttled,
    /// Calls answer InternalError.
    CloudErrors,
    /// Calls are refused as unauthorized.
    Denied,
    /// Replies are lost after they took effect.
    CloudRepliesLost,
    /// Listings leave instances out.
    ShortListings,
    /// Listings are empty.
    EmptyListings,
    /// This percentage of the offerings has no capacity.
    SoldOut(u64),
    /// This percentage of the spot instances is taken back.
    SpotStorm(u64),
    /// Somebody ends instances in the console.
    KilledByHand,
    /// Somebody takes the tags off an instance.
    TagsStripped,
    /// Launch templates vanish, and launches do not find new ones for as long.
    TemplatesDeleted,
    /// New instances never join.
    Duds,
    /// EC2 denies this percentage of the instances, and their nodes do not report.
    Dark(u64),
    /// Nobody may end this percentage of the instances from now on; users delete claims.
    Protected(u64),
    /// Nothing is left of Longshore but the claims and instances: as if Karpenter had made them.
    KarpenterBefore,
    /// Nothing that classes select can be looked up, while another actuator begins to lead.
    LookupsFail,
    /// EC2 answers each launch, and says that it could not be tried.
    LaunchesFail,
    /// Answers to launches are lost, and their repetitions denied; new instances are slow to show.
    Revoked,
    /// New instances take most of a minute to show in listings.
    SlowToShow,
    /// Somebody launches more like an instance, with its tags.
    Copied,
    /// The clusters have another version from now on.
    Upgraded,
}

/// What goes wrong with a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum ClusterFault {
    /// The API server is overloaded, fails and conflicts.
    ApiErrors,
    /// Its replies are lost after they took effect.
    ApiRepliesLost,
    /// It does not serve the kind of this plural.
    KindAbsent(String),
    /// The history of all objects is compacted: watches list anew.
    Compacted,
    /// A claim cannot be decoded.
    Undecodable,
    /// A node is not ready for a while.
    NodeFlaps,
    /// Users take a workload away, and want it again at the moment at which its nodes go.
    Frenzy(u64),
    /// Some requests are never answered, whether they took effect or not.
    Silent,
    /// A pool is being deleted, which somebody's finalizer holds up.
    PoolGoes,
    /// Users give the nodes of a pool another label, and may take that back.
    TemplateChanges,
    /// Nodes say that something is wrong with them.
    NodesAil {
        /// Of most nodes of a pool at once, not of one.
        many: bool,
        /// For how long, in milliseconds: those that are still there are well then.
        for_ms: u64,
    },
}

/// What goes wrong with the etcd of a site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum EtcdFault {
    /// It has no leader: nothing is answered.
    NoQuorum,
    /// Another member becomes its leader: nothing is answered for a moment, then leases begin anew.
    LeaderChange,
    /// This member has lost the others.
    MemberCut(usize),
    /// Requests are refused.
    EtcdErrors,
    /// Answers are lost after the requests took effect.
    EtcdRepliesLost,
    /// All leases end.
    LeasesEnd,
    /// A compaction overtakes those who observe the election.
    Overtaken,
}

impl What {
    /// The fault's name, for counting.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Process { fault, .. } => fault.into(),
            Self::Edge { fault, .. } => fault.into(),
            Self::Cloud { fault, .. } => fault.into(),
            Self::Cluster { fault, .. } => fault.into(),
            Self::Etcd { fault, .. } => fault.into(),
        }
    }
}

/// Names of all faults.
pub fn names() -> impl Iterator<Item = &'static str> {
    let all = [
        ProcessFault::VARIANTS,
        EdgeFault::VARIANTS,
        CloudFault::VARIANTS,
        ClusterFault::VARIANTS,
        EtcdFault::VARIANTS,
    ];
    all.into_iter().flatten().copied()
}
