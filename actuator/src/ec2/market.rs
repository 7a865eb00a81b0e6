//! DescribeInstanceTypes, DescribeInstanceTypeOfferings, GetProducts, DescribeSpotPriceHistory.
//!
//! Invariant: a type or price that cannot be understood is left out, never guessed.

use std::collections::BTreeMap;

use async_trait::async_trait;
use aws_sdk_ec2::types::LocationType;
use aws_sdk_pricing::types::{Filter as PriceFilter, FilterType};
use aws_smithy_types::DateTime;
use serde_json::Value;

use super::Aws;
use super::errors::{error, from_sdk};
use super::facts::instance_type;
use super::selector::filter;
use crate::cloud::{CloudError, Listing, Market, SpotPrice, TypeInZone};

const PAGE_TYPES: i32 = 100;
const PAGE_OFFERINGS: i32 = 1000;
const PAGE_SPOT_PRICES: i32 = 1000;
const PAGE_PRODUCTS: i32 = 100;
const GET_PRODUCTS: &str = "pricing:GetProducts";

#[async_trait]
impl Market for Aws {
    async fn listing(&self) -> Result<Listing, CloudError> {
        Ok(Listing { types: self.types().await?, zones: self.type_zones().await? })
    }

    async fn on_demand_prices(&self) -> Result<BTreeMap<String, i64>, CloudError> {
        let request = self
            .pricing
            .get_products()
            .service_code("AmazonEC2")
            .set_filters(Some(price_filters(&self.region)?))
            .max_results(PAGE_PRODUCTS);
        let mut pages = request.into_paginator().send();
        let mut found = BTreeMap::new();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|failure| from_sdk(GET_PRODUCTS, &failure))?;
            found.extend(page.price_list().iter().filter_map(|text| product_price(text)));
        }
        Ok(found)
    }

    async fn spot_prices(&self) -> Result<Vec<SpotPrice>, CloudError> {
        let now = DateTime::from_millis(self.clock.now_ms());
        let request = self
            .ec2
            .facts
            .describe_spot_price_history()
            .start_time(now)
            .product_descriptions("Linux/UNIX")
            .product_descriptions("Linux/UNIX (Amazon VPC)")
            .max_results(PAGE_SPOT_PRICES);
        let mut pages = request.into_paginator().send();
        // Newest record of each type and zone.
        let mut newest: BTreeMap<(String, String), (DateTime, i64)> = BTreeMap::new();
        while let Some(page) = pages.next().await {
            let page =
                page.map_err(|failure| from_sdk("ec2:DescribeSpotPriceHistory", &failure))?;
            for (key, time, price) in page.spot_price_history().iter().filter_map(spot_record) {
                let known = newest.entry(key).or_insert((time, price));
                if time > known.0 {
                    *known = (time, price);
                }
            }
        }
        let prices = newest.into_iter().map(|((instance_type, zone), (_, price))| SpotPrice {
            instance_type,
            zone,
            micro_usd_per_hour: price,
        });
        Ok(prices.collect())
    }
}

impl Aws {
    async fn types(
        &self,
    ) -> Result<BTreeMap<String, longshore_ec2_data::InstanceType>, CloudError> {
        let request = self
            .ec2
            .facts
            .describe_instance_types()
            .filters(filter("supported-virtualization-type", "hvm"))
            .max_results(PAGE_TYPES);
        let mut pages = request.into_paginator().send();
        let mut found = BTreeMap::new();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|failure| from_sdk("ec2:DescribeInstanceTypes", &failure))?;
            let types = page.instance_types().iter().filter_map(instance_type);
            found.extend(types.map(|facts| (facts.name.to_string(), facts)));
        }
        Ok(found)
    }

    async fn type_zones(&self) -> Result<Vec<TypeInZone>, CloudError> {
        let request = self
            .ec2
            .facts
            .describe_instance_type_offerings()
            .location_type(LocationType::AvailabilityZone)
            .max_results(PAGE_OFFERINGS);
        let mut pages = request.into_paginator().send();
        let mut found = Vec::new();
        while let Some(page) = pages.next().await {
            let page =
                page.map_err(|failure| from_sdk("ec2:DescribeInstanceTypeOfferings", &failure))?;
            found.extend(page.instance_type_offerings().iter().filter_map(|offering| {
                let instance_type = offering.instance_type()?.as_str().to_owned();
                Some(TypeInZone { instance_type, zone: offering.location()?.to_owned() })
            }));
        }
        found.sort();
        Ok(found)
    }
}

fn price_filters(region: &str) -> Result<Vec<PriceFilter>, CloudError> {
    let wanted = [
        ("regionCode", region),
        ("serviceCode", "AmazonEC2"),
        ("preInstalledSw", "NA"),
        ("operatingSystem", "Linux"),
        ("capacitystatus", "Used"),
        ("marketoption", "OnDemand"),
        ("tenancy", "Shared"),
    ];
    let filters = wanted.into_iter().map(|(field, value)| {
        PriceFilter::builder()
            .r#type(FilterType::TermMatch)
            .field(field)
            .value(value)
            .build()
            .map_err(|failure| error(GET_PRODUCTS, "InvalidFilter", &failure.to_string(), ""))
    });
    filters.collect()
}

/// Type and price of one entry of the price list.
fn product_price(text: &str) -> Option<(String, i64)> {
    let entry: Value = serde_json::from_str(text).ok()?;
    let instance_type = entry["product"]["attributes"]["instanceType"].as_str()?;
    let terms = entry["terms"]["OnDemand"].as_object()?;
    let dimensions = terms.values().filter_map(|term| term["priceDimensions"].as_object());
    let price = dimensions
        .flat_map(|dimensions| dimensions.values())
        .filter_map(|dimension| micro_usd(dimension["pricePerUnit"]["USD"].as_str()?))
        .find(|price| *price > 0)?;
    Some((instance_type.to_owned(), price))
}

fn spot_record(
    record: &aws_sdk_ec2::types::SpotPrice,
) -> Option<((String, String), DateTime, i64)> {
    let price = micro_usd(record.spot_price()?).filter(|price| *price > 0)?;
    let key = (record.instance_type()?.as_str().to_owned(), record.availability_zone()?.to_owned());
    Some((key, *record.timestamp()?, price))
}

/// Millionths of a dollar from a decimal number; digits beyond the sixth are rounded up, so that
/// nothing looks cheaper than it is.
fn micro_usd(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let (kept, rest) = fraction.split_at(fraction.len().min(6));
    let kept: i64 = format!("{kept:0<6}").parse().ok()?;
    let up = i64::from(rest.bytes().any(|digit| digit != b'0'));
    whole.checked_mul(1_000_000)?.checked_add(kept)?.checked_add(up)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_become_integers() {
        let table = [
            ("0.0336000000", Some(33_600)),
            ("12", Some(12_000_000)),
            (".5", Some(500_000)),
            ("0.0000001", Some(1)),
            ("x", None),
        ];
        for (text, price) in table {
            assert_eq!(micro_usd(text), price, "{text}");
        }
    }

    #[test]
    fn a_price_list_entry_is_read() {
        let entry = r#"{"product":{"attributes":{"instanceType":"t4g.large"}},"terms":{"OnDemand":
            {"A.B":{"priceDimensions":{"A.B.C":{"pricePerUnit":{"USD":"0.0672000000"}}}}}}}"#;
        assert_eq!(product_price(entry), Some(("t4g.large".to_owned(), 67_200)));
        let free = entry.replace("0.0672", "0.0000");
        assert_eq!(product_price(&free), None);
    }
}
