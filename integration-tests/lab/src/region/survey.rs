//! What there is, for who looks at a region from outside: instances, queues, limits, scripts,
//! counted calls.
//!
//! Invariant: one look is of one moment; nothing is changed by it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use super::handle::RegionHandle;
use super::offer::market_name;
use super::orders::OrderError;
use super::world::{InstanceRecord, World};

/// Everything at a moment.
#[derive(Clone, Debug, Serialize)]
pub struct Survey {
    /// The moment, on the region's clock.
    pub now: Timestamp,
    /// Name of the region.
    pub region: String,
    /// Instances in order of launch, those included that have ended and are still listed.
    pub instances: Vec<InstanceLine>,
    /// Queues by name.
    pub queues: Vec<QueueLine>,
    /// Offers of which not any number is left.
    pub capacity: Vec<CapacityLine>,
    /// Calls that are to fail, by API.
    pub faults: BTreeMap<String, usize>,
    /// Launches that are to be refused.
    pub launch_faults: Vec<LaunchFaultLine>,
}

/// An instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InstanceLine {
    /// EC2's id.
    pub id: String,
    /// Type name.
    pub instance_type: String,
    /// Zone name.
    pub zone: String,
    /// `spot` or `on-demand`.
    pub capacity_type: &'static str,
    /// EC2's name of the state.
    pub state: &'static str,
    /// Time since its launch in seconds.
    pub age_s: u64,
    /// Name of its node, once it has joined a cluster.
    pub node_name: String,
    /// What an hour of it costs now, in millionths of a dollar.
    pub price_micro_usd_per_hour: u64,
}

/// A queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct QueueLine {
    /// Its name.
    pub name: String,
    /// Messages that can be received.
    pub visible: usize,
    /// Messages that were received, and neither deleted nor given back.
    pub in_flight: usize,
    /// Messages sent so far.
    pub sent: u64,
}

/// An offer that is limited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CapacityLine {
    /// Type name.
    pub instance_type: String,
    /// Zone name.
    pub zone: String,
    /// `spot` or `on-demand`.
    pub capacity_type: &'static str,
    /// How many more instances it yields.
    pub count: u32,
}

/// A refusal of launches; parts that are `null` stand for any.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LaunchFaultLine {
    /// Type name.
    pub instance_type: Option<String>,
    /// Zone name.
    pub zone: Option<String>,
    /// `spot` or `on-demand`.
    pub capacity_type: Option<&'static str>,
    /// Error code.
    pub code: String,
    /// Attempts it still refuses; `null` for all.
    pub attempts: Option<u32>,
}

/// From where calls are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Since {
    /// From the region's start.
    #[default]
    Start,
    /// From the call of this number on, which is [`Calls::next`] of an earlier count.
    Call(usize),
    /// From this moment on.
    Time(Timestamp),
}

/// Calls, counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Calls {
    /// The moment, on the region's clock.
    pub now: Timestamp,
    /// Number of the next call, for counting from there on.
    pub next: usize,
    /// By API and outcome, in order of these.
    pub calls: Vec<CallCount>,
}

/// Calls of an API with one outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CallCount {
    /// `service:Action`.
    pub api: String,
    /// `ok`, or the code of the refusal.
    pub outcome: String,
    /// How many.
    pub count: usize,
}

impl RegionHandle {
    /// Looks at everything.
    #[must_use]
    pub fn survey(&self) -> Survey {
        self.shared.with(|world, now| world.survey(now))
    }

    /// Counts calls by API and outcome.
    ///
    /// # Errors
    /// When they would be counted from somewhere ahead of now, or so far back that they were only
    /// counted as a whole.
    pub fn count_calls(&self, since: Since) -> Result<Calls, OrderError> {
        self.shared.with(|world, now| world.count_calls(since, now))
    }
}

impl World {
    fn survey(&self, now: Timestamp) -> Survey {
        let queues = self.queues.iter().map(|(name, queue)| {
            let (visible, in_flight) = queue.depth(now);
            QueueLine { name: name.clone(), visible, in_flight, sent: queue.sent() }
        });
        let capacity = self.market.limited().map(|(offer, count)| CapacityLine {
            instance_type: offer.instance_type.clone(),
            zone: offer.zone.clone(),
            capacity_type: market_name(offer.spot),
            count,
        });
        let launch_faults = self.faults.launches().map(|fault| LaunchFaultLine {
            instance_type: fault.instance_type.clone(),
            zone: fault.zone.clone(),
            capacity_type: fault.spot.map(market_name),
            code: fault.code.clone(),
            attempts: fault.remaining,
        });
        Survey {
            now,
            region: self.config.name.clone(),
            instances: self.instances.values().map(|it| self.instance_line(it, now)).collect(),
            queues: queues.collect(),
            capacity: capacity.collect(),
            faults: self.faults.calls().map(|(api, calls)| (api.to_owned(), calls)).collect(),
            launch_faults: launch_faults.collect(),
        }
    }

    fn instance_line(&self, record: &InstanceRecord, now: Timestamp) -> InstanceLine {
        let age_s = now.duration_since(record.launched).as_secs();
        InstanceLine {
            id: record.seen.instance_id.clone(),
            instance_type: record.seen.instance_type.clone(),
            zone: record.seen.zone.clone(),
            capacity_type: market_name(record.seen.spot),
            state: record.state().1,
            age_s: u64::try_from(age_s).unwrap_or(0),
            node_name: record.seen.private_dns_name.clone(),
            price_micro_usd_per_hour: self.price_of(&record.offer(), now),
        }
    }

    fn count_calls(&self, since: Since, now: Timestamp) -> Result<Calls, OrderError> {
        let (oldest, next) = self.calls.numbers();
        let elsewhere = |given: String, allowed: String| {
            Err(OrderError::OutOfRange { what: "since", given, allowed })
        };
        let first = match since {
            Since::Start | Since::Call(0) => 0,
            Since::Call(number) if !(oldest..=next).contains(&number) => {
                let kept = if oldest == 0 { "0".to_owned() } else { format!("0, or {oldest}") };
                let allowed = format!("{kept} to {next}: so often was this region called");
                return elsewhere(number.to_string(), allowed);
            }
            Since::Call(number) => number,
            Since::Time(at) if at > now => {
                let allowed = format!("no later than {now}, the region's present");
                return elsewhere(at.to_string(), allowed);
            }
            Since::Time(at) => match self.calls.kept_since().filter(|kept| at < *kept) {
                Some(kept) => {
                    let allowed = format!("left out, or no earlier than {kept}");
                    return elsewhere(at.to_string(), allowed);
                }
                None => self.calls.number_at(at),
            },
        };
        let calls = self.calls.counts(first).into_iter();
        let calls = calls.map(|((api, outcome), count)| CallCount { api, outcome, count });
        Ok(Calls { now, next, calls: calls.collect() })
    }
}
