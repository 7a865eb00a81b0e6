//! What a flooding client sends to each RPC.
//!
//! Invariant: every message is within the size that the protocol allows; what a service makes of it
//! is its own affair.

use bytes::Bytes;
use clap::ValueEnum;
use longshore_proto::capacity::v1::{
    ApplyPlanRequest, Fence, ForgetClusterRequest, PutClusterRequest, WatchRequest,
};
use longshore_proto::cluster::v1::sync_request::Message as Up;
use longshore_proto::cluster::v1::{Hello, SnapshotChunk, SyncRequest};
use longshore_proto::limits::{MESSAGE_BYTES_MAX, PROTOCOL_VERSION};
use longshore_proto::planning::v1::{ComputePlanRequest, ExplainPodRequest, StreamPlanRequest};
use longshore_proto::types::v1::object::Kind;
use longshore_proto::types::v1::object_change::Change;
use longshore_proto::types::v1::{
    ClusterFacts, Launch, Namespace, NodeClass, Object, ObjectChange, Pod, PodCount,
};
use prost::Message;

/// A call of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Rpc {
    /// Of the scheduler.
    Sync,
    /// Of the scheduler.
    ComputePlan,
    /// Of the scheduler.
    StreamPlan,
    /// Of the scheduler.
    ExplainPod,
    /// Of the actuator.
    PutCluster,
    /// Of the actuator.
    ApplyPlan,
    /// Of the actuator.
    ForgetCluster,
    /// Of the actuator.
    Watch,
}

/// How a stream of the flood behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Messages as large as may be, of few parts.
    Large,
    /// Messages as large as may be, of as many parts as fit: each takes far more memory than bytes.
    Dense,
    /// Half a message, and silence.
    Stalled,
    /// What a friend might send, again and again, without listening.
    Plain,
}

/// All manners.
pub const MANNERS: [Manner; 4] = [Manner::Large, Manner::Dense, Manner::Stalled, Manner::Plain];

/// Bytes that a message may fill, with room for its frame and envelope.
const FILL: usize = MESSAGE_BYTES_MAX - 256;
/// Bytes of a part of a large message.
const LARGE_PART: usize = 256 * 1024;

impl Rpc {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Sync,
        Self::ComputePlan,
        Self::StreamPlan,
        Self::ExplainPod,
        Self::PutCluster,
        Self::ApplyPlan,
        Self::ForgetCluster,
        Self::Watch,
    ];

    /// Its path.
    #[must_use]
    pub const fn path(self) -> &'static str {
        match self {
            Self::Sync => "/longshore.cluster.v1.ClusterService/Sync",
            Self::ComputePlan => "/longshore.planning.v1.PlanningService/ComputePlan",
            Self::StreamPlan => "/longshore.planning.v1.PlanningService/StreamPlan",
            Self::ExplainPod => "/longshore.planning.v1.PlanningService/ExplainPod",
            Self::PutCluster => "/longshore.capacity.v1.CapacityService/PutCluster",
            Self::ApplyPlan => "/longshore.capacity.v1.CapacityService/ApplyPlan",
            Self::ForgetCluster => "/longshore.capacity.v1.CapacityService/ForgetCluster",
            Self::Watch => "/longshore.capacity.v1.CapacityService/Watch",
        }
    }

    /// True for those that the actuator serves.
    #[must_use]
    pub const fn is_actuators(self) -> bool {
        match self {
            Self::Sync | Self::ComputePlan | Self::StreamPlan | Self::ExplainPod => false,
            Self::PutCluster | Self::ApplyPlan | Self::ForgetCluster | Self::Watch => true,
        }
    }

    /// True where a client sends any number of messages.
    #[must_use]
    pub const fn takes_streams(self) -> bool {
        matches!(self, Self::Sync | Self::ComputePlan | Self::StreamPlan)
    }

    /// What goes before the messages of the stream with this number; nothing where none has to.
    #[must_use]
    pub fn opening(self, number: u64) -> Option<Bytes> {
        let hello = || Hello {
            cluster_id: format!("flood-{number}"),
            session_epoch: 1 + number,
            protocol_version: PROTOCOL_VERSION,
            cluster_uid: format!("flood-{number}"),
            region: "nowhere".to_owned(),
            ..Hello::default()
        };
        let first = || SyncRequest { message: Some(Up::Hello(hello())) };
        matches!(self, Self::Sync).then(|| framed(&first().encode_to_vec()))
    }

    /// The message that a stream of this manner repeats, and how many bytes of it are sent.
    #[must_use]
    pub fn message(self, manner: Manner, number: u64) -> Bytes {
        match manner {
            Manner::Large => framed(&self.filled(LARGE_PART, number)),
            Manner::Dense => framed(&self.filled(0, number)),
            Manner::Stalled => {
                let whole = framed(&self.filled(LARGE_PART, number));
                whole.slice(..whole.len() / 2)
            }
            Manner::Plain => framed(&self.filled_to(LARGE_PART / 4, 24, number)),
        }
    }

    fn filled(self, part: usize, number: u64) -> Vec<u8> {
        self.filled_to(FILL, part, number)
    }

    /// A message of about `bytes` bytes, whose parts carry a text of `part` bytes each.
    fn filled_to(self, bytes: usize, part: usize, number: u64) -> Vec<u8> {
        let text = "x".repeat(part);
        match self {
            Self::Sync => {
                let change = |key: usize| upsert(object(&text, key));
                let changes = fitting(bytes, &change);
                let chunk = SnapshotChunk { revision: 1, changes, last: false };
                SyncRequest { message: Some(Up::SnapshotChunk(chunk)) }.encode_to_vec()
            }
            Self::ComputePlan => question(bytes, &text).encode_to_vec(),
            Self::StreamPlan => {
                StreamPlanRequest { part: Some(question(bytes, &text)) }.encode_to_vec()
            }
            Self::ExplainPod => {
                let cluster_id = "x".repeat(if part == 0 { bytes } else { part });
                ExplainPodRequest { cluster_id, ..Default::default() }.encode_to_vec()
            }
            Self::PutCluster => {
                let cluster = Some(ClusterFacts { name: "flood".to_owned(), ..Default::default() });
                let class = |_| NodeClass { name: text.clone(), ..NodeClass::default() };
                let (fence, node_classes) = (Some(fence(number)), fitting(bytes, &class));
                PutClusterRequest { fence, cluster, node_classes }.encode_to_vec()
            }
            Self::ApplyPlan => {
                let launch = |_| Launch { node_class: text.clone(), ..Launch::default() };
                let (fence, launches) = (Some(fence(number)), fitting(bytes, &launch));
                let plan_id = "flood".to_owned();
                ApplyPlanRequest { plan_id, fence, launches, ..Default::default() }.encode_to_vec()
            }
            Self::ForgetCluster => {
                let cluster_id = "x".repeat(if part == 0 { bytes } else { part });
                ForgetClusterRequest { cluster_id }.encode_to_vec()
            }
            Self::Watch => {
                let each = part + 2 + usize::from(part > 127) * 3;
                WatchRequest { cluster_ids: vec![text; bytes / each] }.encode_to_vec()
            }
        }
    }
}

fn fence(number: u64) -> Fence {
    Fence { cluster_id: format!("flood-{number}"), session_epoch: 1, plan_seq: 1 }
}

/// Nothing, where there is no text: an object of the fewest bytes.
fn object(text: &str, key: usize) -> Object {
    if text.is_empty() {
        return Object { kind: Some(Kind::Pod(Pod::default())) };
    }
    if text.len() < 100 {
        let uid = format!("{text}-{key}");
        return Object { kind: Some(Kind::Pod(Pod { uid, ..Pod::default() })) };
    }
    let labels = [(format!("{key}"), text.to_owned())].into();
    Object { kind: Some(Kind::Namespace(Namespace { name: format!("n-{key}"), labels })) }
}

const fn upsert(object: Object) -> ObjectChange {
    ObjectChange { change: Some(Change::Upsert(object)) }
}

/// Objects without a name where there is no text, and a few counts of pods.
fn question(bytes: usize, text: &str) -> ComputePlanRequest {
    let one = |key: usize| if text.is_empty() { Object::default() } else { object(text, key) };
    let pods = vec![PodCount { shape_id: "none".to_owned(), count: 1 }];
    ComputePlanRequest { objects: fitting(bytes, &one), pods, ..ComputePlanRequest::default() }
}

/// As many of them as fit into so many bytes.
fn fitting<M: Message + Clone>(bytes: usize, make: &dyn Fn(usize) -> M) -> Vec<M> {
    let first = make(0).encoded_len();
    // Tag and length beside each.
    let each = first + 1 + prost::length_delimiter_len(first) + 8;
    let each = if first == 0 { 2 } else { each };
    (0..(bytes / each).max(1)).map(make).collect()
}

/// A message with its frame.
fn framed(message: &[u8]) -> Bytes {
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&[0], length.as_slice(), message].concat().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_is_within_what_the_protocol_allows_and_most_of_it() {
        for rpc in Rpc::ALL {
            for manner in [Manner::Large, Manner::Dense] {
                let size = rpc.message(manner, 7).len();
                assert!(size <= MESSAGE_BYTES_MAX + 5, "{rpc:?} {manner:?}: {size}");
                let single = matches!(rpc, Rpc::ExplainPod | Rpc::ForgetCluster);
                assert!(size > MESSAGE_BYTES_MAX / 4 || single, "{rpc:?} {manner:?}: {size}");
            }
        }
    }
}
