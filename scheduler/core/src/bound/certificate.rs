//! The check of a lower bound, in integers, by whoever does not trust the solver.
//!
//! Invariant: shares no code with the solver, but for the choice of weights, which decides nothing
//! ([`verify_classes`]). If every offer's room is worth no more than its price at the given
//! resource prices, then no purchase that covers a demand costs less than what the demand is worth
//! at those prices: add the inequalities up over whatever is bought. The same holds for values of
//! pods, if no pods that share a room are worth more than it costs ([`verify_classes`], or
//! [`verify_sets`] where prices of resources show it). Where nodes are few, what they cost in whole
//! numbers says more ([`verify_whole_nodes`]).

mod classes;
mod sets;
pub(in crate::bound) mod whole_nodes;

pub use classes::{PodClass, SharedRoom, verify_classes};
pub use sets::verify_sets;
pub use whole_nodes::verify_whole_nodes;

use crate::bound::{BoundKind, LowerBound, units};
use crate::vocabulary::resources::Resources;

/// Nano-dollars in a micro-dollar.
const NANO_PER_MICRO: i128 = 1_000;

/// What can be bought, for the purpose of a bound.
#[derive(Clone, Debug)]
pub struct PricedRoom {
    /// What one node leaves for pods.
    pub room: Resources,
    /// What it costs, in micro-dollars per hour.
    pub price_micro_usd_per_hour: i64,
}

/// Why a certificate is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// A resource price is negative.
    #[error("the price of {resource} is negative; prices must be at least zero")]
    NegativePrice {
        /// Resource name.
        resource: String,
    },
    /// Some offer sells its room for less than the prices say.
    #[error("a node for {price} µ$/h has room worth more than that at the given resource prices")]
    OfferTooCheap {
        /// Price of the offer.
        price: i64,
    },
    /// A pod's value is negative, or a class has none.
    #[error("pods of {shape} have no value of at least zero; give each class one")]
    ValueMissing {
        /// Shape of the class.
        shape: String,
    },
    /// Pods that share a room are worth more than it costs.
    #[error("a node for {price} µ$/h holds pods worth more than that at the given values")]
    PatternTooCheap {
        /// Price of the room.
        price: i64,
    },
    /// Whether pods that share a room are worth more than it costs was not decided in time.
    #[error("what a node for {price} µ$/h holds at most was not decided within the steps allowed")]
    Undecided {
        /// Price of the room.
        price: i64,
    },
    /// The bound is larger than what the demand is worth.
    #[error("the bound {claimed} µ$/h exceeds the value {proved} µ$/h of the demand")]
    BoundTooLarge {
        /// The bound as reported.
        claimed: i64,
        /// What the prices prove.
        proved: i64,
    },
}

/// Checks that `bound` holds for `demand` when only `offers` can be bought.
///
/// # Errors
/// The first inequality that does not hold.
pub fn verify(
    bound: &LowerBound,
    demand: &Resources,
    offers: impl IntoIterator<Item = PricedRoom>,
) -> Result<(), CertificateError> {
    let prices = &bound.prices_nano_usd_per_hour;
    if let Some((resource, _)) = prices.iter().find(|(_, price)| **price < 0) {
        return Err(CertificateError::NegativePrice { resource: resource.clone() });
    }
    for offer in offers {
        let price = i128::from(offer.price_micro_usd_per_hour) * NANO_PER_MICRO;
        if worth(bound, |resource| offer.room.available(resource), Rounding::Up) > price {
            return Err(CertificateError::OfferTooCheap { price: offer.price_micro_usd_per_hour });
        }
    }
    covers(bound, worth(bound, |resource| demand.get(resource), Rounding::Down))
}

/// Checks a bound that comes with values of pods, whatever kind it is of; `names` are the resources
/// in the order of requests and rooms.
///
/// # Errors
/// The first inequality that does not hold.
pub fn verify_values(
    bound: &LowerBound,
    names: &[String],
    classes: &[PodClass],
    rooms: &[SharedRoom],
) -> Result<(), CertificateError> {
    match bound.kind {
        BoundKind::PriceSets => verify_sets(bound, names, classes, rooms),
        BoundKind::WholeNodes => verify_whole_nodes(bound, classes, rooms),
        BoundKind::ClassValues | BoundKind::ResourcePrices | BoundKind::None => {
            verify_classes(bound, classes, rooms)
        }
    }
}

/// Checks that the bound is no larger than what was proved.
fn covers(bound: &LowerBound, proved_nano: i128) -> Result<(), CertificateError> {
    let proved = i64::try_from(proved_nano / NANO_PER_MICRO).unwrap_or(i64::MAX);
    let claimed = bound.cost_micro_usd_per_hour;
    if bound.kind != BoundKind::None && claimed > proved {
        return Err(CertificateError::BoundTooLarge { claimed, proved });
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq)]
enum Rounding {
    Up,
    Down,
}

/// Worth of amounts in nano-dollars per hour, each resource rounded as told.
fn worth(bound: &LowerBound, amount: impl Fn(&str) -> i64, rounding: Rounding) -> i128 {
    let each = bound.prices_nano_usd_per_hour.iter().map(|(resource, price)| {
        let unit = i128::from(units(resource));
        let value = i128::from(*price) * i128::from(amount(resource).max(0));
        if rounding == Rounding::Up { (value + unit - 1) / unit } else { value / unit }
    });
    each.sum()
}
