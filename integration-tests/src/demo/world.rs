//! The demo's world: region, cluster, kubelets, trace receiver and the three services.
//!
//! Invariant: everything ends with the world; nothing listens beyond the loopback interface.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use kube::Client;
use longshore_lab::cluster::{Cluster, ClusterConfig, ClusterHandle};
use longshore_lab::kubelet::{KubeletConfig, Kubelets};
use longshore_lab::region::{CLUSTER, CONTROLLER_KEY, Region, RegionConfig, RegionHandle};
use longshore_proto::planning::v1::ComputePlanResponse;
use serde_json::Value;

use super::Args;
use crate::parts::process::Process;
use crate::stage::services::{Service, Surroundings};
use crate::stage::{hands, question};
use crate::trace::receiver::TraceReceiver;

const REGION: &str = "us-east-1";
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
/// How long a service may take to end after it was asked to.
const STOP_LIMIT: Duration = Duration::from_secs(15);

/// Everything that runs during the demo.
pub struct World {
    /// The region.
    pub region: Arc<RegionHandle>,
    /// A client of the cluster.
    pub client: Client,
    /// Where traces arrive.
    pub traces: TraceReceiver,
    /// Nodes and workload to apply.
    pub manifests: Vec<Value>,
    _cluster: ClusterHandle,
    _kubelets: Kubelets,
    actuator: Service,
    scheduler: Service,
    watcher: Process,
    /// Boot time of the instances, at least.
    pub boot_seconds: f64,
}

impl World {
    /// Starts everything.
    ///
    /// # Errors
    /// When a part does not start.
    pub async fn start(args: &Args) -> Result<Self> {
        let region = Arc::new(Region::start(region_config(args)?).await?);
        let cluster = Cluster::start(ClusterConfig::default()).await?;
        let client = cluster.client()?;
        hands::apply(&client, &hands::manifests(&PathBuf::from(ROOT).join("deploy/crds"))?).await?;
        let manifests = hands::manifests(&PathBuf::from(ROOT).join("integration-tests/demo"))?;
        let source = Arc::clone(&region);
        let kubelets = Kubelets::start(client.clone(), source, KubeletConfig::new(CLUSTER, REGION));
        let traces = TraceReceiver::start().await?;
        let kubeconfig = args.out.join("kubeconfig");
        std::fs::write(&kubeconfig, cluster.kubeconfig_text())?;
        let surroundings = Surroundings {
            dir: args.out.clone(),
            region_url: region.endpoint_url(),
            region: REGION.to_owned(),
            access_key: CONTROLLER_KEY.to_owned(),
            cluster: CLUSTER.to_owned(),
            kubeconfig,
            queue: CLUSTER.to_owned(),
            etcd: Vec::new(),
            otlp: Some(traces.endpoint().to_owned()),
        };
        let any = "127.0.0.1:0".parse().context("address")?;
        let actuator = surroundings.start_actuator("longshore-actuator", any).await?;
        let scheduler = surroundings.start_scheduler(any, &[actuator.url()]).await?;
        let watcher = surroundings.start_watcher("longshore-watcher", &scheduler.url())?;
        Ok(Self {
            region,
            client,
            traces,
            manifests,
            _cluster: cluster,
            _kubelets: kubelets,
            actuator,
            scheduler,
            watcher,
            boot_seconds: args.boot_seconds,
        })
    }

    /// A plan for so many replicas of the workload, at the region's live prices.
    ///
    /// # Errors
    /// When the scheduler cannot answer, for example because the region is not known yet.
    pub async fn plan(&self, replicas: u32) -> Result<ComputePlanResponse> {
        question::plan(&self.scheduler.url(), REGION, &self.manifests, replicas).await
    }

    /// An error with the end of its log when a service has ended.
    ///
    /// # Errors
    /// When a service has ended.
    pub fn ensure_running(&mut self) -> Result<()> {
        self.actuator.process.ensure_running()?;
        self.scheduler.process.ensure_running()?;
        self.watcher.ensure_running()
    }

    /// Ends the services in order, so that each flushes its spans.
    ///
    /// # Errors
    /// When one does not end.
    pub async fn stop_services(&mut self) -> Result<()> {
        let all = [&mut self.watcher, &mut self.scheduler.process, &mut self.actuator.process];
        for process in all {
            process.terminate()?;
            process.wait_for_exit(STOP_LIMIT).await?;
        }
        Ok(())
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
