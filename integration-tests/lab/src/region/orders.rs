//! Orders from outside that are checked before they are carried out: what an operator has happen
//! here.
//!
//! Invariant: an order is carried out whole or not at all, under one lock. What would have no
//! effect is refused, with what would have one.

mod happening;
mod sold;

use std::collections::BTreeSet;

use thiserror::Error;

use super::dispatch;
use super::faults::{Fault, LaunchFault};
use super::handle::RegionHandle;
use super::offer::Offer;
pub use happening::{Happening, SCHEDULED_CHANGES};

/// Most calls of one API that wait to fail: far above what any retry makes.
const CALLS_MAX: usize = 10_000;
/// Most refusals of launches at a time: each launch goes through all of them.
const LAUNCH_FAULTS_MAX: usize = 1_000;
/// Highest price of an hour in millionths of a dollar: ten thousand dollars, far above EC2's
/// dearest machine.
const PRICE_MICRO_USD_MAX: u64 = 10_000_000_000;
/// A type that everybody knows.
const EXAMPLE: &str = "m5.large";

/// Why an order would have no effect.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OrderError {
    /// Nobody answers this API here.
    #[error("no API {api} is answered here")]
    UnknownApi {
        /// As it was ordered.
        api: String,
        /// Those that are, of the same service, or all when there is no such service.
        known: Vec<String>,
    },
    /// Nobody sells this here.
    #[error("{what} is not sold here")]
    NotSold {
        /// What was ordered.
        what: String,
        /// What is sold, as near to it as possible.
        sold: String,
    },
    /// No instance was named.
    #[error("no instance is named")]
    NoInstances,
    /// Some instances are not there.
    #[error("no instance {}", .0.join(", "))]
    UnknownInstances(Vec<String>),
    /// Some instances are ending, or have ended.
    #[error("already ending or ended: {}", .0.join(", "))]
    Ending(Vec<String>),
    /// EC2 does nothing of that kind to some instances.
    #[error("on demand, so that EC2 does not do this to them: {}", .0.join(", "))]
    OnDemand(Vec<String>),
    /// A number or name lies outside of what it may be.
    #[error("{what} cannot be {given}")]
    OutOfRange {
        /// What.
        what: &'static str,
        /// As it was ordered.
        given: String,
        /// What it may be.
        allowed: String,
    },
}

impl OrderError {
    /// The way out, for who gave the order.
    #[must_use]
    pub fn what_to_do(&self) -> String {
        match self {
            Self::UnknownApi { known, .. } => format!("name one of: {}", known.join(", ")),
            Self::NotSold { sold, .. } => format!("name what is sold: {sold}"),
            Self::NoInstances => "name instances by their ids; GET /state lists them".to_owned(),
            Self::UnknownInstances(_) => {
                "GET /state lists the instances; ids come from launches in this region".to_owned()
            }
            Self::Ending(_) => {
                "leave them out; GET /state says which are pending or running".to_owned()
            }
            Self::OnDemand(_) => {
                "leave them out, or end them with the kind state-change".to_owned()
            }
            Self::OutOfRange { what, allowed, .. } => format!("{what} may be {allowed}"),
        }
    }
}

impl RegionHandle {
    /// An offer of the spot market for examples: of a type that everybody knows, where that is
    /// sold.
    #[must_use]
    pub fn example_offer(&self) -> Offer {
        self.shared.with(|world, _| {
            let mut spot: Vec<Offer> = world.sold().filter(|offer| offer.spot).collect();
            let known = spot.iter().position(|offer| offer.instance_type == EXAMPLE);
            let nothing = || Offer::new(EXAMPLE, "", true);
            if spot.is_empty() { nothing() } else { spot.swap_remove(known.unwrap_or(0)) }
        })
    }

    /// Has the next calls of an API fail, after those that are to fail already; returns how many
    /// are then to.
    ///
    /// # Errors
    /// When nobody answers the API, or no call, or too many, would fail.
    pub fn order_fault(&self, api: &str, fault: &Fault, calls: u32) -> Result<usize, OrderError> {
        if !dispatch::apis().any(|known| known == api) {
            return Err(unknown_api(api));
        }
        self.shared.with(|world, _| {
            let left = CALLS_MAX - world.faults.waiting(api).min(CALLS_MAX);
            in_range("calls", u64::from(calls), (1, u64::try_from(left).unwrap_or(0)))?;
            (0..calls).for_each(|_| world.faults.push(api, fault.clone()));
            Ok(world.faults.waiting(api))
        })
    }

    /// Has launches of some offers be refused within calls that succeed.
    ///
    /// # Errors
    /// When no such offer is sold, no attempt would be refused, or too many refusals wait already.
    pub fn order_launch_fault(&self, fault: LaunchFault) -> Result<(), OrderError> {
        self.shared.with(|world, _| {
            if let Some(attempts) = fault.remaining {
                in_range("attempts", u64::from(attempts), (1, u64::from(u32::MAX)))?;
            }
            let waiting = world.faults.launches().count();
            if waiting >= LAUNCH_FAULTS_MAX {
                let given = (waiting + 1).to_string();
                let allowed = format!("{LAUNCH_FAULTS_MAX}; DELETE /faults withdraws all");
                return Err(OrderError::OutOfRange { what: "refusals at a time", given, allowed });
            }
            if !world.sold().any(|offer| fault.is_about(&offer)) {
                return Err(world.not_sold(&fault));
            }
            world.faults.refuse_launch(fault);
            Ok(())
        })
    }

    /// Withdraws every fault; returns how many calls, and how many refusals of launches, were
    /// waiting.
    #[must_use]
    pub fn withdraw_faults(&self) -> (usize, usize) {
        self.shared.with(|world, _| {
            let calls = world.faults.calls().map(|(_, calls)| calls).sum();
            let launches = world.faults.launches().count();
            world.faults.clear();
            (calls, launches)
        })
    }

    /// Sets how many more instances an offer yields, `None` for any number; returns what it was.
    ///
    /// # Errors
    /// When it is not sold.
    pub fn order_capacity(
        &self,
        offer: &Offer,
        instances: Option<u32>,
    ) -> Result<Option<u32>, OrderError> {
        self.shared.with(|world, _| {
            world.ensure_sold(offer)?;
            let before = world.market.capacity(offer);
            world.market.set_capacity(offer.clone(), instances);
            Ok(before)
        })
    }

    /// Sets what an hour of an instance costs on the spot market from now on; returns what it did.
    ///
    /// # Errors
    /// When it is not sold there, or for nothing, or for more than anybody pays.
    pub fn order_spot_price(
        &self,
        (instance_type, zone): (&str, &str),
        micro_usd_per_hour: u64,
    ) -> Result<u64, OrderError> {
        self.shared.with(|world, now| {
            let offer = Offer::new(instance_type, zone, true);
            world.ensure_sold(&offer)?;
            in_range("micro_usd_per_hour", micro_usd_per_hour, (1, PRICE_MICRO_USD_MAX))?;
            let before = world.price_of(&offer, now);
            world.prices.set_spot(instance_type, zone, (now, micro_usd_per_hour));
            Ok(before)
        })
    }

    /// Has something happen to instances.
    ///
    /// # Errors
    /// When it cannot happen to one of them; then it happens to none.
    pub fn order_happening(
        &self,
        instances: &BTreeSet<String>,
        happening: &Happening,
    ) -> Result<(), OrderError> {
        self.shared.with(|world, now| {
            world.ensure_can_happen(instances, happening)?;
            instances.iter().for_each(|id| world.happen(id, happening, now));
            Ok(())
        })
    }
}

fn unknown_api(api: &str) -> OrderError {
    let all: Vec<String> = dispatch::apis().collect();
    let service = format!("{}:", api.split(':').next().unwrap_or_default().to_lowercase());
    let same: Vec<String> = all.iter().filter(|it| it.starts_with(&service)).cloned().collect();
    let known = if same.is_empty() { all } else { same };
    OrderError::UnknownApi { api: api.to_owned(), known }
}

fn in_range(what: &'static str, given: u64, (low, high): (u64, u64)) -> Result<(), OrderError> {
    if (low..=high).contains(&given) {
        return Ok(());
    }
    let allowed = match high {
        0 => "given again when fewer wait; DELETE /faults withdraws all".to_owned(),
        _ => format!("{low} to {high}"),
    };
    Err(OrderError::OutOfRange { what, given: given.to_string(), allowed })
}
