//! Spot price history.
//!
//! Invariant: newest first within a type and zone; the price in force at the start of the range is
//! part of the answer, as EC2's is.

use jiff::Timestamp;

use super::super::clock::ec2_time;
use super::super::config::Tags;
use super::super::iam::Context;
use super::super::wire::{AwsError, Body, Element, Params, Result, text};
use super::super::world::{Call, PricePoint, World};
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
    let range = (start, moment(params, "EndTime")?.unwrap_or(now));
    let (types, products) = (params.texts("InstanceType"), params.texts("ProductDescription"));
    let zone_wanted = params.text("AvailabilityZone");
    let named = |list: &[String], name: &str| list.is_empty() || list.iter().any(|n| n == name);
    let pools = world
        .types
        .values()
        .filter(|facts| named(&types, facts.name()))
        .flat_map(|facts| facts.zones.keys().map(move |zone| (facts, zone)))
        .filter(|(_, zone)| zone_wanted.is_none_or(|wanted| wanted == *zone));
    let mut rows = Vec::new();
    for (facts, zone) in pools {
        let points = world.prices.spot_history(facts, zone, range);
        for product in PRODUCTS.into_iter().filter(|product| named(&products, product)) {
            rows.extend(points.iter().map(|point| Row::new(facts.name(), zone, product, *point)));
        }
    }
    Ok(rows)
}

impl Row {
    fn new(instance_type: &str, zone: &str, product: &'static str, point: PricePoint) -> Row {
        let (at, micro_usd_per_hour) = point;
        let (instance_type, zone) = (instance_type.to_owned(), zone.to_owned());
        Row { instance_type, zone, product, micro_usd_per_hour, at }
    }
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
