//! The cluster of a stage: simulated, or a real control plane.
//!
//! Invariant: it lives as long as its [`Home`], and is told apart by nothing but how it was
//! started.

use std::any::Any;
use std::path::{Path, PathBuf};

use anyhow::Result;
use kube::Client;
use longshore_lab::cluster::{Cluster, ClusterConfig};

use crate::parts::{ControlPlane, ControlPlaneOptions};

/// A running cluster.
pub struct Home {
    /// A client with every right.
    pub client: Client,
    /// Kubeconfig with every right.
    pub kubeconfig: PathBuf,
    _running: Box<dyn Any + Send + Sync>,
}

impl Home {
    /// Starts a real control plane, or a simulated cluster whose kubeconfig goes into `dir`.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn start(real: bool, dir: &Path) -> Result<Self> {
        if real {
            let plane = ControlPlane::start(ControlPlaneOptions::default()).await?;
            let (client, kubeconfig) = (plane.client(), plane.kubeconfig_path());
            return Ok(Self { client, kubeconfig, _running: Box::new(plane) });
        }
        Self::simulated(ClusterConfig::default(), dir).await
    }

    /// Starts a simulated cluster whose kubeconfig goes into `dir`. Clusters of one seed have the
    /// same UIDs.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn simulated(config: ClusterConfig, dir: &Path) -> Result<Self> {
        let cluster = Cluster::start(config).await?;
        let (client, kubeconfig) = (cluster.client()?, dir.join("kubeconfig"));
        std::fs::write(&kubeconfig, cluster.kubeconfig_text())?;
        Ok(Self { client, kubeconfig, _running: Box::new(cluster) })
    }
}
