//! What the bodies of orders say, and the region's answer to each.
//!
//! Invariant: a body is read strictly: a field that is unknown or missing is refused, never
//! guessed.

use std::collections::BTreeSet;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::refusal::Refusal;
use crate::region::{AwsError, Fault, Happening, LaunchFault, Offer, OrderError, RegionHandle};

/// Longest delay of a reply in milliseconds: longer than any client waits.
const DELAY_MAX_MS: u32 = 600_000;
/// What is scheduled unless an order says otherwise.
const CHANGE: &str = "instance-retirement";
/// Time from an order to a scheduled change unless it says otherwise, in seconds.
const CHANGE_IN_S: u32 = 3_600;

/// Body of `POST /faults`.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
enum FaultOrder {
    /// The next calls are throttled.
    Throttle {
        api: String,
        #[serde(default = "once")]
        calls: u32,
    },
    /// The next calls are refused.
    Error {
        api: String,
        #[serde(default = "once")]
        calls: u32,
        code: String,
        #[serde(default)]
        message: String,
        #[serde(default = "of_the_server")]
        status: u16,
    },
    /// The connection of the next calls is closed before they take effect.
    DropBefore {
        api: String,
        #[serde(default = "once")]
        calls: u32,
    },
    /// The connection of the next calls is closed after they have taken effect.
    DropAfter {
        api: String,
        #[serde(default = "once")]
        calls: u32,
    },
    /// Replies to the next calls are late.
    Slow {
        api: String,
        #[serde(default = "once")]
        calls: u32,
        delay_ms: u32,
    },
    /// Launches are refused, in calls that succeed.
    Launch {
        instance_type: Option<String>,
        zone: Option<String>,
        capacity_type: Option<CapacityType>,
        code: String,
        #[serde(default)]
        message: String,
        /// `null` for all.
        #[serde(default = "one_attempt")]
        attempts: Option<u32>,
    },
}

/// Body of `POST /capacity`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CapacityOrder {
    instance_type: String,
    zone: String,
    capacity_type: CapacityType,
    /// How many more instances; `null` for any number. It has to be there.
    #[serde(deserialize_with = "Option::deserialize")]
    count: Option<u32>,
}

/// Body of `POST /prices`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceOrder {
    instance_type: String,
    zone: String,
    micro_usd_per_hour: u64,
}

/// Body of `POST /interruptions`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct InterruptionOrder {
    instances: BTreeSet<String>,
    kind: Kind,
    event_code: Option<String>,
    in_s: Option<u32>,
}

/// What happens to instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    SpotInterruption,
    Rebalance,
    ScheduledChange,
    StateChange,
}

/// A market.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum CapacityType {
    Spot,
    OnDemand,
}

impl CapacityType {
    const fn is_spot(self) -> bool {
        matches!(self, Self::Spot)
    }
}

/// Has calls or launches fail.
///
/// # Errors
/// When the body is no such order, or it would have no effect.
pub fn faults(region: &RegionHandle, body: &Bytes) -> Result<Value, Refusal> {
    let (api, calls, fault) = match read(body)? {
        FaultOrder::Throttle { api, calls } => (api, calls, Fault::Throttle),
        FaultOrder::DropBefore { api, calls } => (api, calls, Fault::DropBefore),
        FaultOrder::DropAfter { api, calls } => (api, calls, Fault::DropAfter),
        FaultOrder::Slow { api, calls, delay_ms } => {
            in_range("delay_ms", delay_ms, (1, DELAY_MAX_MS))?;
            (api, calls, Fault::Slow(delay_ms))
        }
        FaultOrder::Error { api, calls, code, message, status } => {
            in_range("status", u32::from(status), (400, 599))?;
            (api, calls, Fault::Error(AwsError { status, code, message }))
        }
        FaultOrder::Launch { instance_type, zone, capacity_type, code, message, attempts } => {
            let spot = capacity_type.map(CapacityType::is_spot);
            let remaining = attempts;
            let fault = LaunchFault { instance_type, zone, spot, code, message, remaining };
            region.order_launch_fault(fault)?;
            return Ok(json!({ "attempts": attempts }));
        }
    };
    let waiting = region.order_fault(&api, &fault, calls)?;
    Ok(json!({ "api": api, "calls_to_fail": waiting }))
}

/// Limits an offer.
///
/// # Errors
/// When the body is no such order, or nothing of the kind is sold.
pub fn capacity(region: &RegionHandle, body: &Bytes) -> Result<Value, Refusal> {
    let CapacityOrder { instance_type, zone, capacity_type, count } = read(body)?;
    let offer = Offer::new(&instance_type, &zone, capacity_type.is_spot());
    let before = region.order_capacity(&offer, count)?;
    Ok(json!({ "count": count, "before": before }))
}

/// Sets a spot price.
///
/// # Errors
/// When the body is no such order, or nothing of the kind is sold.
pub fn prices(region: &RegionHandle, body: &Bytes) -> Result<Value, Refusal> {
    let PriceOrder { instance_type, zone, micro_usd_per_hour } = read(body)?;
    let before = region.order_spot_price((&instance_type, &zone), micro_usd_per_hour)?;
    Ok(json!({ "micro_usd_per_hour": micro_usd_per_hour, "before": before }))
}

/// Has something happen to instances.
///
/// # Errors
/// When the body is no such order, or it cannot happen to all of them.
pub fn interruptions(region: &RegionHandle, body: &Bytes) -> Result<Value, Refusal> {
    let InterruptionOrder { instances, kind, event_code, in_s } = read(body)?;
    if kind != Kind::ScheduledChange && (event_code.is_some() || in_s.is_some()) {
        let message = "event_code and in_s go with the kind scheduled-change alone";
        return Err(Refusal::Body(serde::de::Error::custom(message)));
    }
    let happening = match kind {
        Kind::SpotInterruption => Happening::SpotInterruption,
        Kind::Rebalance => Happening::Rebalance,
        Kind::StateChange => Happening::StateChange,
        Kind::ScheduledChange => Happening::ScheduledChange {
            code: event_code.unwrap_or_else(|| CHANGE.to_owned()),
            in_s: in_s.unwrap_or(CHANGE_IN_S),
        },
    };
    region.order_happening(&instances, &happening)?;
    Ok(json!({ "kind": kind, "instances": instances }))
}

/// A value as JSON.
///
/// # Errors
/// When it has none, which is a bug.
pub fn value(of: &impl Serialize) -> Result<Value, Refusal> {
    serde_json::to_value(of).map_err(Refusal::Bug)
}

fn read<T: DeserializeOwned>(body: &Bytes) -> Result<T, Refusal> {
    serde_json::from_slice(body).map_err(Refusal::Body)
}

fn in_range(what: &'static str, given: u32, (low, high): (u32, u32)) -> Result<(), OrderError> {
    if (low..=high).contains(&given) {
        return Ok(());
    }
    let allowed = format!("{low} to {high}");
    Err(OrderError::OutOfRange { what, given: given.to_string(), allowed })
}

const fn once() -> u32 {
    1
}

#[expect(clippy::unnecessary_wraps, reason = "the default of a field that may be null")]
const fn one_attempt() -> Option<u32> {
    Some(1)
}

const fn of_the_server() -> u16 {
    500
}
