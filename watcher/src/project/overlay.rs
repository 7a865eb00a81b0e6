//! NodeOverlays.
//!
//! Invariant: an overlay with one field that cannot be read is a fault as a whole: half of it would
//! change prices that its owner did not mean. Amounts of money are exact, in millionths of a
//! dollar.

use std::collections::BTreeMap;

use longshore_proto::types::v1 as wire;
use longshore_proto::types::v1::node_overlay::PriceChange;

use super::fault::{Fault, FieldFault, FieldResult, Problem};
use super::pool::requirements;
use super::quantity::{Rounding, integer};
use crate::api::node_overlay::NodeOverlaySpec;
use crate::api::{self, NodeOverlay, ResourceList};

/// Millionths of a dollar in a dollar.
const MICRO_USD: i128 = 1_000_000;
/// Millionths in a hundredth.
const PPM_PER_PERCENT: i128 = 10_000;
/// Resources that follow from the instance type.
const OF_THE_TYPE: [&str; 4] = ["cpu", "memory", "ephemeral-storage", "pods"];

/// An overlay.
///
/// # Errors
/// The first field that cannot be read.
pub fn overlay(overlay: &NodeOverlay) -> Result<wire::NodeOverlay, Fault> {
    let name = overlay.metadata.name.clone().unwrap_or_default();
    read(&overlay.spec, &name).map_err(|f| f.within("spec").of(format!("NodeOverlay/{name}")))
}

fn read(spec: &NodeOverlaySpec, name: &str) -> FieldResult<wire::NodeOverlay> {
    Ok(wire::NodeOverlay {
        name: name.to_owned(),
        weight: spec.weight.unwrap_or(0),
        requirements: requirements(&spec.requirements).map_err(|f| f.within("requirements"))?,
        price_change: price_change(spec)?,
        capacity: capacity(&spec.capacity).map_err(|f| f.within("capacity"))?,
    })
}

fn price_change(spec: &NodeOverlaySpec) -> FieldResult<Option<PriceChange>> {
    match (&spec.price, &spec.price_adjustment) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => {
            Err(FieldFault::new("price", Problem::Exclusive("spec.priceAdjustment")))
        }
        (Some(price), None) => {
            let price = decimal(price, MICRO_USD).map_err(|p| FieldFault::new("price", p))?;
            Ok(Some(PriceChange::PriceMicroUsdPerHour(price)))
        }
        (None, Some(change)) => {
            adjustment(change).map(Some).map_err(|p| FieldFault::new("priceAdjustment", p))
        }
    }
}

fn adjustment(text: &str) -> Result<PriceChange, Problem> {
    let (sign, amount) = match text.strip_prefix('-') {
        Some(less) => (-1, less),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    Ok(match amount.strip_suffix('%') {
        Some(percent) => PriceChange::AddedPpm(sign * decimal(percent, PPM_PER_PERCENT)?),
        None => PriceChange::AddedMicroUsdPerHour(sign * decimal(amount, MICRO_USD)?),
    })
}

/// A number without a sign, in units of `1 / per_unit`; what is finer rounds down.
fn decimal(text: &str, per_unit: i128) -> Result<i64, Problem> {
    let plain = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == '.');
    if !plain {
        return Err(Problem::Quantity(text.to_owned()));
    }
    integer(text, per_unit, Rounding::Down)
}

fn capacity(list: &ResourceList) -> FieldResult<BTreeMap<String, i64>> {
    let read = |(name, quantity): (&String, &api::Quantity)| {
        let fault = |problem| FieldFault::new(format!("[{name}]"), problem);
        if OF_THE_TYPE.contains(&name.as_str()) {
            let allowed = "names of extended resources: this one follows from the instance type";
            return Err(fault(Problem::Unknown { value: name.clone(), allowed }));
        }
        let amount = integer(&quantity.0, 1, Rounding::Down).map_err(fault)?;
        Ok((name.clone(), amount))
    };
    list.iter().map(read).collect()
}
