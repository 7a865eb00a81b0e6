//! Scripted faults: what a test wants to go wrong, and how often.
//!
//! Invariant: a fault is consumed by exactly one call (or one attempted launch); without a script
//! nothing goes wrong.

use std::collections::{BTreeMap, VecDeque};

use super::wire::AwsError;

/// What goes wrong with a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The call is refused with this error and has no effect.
    Error(AwsError),
    /// The call is refused as throttled, in the words of its service.
    Throttle,
    /// The connection is closed before the call has any effect.
    DropBefore,
    /// The call takes effect, then the connection is closed without a reply.
    DropAfter,
    /// The reply comes this many milliseconds late; the effect does not.
    Slow(u32),
}

/// A launch that EC2 refuses for one offer; parts that are `None` match anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchFault {
    /// Type name.
    pub instance_type: Option<String>,
    /// Zone name.
    pub zone: Option<String>,
    /// Market: spot or on-demand.
    pub spot: Option<bool>,
    /// Error code, for example `MaxSpotInstanceCountExceeded`.
    pub code: String,
    /// Error text.
    pub message: String,
    /// Attempts it still refuses; `None` is without end.
    pub remaining: Option<u32>,
}

/// The script.
#[derive(Debug, Default)]
pub struct Faults {
    calls: BTreeMap<String, VecDeque<Fault>>,
    launches: Vec<LaunchFault>,
}

impl Faults {
    /// Appends a fault for the next call of an API (`ec2:CreateFleet`).
    pub fn push(&mut self, api: &str, fault: Fault) {
        self.calls.entry(api.to_owned()).or_default().push_back(fault);
    }

    /// Takes the fault meant for this call, if any.
    pub fn take(&mut self, api: &str) -> Option<Fault> {
        self.calls.get_mut(api)?.pop_front()
    }

    /// How many calls of an API are still to fail.
    pub fn waiting(&self, api: &str) -> usize {
        self.calls.get(api).map_or(0, VecDeque::len)
    }

    /// The APIs of which calls are still to fail, each with their number.
    pub fn calls(&self) -> impl Iterator<Item = (&str, usize)> {
        let waiting = self.calls.iter().filter(|(_, faults)| !faults.is_empty());
        waiting.map(|(api, faults)| (api.as_str(), faults.len()))
    }

    /// Adds a refusal of launches.
    pub fn refuse_launch(&mut self, fault: LaunchFault) {
        self.launches.retain(LaunchFault::is_armed);
        self.launches.push(fault);
    }

    /// The refusals of launches that still refuse.
    pub fn launches(&self) -> impl Iterator<Item = &LaunchFault> {
        self.launches.iter().filter(|fault| fault.is_armed())
    }

    /// Forgets every script.
    pub fn clear(&mut self) {
        *self = Faults::default();
    }

    /// Code and text that refuse this attempt, counting it against the script.
    pub fn refusal(&mut self, offer: &super::offer::Offer) -> Option<(String, String)> {
        let fault =
            self.launches.iter_mut().find(|fault| fault.is_armed() && fault.is_about(offer))?;
        if let Some(remaining) = &mut fault.remaining {
            *remaining -= 1;
        }
        Some((fault.code.clone(), fault.message.clone()))
    }
}

impl LaunchFault {
    /// True while it still refuses attempts.
    fn is_armed(&self) -> bool {
        self.remaining != Some(0)
    }

    /// Whether it is about this offer.
    pub fn is_about(&self, offer: &super::offer::Offer) -> bool {
        self.instance_type.as_ref().is_none_or(|name| *name == offer.instance_type)
            && self.zone.as_ref().is_none_or(|zone| *zone == offer.zone)
            && self.spot.is_none_or(|spot| spot == offer.spot)
    }
}
