//! Reading what the region sells, and for how much.
//!
//! Invariant: what was read last stays until something newer is; prices that cannot be read are the
//! embedded ones.

use std::sync::Arc;
use std::time::Duration;

use crate::cloud::Class;
use crate::leader::Leader;

/// New types and zones appear a few times a year.
const LISTING_INTERVAL: Duration = Duration::from_secs(6 * 3600);
/// On-demand prices change rarely.
const ON_DEMAND_INTERVAL: Duration = Duration::from_secs(12 * 3600);
/// Spot prices move a few times a day; one paged call reads them all.
const SPOT_INTERVAL: Duration = Duration::from_secs(300);
/// Time before prices are asked for again that could not be read.
const AGAIN: Duration = Duration::from_secs(600);

pub async fn listing(leader: Arc<Leader>) -> anyhow::Result<()> {
    loop {
        let listing = leader.cloud().listing().await?;
        tracing::info!(types = listing.types.len(), "instance types read");
        leader.market.send_modify(|view| Arc::make_mut(view).listing = listing);
        tokio::time::sleep(LISTING_INTERVAL).await;
    }
}

pub async fn spot(leader: Arc<Leader>) -> anyhow::Result<()> {
    loop {
        let prices = leader.cloud().spot_prices().await?;
        tracing::debug!(prices = prices.len(), "spot prices read");
        leader.market.send_modify(|view| Arc::make_mut(view).prices.set_spot(prices));
        tokio::time::sleep(SPOT_INTERVAL).await;
    }
}

pub async fn on_demand(leader: Arc<Leader>) -> anyhow::Result<()> {
    loop {
        let wait = match leader.cloud().on_demand_prices().await {
            Ok(prices) => {
                tracing::info!(prices = prices.len(), "on-demand prices read");
                leader.market.send_modify(|view| Arc::make_mut(view).prices.set_on_demand(prices));
                ON_DEMAND_INTERVAL
            }
            Err(error) => {
                let optional = if error.class == Class::Unauthorized { "; allow it" } else { "" };
                tracing::warn!(%error, "using embedded on-demand prices{optional}");
                AGAIN
            }
        };
        tokio::time::sleep(wait).await;
    }
}
