//! What a cloud says when it does not do what it was asked.
//!
//! Invariant: classified once, where the answer is read; everybody else looks at the class.

use thiserror::Error;

/// What an error means for whoever asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// No capacity for one offering at present.
    Capacity,
    /// The subnet has no address left.
    Addresses,
    /// A limit of the account or region is reached.
    Quota,
    /// The role that spot requests need does not exist and may not be created.
    SpotRole,
    /// The caller may not do this.
    Unauthorized,
    /// Too many requests.
    Throttled,
    /// The name given is not an instance profile.
    Profile,
    /// The launch template does not exist.
    TemplateMissing,
    /// The client token was used before with other parameters.
    TokenReused,
    /// What was named does not exist.
    NotFound,
    /// It exists already.
    Exists,
    /// No answer, or none that says whether it was done.
    Unknown,
    /// Anything else: repeating it will not help.
    Rejected,
}

impl Class {
    /// Stable name of a launch failure of this class.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Capacity => "INSUFFICIENT_CAPACITY",
            Self::Addresses => "INSUFFICIENT_ADDRESSES",
            Self::Quota => "QUOTA_EXCEEDED",
            Self::SpotRole => "SPOT_SERVICE_ROLE_MISSING",
            Self::Unauthorized => "UNAUTHORIZED",
            Self::Throttled => "THROTTLED",
            Self::Profile => "INVALID_INSTANCE_PROFILE",
            Self::TemplateMissing => "LAUNCH_TEMPLATE_MISSING",
            Self::TokenReused => "CLIENT_TOKEN_REUSED",
            Self::NotFound => "NOT_FOUND",
            Self::Exists => "ALREADY_EXISTS",
            Self::Unknown => "OUTCOME_UNKNOWN",
            Self::Rejected => "LAUNCH_REJECTED",
        }
    }

    /// True when another offering, or the same one later, may succeed without anybody's help.
    #[must_use]
    pub const fn passes(self) -> bool {
        match self {
            Self::Capacity
            | Self::Addresses
            | Self::Quota
            | Self::SpotRole
            | Self::Throttled
            | Self::TemplateMissing
            | Self::TokenReused
            | Self::Unknown => true,
            Self::Unauthorized | Self::Profile | Self::NotFound | Self::Exists | Self::Rejected => {
                false
            }
        }
    }

    /// True when the offering it was said of should not be asked for in the next minutes.
    #[must_use]
    pub const fn closes_offering(self) -> bool {
        matches!(self, Self::Capacity | Self::Addresses | Self::Quota)
    }
}

impl CloudError {
    /// No answer within the time there was.
    #[must_use]
    pub fn silent(action: &'static str) -> Self {
        Self {
            class: Class::Unknown,
            action,
            code: "NoAnswer".to_owned(),
            message: "no answer in time".to_owned(),
            request_id: String::new(),
        }
    }
}

/// An answer that is not what was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{action}: {code}: {message}")]
pub struct CloudError {
    /// What it means.
    pub class: Class,
    /// What was asked, as IAM names it: `ec2:CreateFleet`.
    pub action: &'static str,
    /// The cloud's own code.
    pub code: String,
    /// The cloud's own words.
    pub message: String,
    /// Id of the request; empty when it never got an answer.
    pub request_id: String,
}
