//! The call log: what was asked of the region, by whom, and what came of it.
//!
//! Invariant: every request that reached the region is in it once, in order of arrival.

use jiff::Timestamp;

/// One call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallRecord {
    /// `service:Action`, for example `ec2:CreateFleet`.
    pub api: String,
    /// Parameters as sent, sorted, shortened.
    pub summary: String,
    /// Request id that the reply carried.
    pub request_id: String,
    /// ARN of the caller.
    pub principal: String,
    /// When it arrived.
    pub at: Timestamp,
    /// Error code of the reply; `None` for success.
    pub error: Option<String>,
    /// Client token, when the call carried one.
    pub client_token: Option<String>,
    /// How many instances a fleet was to have; 0 for any other call.
    pub instances: usize,
}
