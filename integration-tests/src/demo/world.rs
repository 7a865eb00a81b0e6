//! The demo's world: a stage world with the demo's manifests and timing.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use longshore_lab::region::{CLUSTER, RegionConfig};
use longshore_proto::planning::v1::ComputePlanResponse;
use serde_json::Value;

use super::Args;
use crate::stage::world::{ROOT, World, WorldConfig};
use crate::stage::{hands, question};

const REGION: &str = "us-east-1";

/// The world of the demo.
pub struct DemoWorld {
    /// Everything that runs.
    pub stage: World,
    /// Nodes and workload to apply.
    pub manifests: Vec<Value>,
    /// Boot time of the instances, at least.
    pub boot_seconds: f64,
}

impl DemoWorld {
    /// Starts everything.
    ///
    /// # Errors
    /// When a part does not start.
    pub async fn start(args: &Args) -> Result<Self> {
        let manifests = hands::manifests(&Path::new(ROOT).join("integration-tests/demo"))?;
        let config = WorldConfig::new(region_config(args)?, CLUSTER, &args.out);
        let stage = World::start(config).await?;
        Ok(Self { stage, manifests, boot_seconds: args.boot_seconds })
    }

    /// A plan for so many replicas of the workload, at the region's live prices.
    ///
    /// # Errors
    /// When the scheduler cannot answer, for example because the region is not known yet.
    pub async fn plan(&self, replicas: u32) -> Result<ComputePlanResponse> {
        let (url, asker) = (self.stage.scheduler.url(), self.stage.keys.client()?);
        question::plan((&url, &asker), REGION, &self.manifests, replicas).await
    }
}

fn region_config(args: &Args) -> Result<RegionConfig> {
    let mut config = RegionConfig::simple(REGION)?;
    let boot_ms = Duration::try_from_secs_f64(args.boot_seconds).unwrap_or_default().as_millis();
    let boot_ms = u32::try_from(boot_ms).unwrap_or(u32::MAX);
    config.timing.boot_min_ms = boot_ms;
    config.timing.boot_max_ms = boot_ms.saturating_add(boot_ms / 4);
    config.timing.shutdown_ms = 1_000;
    Ok(config)
}
