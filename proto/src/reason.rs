//! The closed set of machine-readable refusal reasons, each with its gRPC status.
//!
//! Invariant: a reason's name never changes once released; people read the message beside it.

use std::collections::HashMap;

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use crate::limits::{CHUNK_BYTES_TARGET, MESSAGE_BYTES_MAX};

/// Domain of every reason, as error details want it.
pub const DOMAIN: &str = "longshore.dev";

/// What tonic says of a message over the limit; it has no other name for it.
const TOO_LARGE: &str = "message length too large";
/// What tonic says of bytes that are no message of the expected type.
const UNDECODABLE: &str = "failed to decode Protobuf message";

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// A field is missing, out of range or contradictory.
    Malformed,
    /// The peer speaks a protocol version that this build does not.
    ProtocolVersion,
    /// Messages came in an order the protocol forbids.
    ProtocolOrder,
    /// The fence is older than one already seen for the cluster.
    StaleFence,
    /// A session with a larger epoch has taken over.
    SessionSuperseded,
    /// Another actuator leads the region; metadata `leader` has its address.
    NotLeader,
    /// The process is shutting down.
    Draining,
    /// A message is larger than either side accepts; the same one will be refused again.
    MessageTooLarge,
    /// A queue is full; retry later.
    Overloaded,
    /// The plan expired before it was recorded.
    PlanExpired,
    /// The launch names a node class that the actuator does not know.
    UnknownNodeClass,
    /// The termination's launch id does not match the instance.
    LaunchMismatch,
    /// No session or no such object.
    NotFound,
    /// The store that must record the request cannot be reached.
    StoreUnavailable,
    /// No actuator of the cluster's region is within reach.
    RegionUnreachable,
    /// Another cluster of this name is known; each needs a name, a region or an account of its own.
    ClusterMismatch,
    /// Actuators of several accounts serve the region, and the cluster does not say which is its
    /// own.
    AccountRequired,
    /// What the decision rested on no longer holds; the next plan decides anew.
    AssumptionFailed,
    /// More would end on absence alone than may in this time.
    Frozen,
    /// Instances of the cluster still run.
    InUse,
    /// The caller's certificate does not let it do this.
    Forbidden,
    /// The epoch lies ahead of all clocks: it would keep later sessions out.
    EpochAhead,
}

impl Reason {
    /// Stable name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "MALFORMED",
            Self::ProtocolVersion => "PROTOCOL_VERSION",
            Self::ProtocolOrder => "PROTOCOL_ORDER",
            Self::StaleFence => "STALE_FENCE",
            Self::SessionSuperseded => "SESSION_SUPERSEDED",
            Self::NotLeader => "NOT_LEADER",
            Self::Draining => "DRAINING",
            Self::MessageTooLarge => "MESSAGE_TOO_LARGE",
            Self::Overloaded => "OVERLOADED",
            Self::PlanExpired => "PLAN_EXPIRED",
            Self::UnknownNodeClass => "UNKNOWN_NODE_CLASS",
            Self::LaunchMismatch => "LAUNCH_MISMATCH",
            Self::NotFound => "NOT_FOUND",
            Self::StoreUnavailable => "STORE_UNAVAILABLE",
            Self::RegionUnreachable => "REGION_UNREACHABLE",
            Self::ClusterMismatch => "CLUSTER_MISMATCH",
            Self::AccountRequired => "ACCOUNT_REQUIRED",
            Self::AssumptionFailed => "ASSUMPTION_FAILED",
            Self::Frozen => "FROZEN",
            Self::InUse => "IN_USE",
            Self::Forbidden => "FORBIDDEN",
            Self::EpochAhead => "EPOCH_AHEAD",
        }
    }

    /// gRPC status code it is sent with.
    #[must_use]
    pub const fn code(self) -> Code {
        match self {
            Self::Malformed | Self::ProtocolOrder => Code::InvalidArgument,
            Self::ProtocolVersion
            | Self::StaleFence
            | Self::PlanExpired
            | Self::UnknownNodeClass
            | Self::LaunchMismatch
            | Self::ClusterMismatch
            | Self::AccountRequired
            | Self::AssumptionFailed
            | Self::Frozen
            | Self::InUse
            | Self::EpochAhead => Code::FailedPrecondition,
            Self::SessionSuperseded => Code::Aborted,
            Self::NotLeader | Self::Draining | Self::StoreUnavailable | Self::RegionUnreachable => {
                Code::Unavailable
            }
            Self::MessageTooLarge => Code::OutOfRange,
            Self::Overloaded => Code::ResourceExhausted,
            Self::NotFound => Code::NotFound,
            Self::Forbidden => Code::PermissionDenied,
        }
    }

    /// A status with this reason in its details and `message` for people.
    #[must_use]
    pub fn status(self, message: impl Into<String>) -> Status {
        self.status_with(message, HashMap::new())
    }

    /// Like [`Reason::status`], with metadata such as the leader's address.
    #[must_use]
    pub fn status_with(
        self,
        message: impl Into<String>,
        metadata: HashMap<String, String>,
    ) -> Status {
        let details = ErrorDetails::with_error_info(self.as_str(), DOMAIN, metadata);
        Status::with_error_details(self.code(), message, details)
    }
}

/// Reason name and metadata of a status that another Longshore process sent, when it has one.
#[must_use]
pub fn of_status(status: &Status) -> Option<(String, HashMap<String, String>)> {
    let info = status.get_details_error_info()?;
    (info.domain == DOMAIN).then_some((info.reason, info.metadata))
}

/// The status for a message that could not be received: what the transport says, with the reason
/// and the way out where the sender can do something about it.
#[must_use]
pub fn of_receiving(status: Status) -> Status {
    let said = status.message();
    if status.code() == Code::OutOfRange && said.contains(TOO_LARGE) {
        return Reason::MessageTooLarge.status(format!(
            "a message is larger than {MESSAGE_BYTES_MAX} bytes ({said}); send its content in several \
             messages of about {CHUNK_BYTES_TARGET} bytes each"
        ));
    }
    if status.code() == Code::Internal && said.contains(UNDECODABLE) {
        return Reason::Malformed.status(format!(
            "a message cannot be decoded ({said}); generate the client from the protocol's own files, \
             and compare with `grpcurl ADDRESS describe`"
        ));
    }
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_survives_the_wire() {
        let metadata = HashMap::from([("leader".to_owned(), "http://a:1".to_owned())]);
        let status = Reason::NotLeader.status_with("ask the leader", metadata.clone());
        assert_eq!(status.code(), Code::Unavailable);
        assert_eq!(of_status(&status), Some(("NOT_LEADER".to_owned(), metadata)));
    }

    #[test]
    fn what_cannot_be_received_is_told_apart_from_what_the_network_does() {
        let name = |status| of_status(&of_receiving(status)).map(|(name, _)| name);
        let large = Status::out_of_range("Error, decoded message length too large: found 9 bytes");
        assert_eq!(name(large).as_deref(), Some("MESSAGE_TOO_LARGE"));
        let garbage = Status::internal("failed to decode Protobuf message: invalid tag value: 0");
        assert_eq!(name(garbage).as_deref(), Some("MALFORMED"));
        assert_eq!(name(Status::internal("h2 protocol error")), None);
        assert_eq!(of_receiving(Status::cancelled("gone")).code(), Code::Cancelled);
    }

    #[test]
    fn foreign_statuses_have_no_reason() {
        assert_eq!(of_status(&Status::internal("x")), None);
    }
}
