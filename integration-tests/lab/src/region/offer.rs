//! What is on sale: a type in a zone on a market.
//!
//! Invariant: two offers are the same exactly when EC2 counts their capacity together.

/// One thing to buy: a type in a zone on a market.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Offer {
    /// Type name.
    pub instance_type: String,
    /// Zone name.
    pub zone: String,
    /// True for spot, false for on-demand.
    pub spot: bool,
}

/// EC2's name of a market.
pub const fn market_name(spot: bool) -> &'static str {
    if spot { "spot" } else { "on-demand" }
}

impl Offer {
    /// An offer by its parts.
    pub fn new(instance_type: &str, zone: &str, spot: bool) -> Offer {
        Offer { instance_type: instance_type.to_owned(), zone: zone.to_owned(), spot }
    }
}
