//! NodeOverlays on the wire and in the planner.

use longshore_core::vocabulary::overlay::{NodeOverlay, PriceChange};
use longshore_proto::types::v1;
use longshore_proto::types::v1::node_overlay::PriceChange as Wire;

use super::WireError;
use super::requirement::requirements;

/// Reads an overlay.
///
/// # Errors
/// When a requirement cannot be read or an amount is negative.
pub fn overlay(wire: &v1::NodeOverlay) -> Result<NodeOverlay, WireError> {
    read(wire).map_err(|error| error.of("NodeOverlay", &wire.name))
}

fn read(wire: &v1::NodeOverlay) -> Result<NodeOverlay, WireError> {
    if let Some((name, _)) = wire.capacity.iter().find(|(_, amount)| **amount < 0) {
        return Err(WireError::field("capacity", format!("{name} is negative")));
    }
    let price = wire.price_change.as_ref().map(|change| match change {
        Wire::PriceMicroUsdPerHour(price) => PriceChange::Fixed(*price),
        Wire::AddedMicroUsdPerHour(more) => PriceChange::Added(*more),
        Wire::AddedPpm(ppm) => PriceChange::AddedPpm(*ppm),
    });
    Ok(NodeOverlay {
        name: wire.name.as_str().into(),
        weight: wire.weight,
        requirements: requirements(&wire.requirements)
            .map_err(|error| error.within("requirements"))?,
        price,
        capacity: wire.capacity.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overlay_that_takes_a_resource_away_is_refused_by_name() {
        let read = |amount| {
            let capacity = [("example.com/fuse".to_owned(), amount)].into();
            overlay(&v1::NodeOverlay { name: "o".to_owned(), capacity, ..Default::default() })
        };
        assert_eq!(read(4).unwrap().capacity["example.com/fuse"], 4);
        let error = read(-1).unwrap_err().to_string();
        assert_eq!(error, "NodeOverlay o: capacity: example.com/fuse is negative");
    }
}
