//! Spot price history.
//!
//! Invariant: newest first within a type and zone; the price in force at the start of the range is
//! part of the answer, as EC2's is.

use jiff::Timestamp;

use super::super::clock::ec2_time;
use super::super::config::Tags;
use super::super::iam::Context;
use super::super::wire::{AwsError, Body, Element, Params, Result, text};
use super::super::world::{Call, World};
use super::filter::{Filters, page, paged, retain};

const PRODUCTS: [&str; 2] = ["Linux/UNIX", "Linux/UNIX (Amazon VPC)"];

/// One line of the history.
struct Row {
    instance_type: String,
    zone: String,
    product: &'static str,
    micro_usd_per_hour: u64,
    at: Timestamp,
}

/// `DescribeSpotPriceHistory`.
pub fn describe(world: &mut World, call: &Call<'_>) -> Result<Body> {
    world.allow(call, "*", Context::default())?;
    let params = &call.request.params;
    let rows = history(world, params, call.now)?;
    let filters = Filters::of(params);
    let kept = retain(rows, |row| filters.keep(&Tags::new(), |name| attribute(row, name)))?;
    let (kept, next) = page(params, kept, 1000)?;
    Ok(Body::Xml(paged("spotPriceHistorySet", kept.iter().map(|row| xml(world, row)), next)))
}

fn history(world: &World, params: &Params, now: Timestamp) -> Result<Vec<Row>> {
    let start = moment(params, "StartTime")?.unwrap_or(Timestamp::UNIX_EPOCH).min(now);
    let end = moment(params, "EndTime")?.unwrap_or(now);
    let types = params.texts("InstanceType");
    let products = params.texts("ProductDescription");
    let zone_wanted = params.text("AvailabilityZone");
    let mut rows = Vec::new();
    for facts in world.types.values() {
        for (zone, price) in &facts.zones {
            let Some(price) = price else { continue };
            let named = (types.is_empty() || types.iter().any(|name| name == facts.name()))
                && zone_wanted.is_none_or(|wanted| wanted == zone);
            if !named {
                continue;
            }
            let moments = prices_between(world, (facts.name(), zone, *price), (start, end));
            for product in PRODUCTS {
                if !products.is_empty() && !products.iter().any(|wanted| wanted == product) {
                    continue;
                }
                rows.extend(moments.iter().map(|&(at, micro_usd_per_hour)| Row {
                    instance_type: facts.name().to_owned(),
                    zone: zone.clone(),
                    product,
                    micro_usd_per_hour,
                    at,
                }));
            }
        }
    }
    Ok(rows)
}

/// The price in force at the start and every change after it, newest first.
fn prices_between(
    world: &World,
    (instance_type, zone, base): (&str, &str, u64),
    (start, end): (Timestamp, Timestamp),
) -> Vec<(Timestamp, u64)> {
    let mut prices = vec![(start, base)];
    for change in world.market.changes_of(instance_type, zone).filter(|change| change.at <= end) {
        if change.at <= start {
            prices.clear();
        }
        prices.push((change.at, change.micro_usd_per_hour));
    }
    prices.reverse();
    prices
}

fn moment(params: &Params, name: &str) -> Result<Option<Timestamp>> {
    let Some(value) = params.text(name) else { return Ok(None) };
    let invalid = || AwsError::invalid_parameter(format!("Invalid value '{value}' for {name}"));
    value.parse().map(Some).map_err(|_| invalid())
}

fn attribute(row: &Row, name: &str) -> Option<Vec<String>> {
    Some(vec![match name {
        "availability-zone" => row.zone.clone(),
        "instance-type" => row.instance_type.clone(),
        "product-description" => row.product.to_owned(),
        "spot-price" => dollars(row.micro_usd_per_hour),
        _ => return None,
    }])
}

fn xml(world: &World, row: &Row) -> Vec<Element> {
    vec![
        text("instanceType", &row.instance_type),
        text("productDescription", row.product),
        text("spotPrice", dollars(row.micro_usd_per_hour)),
        text("timestamp", ec2_time(row.at)),
        text("availabilityZone", &row.zone),
        text("availabilityZoneId", world.zone_id(&row.zone)),
    ]
}

/// `0.030300`.
pub fn dollars(micro_usd: u64) -> String {
    format!("{}.{:06}", micro_usd / 1_000_000, micro_usd % 1_000_000)
}
