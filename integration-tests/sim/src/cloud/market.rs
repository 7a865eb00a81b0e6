//! What a region sells, and the queue that it writes to.
//!
//! Invariant: prices are those of the embedded facts; a message that is not discarded comes back.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use longshore_actuator::cloud::{
    CloudError, Listing, Market, Messages, QueueMessage, SpotPrice, TypeInZone,
};

use super::CloudClient;
use crate::region::{self, Happening};

/// How long a received message stays hidden, in milliseconds.
const HIDDEN_MS: i64 = 30_000;
/// How long a receive waits for messages.
const RECEIVE_WAIT: Duration = Duration::from_secs(20);
/// Steps in which it looks for them.
const RECEIVE_STEP: Duration = Duration::from_millis(500);
/// Most messages in one answer.
const LETTERS_MAX: usize = 10;

#[async_trait]
impl Market for CloudClient {
    async fn listing(&self) -> Result<Listing, CloudError> {
        self.call("ec2:DescribeInstanceTypes", |model, _| {
            let offered = |name: &str| {
                let found = model.config.instance_types.iter().find(|sold| sold.name() == name);
                found.map(|sold| sold.zones.keys().cloned().collect::<Vec<_>>()).unwrap_or_default()
            };
            let in_zones = model.types.keys().flat_map(|name| {
                offered(name)
                    .into_iter()
                    .map(|zone| TypeInZone { instance_type: name.clone(), zone })
                    .collect::<Vec<_>>()
            });
            let zones = in_zones.collect();
            Ok(Listing { types: model.types.clone(), zones })
        })
        .await
    }

    async fn on_demand_prices(&self) -> Result<BTreeMap<String, i64>, CloudError> {
        self.call("pricing:GetProducts", |model, _| {
            let price =
                |kind: &String| Some((kind.clone(), i64::try_from(model.on_demand(kind)?).ok()?));
            Ok(model.types.keys().filter_map(price).collect())
        })
        .await
    }

    async fn spot_prices(&self) -> Result<Vec<SpotPrice>, CloudError> {
        self.call("ec2:DescribeSpotPriceHistory", |model, _| {
            let sold = model.config.instance_types.iter();
            let sold = sold.filter(|sold| model.types.contains_key(sold.name()));
            let prices = sold.flat_map(|sold| {
                sold.zones.iter().filter_map(|(zone, price)| {
                    Some(SpotPrice {
                        instance_type: sold.name().to_owned(),
                        zone: zone.clone(),
                        micro_usd_per_hour: i64::try_from((*price)?).ok()?,
                    })
                })
            });
            Ok(prices.collect())
        })
        .await
    }
}

#[async_trait]
impl Messages for CloudClient {
    async fn queue_url(&self, name: &str) -> Result<String, CloudError> {
        let url = format!("sim://{name}");
        self.call("sqs:GetQueueUrl", move |_, _| Ok(url)).await
    }

    async fn receive(&self, _: &str) -> Result<Vec<QueueMessage>, CloudError> {
        let until = tokio::time::Instant::now() + RECEIVE_WAIT;
        loop {
            let messages = self
                .call("sqs:ReceiveMessage", |model, now_ms| {
                    let due =
                        model.messages.iter_mut().filter(|(_, found)| found.visible_ms <= now_ms);
                    let taken = due.take(LETTERS_MAX).map(|(receipt, found)| {
                        found.visible_ms = now_ms + HIDDEN_MS;
                        QueueMessage { receipt: receipt.to_string(), body: found.body.clone() }
                    });
                    Ok(taken.collect::<Vec<_>>())
                })
                .await?;
            if !messages.is_empty() || tokio::time::Instant::now() >= until {
                return Ok(messages);
            }
            tokio::time::sleep(RECEIVE_STEP).await;
        }
    }

    async fn discard(&self, _: &str, receipt: &str) -> Result<(), CloudError> {
        let receipt: u64 = receipt.parse().unwrap_or_default();
        self.call("sqs:DeleteMessage", move |model, _| {
            let message = model.messages.remove(&receipt);
            if let Some(instance_id) = message.as_ref().and_then(interrupted) {
                model.tell(&Happening::Heard(instance_id));
            }
            Ok(())
        })
        .await
    }
}

/// The instance whose interruption a message announces.
fn interrupted(message: &region::QueueMessage) -> Option<String> {
    let body: serde_json::Value = serde_json::from_str(&message.body).ok()?;
    let warns = body["detail-type"] == "EC2 Spot Instance Interruption Warning";
    let id = body["detail"]["instance-id"].as_str().filter(|_| warns)?;
    Some(id.to_owned())
}
