//! Price list: GetProducts for EC2 compute.
//!
//! Invariant: prices are the world's at this moment; a filter on an attribute that products do not
//! have matches nothing, as in life.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::catalogue::TypeFacts;
use super::iam::Context;
use super::wire::{AwsError, Body, Result};
use super::world::{Call, Handler, World};

/// The service's largest page.
const PAGE_MAX: u64 = 100;

/// The API of the price list, and who answers it.
pub const APIS: &[(&str, Handler)] = &[("GetProducts", get_products)];

fn get_products(world: &mut World, call: &Call<'_>) -> Result<Body> {
    world.allow(call, "*", Context::default())?;
    let json = &call.request.json;
    if json["ServiceCode"] != "AmazonEC2" {
        let message = "No service of that code is priced in this region; use AmazonEC2";
        return Err(AwsError::client("InvalidParameterException", message));
    }
    let filters: Vec<(&str, &str)> = json["Filters"].as_array().map_or_else(Vec::new, |filters| {
        filters
            .iter()
            .filter_map(|filter| Some((filter["Field"].as_str()?, filter["Value"].as_str()?)))
            .collect()
    });
    let matching = world.types.values().flat_map(|facts| products(world, facts)).filter(|found| {
        let of = |field: &str| found.0.get(field).map(String::as_str);
        filters.iter().all(|(field, value)| of(field) == Some(*value))
    });
    let start = page_start(json)?;
    let size = json["MaxResults"].as_u64().unwrap_or(PAGE_MAX).clamp(1, PAGE_MAX);
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let mut rest = matching.skip(start);
    let page: Vec<String> =
        rest.by_ref().take(size).map(|(attributes, price)| document(&attributes, price)).collect();
    let mut reply = json!({"FormatVersion": "aws_v1", "PriceList": page});
    if rest.next().is_some() {
        reply["NextToken"] = json!(format!("page-{}", start + size));
    }
    Ok(Body::Json(reply))
}

fn page_start(json: &Value) -> Result<usize> {
    let Some(token) = json["NextToken"].as_str() else { return Ok(0) };
    token.strip_prefix("page-").and_then(|number| number.parse().ok()).ok_or_else(|| {
        AwsError::client("InvalidNextTokenException", "The pagination token is invalid.")
    })
}

/// Products of a type: shared tenancy, and dedicated for bare metal.
fn products(world: &World, facts: &TypeFacts) -> Vec<(BTreeMap<&'static str, String>, u64)> {
    let price = world.prices.on_demand(facts);
    let family = if facts.hardware.bare_metal {
        "Compute Instance (bare metal)"
    } else {
        "Compute Instance"
    };
    let tenancies: &[&str] =
        if facts.hardware.bare_metal { &["Shared", "Dedicated"] } else { &["Shared"] };
    tenancies
        .iter()
        .map(|tenancy| {
            let attributes = [
                ("instanceType", facts.name()),
                ("regionCode", world.config.name.as_str()),
                ("servicecode", "AmazonEC2"),
                ("serviceCode", "AmazonEC2"),
                ("ServiceCode", "AmazonEC2"),
                ("preInstalledSw", "NA"),
                ("operatingSystem", "Linux"),
                ("capacitystatus", "Used"),
                ("marketoption", "OnDemand"),
                ("licenseModel", "No License required"),
                ("tenancy", tenancy),
                ("productFamily", family),
            ];
            let owned = attributes.map(|(key, value)| (key, value.to_owned()));
            (BTreeMap::from(owned), price)
        })
        .collect()
}

/// One entry of the list: a JSON document inside a JSON string, as the service sends it.
fn document(attributes: &BTreeMap<&'static str, String>, price_micro_usd: u64) -> String {
    let name = &attributes["instanceType"];
    let sku = super::world::unique_id("SKU", name);
    let dollars = format!("{}.{:06}0000", price_micro_usd / 1_000_000, price_micro_usd % 1_000_000);
    let rate = format!("{sku}.JRTCKXETXF.6YS6EN2CT7");
    json!({
        "product": {
            "productFamily": attributes["productFamily"],
            "attributes": attributes,
            "sku": sku,
        },
        "serviceCode": "AmazonEC2",
        "terms": {"OnDemand": {format!("{sku}.JRTCKXETXF"): {
            "priceDimensions": {rate.clone(): {
                "unit": "Hrs",
                "endRange": "Inf",
                "beginRange": "0",
                "rateCode": rate,
                "description": format!("${dollars} per On Demand Linux {name} Instance Hour"),
                "appliesTo": [],
                "pricePerUnit": {"USD": dollars},
            }},
            "sku": sku,
            "effectiveDate": "2026-09-01T00:00:00Z",
            "offerTermCode": "JRTCKXETXF",
            "termAttributes": {},
        }}},
        "version": "20260901000000",
        "publicationDate": "2026-09-01T00:00:00Z",
    })
    .to_string()
}
