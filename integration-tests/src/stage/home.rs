//! The cluster of a stage: simulated, or a real control plane.
//!
//! Invariant: it lives as long as its [`Home`], and is told apart by nothing but how it was
//! started. On a real one the watcher has the rights that the chart gives it, and no others.

use std::any::Any;
use std::path::{Path, PathBuf};

use anyhow::Result;
use kube::Client;
use longshore_lab::cluster::{Cluster, ClusterConfig};

use super::rights::Rights;
use crate::parts::{ControlPlane, ControlPlaneOptions};

/// A running cluster.
pub struct Home {
    /// A client with every right.
    pub client: Client,
    /// Kubeconfig with every right.
    pub kubeconfig: PathBuf,
    /// Kubeconfig of the watcher.
    pub account: PathBuf,
    /// What the watcher may do, on a real control plane.
    pub rights: Option<Rights>,
    _running: Box<dyn Any + Send + Sync>,
}

impl Home {
    /// Starts a real control plane, or a simulated cluster whose kubeconfig goes into `dir`.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn start(real: bool, dir: &Path) -> Result<Self> {
        if real {
            let options = ControlPlaneOptions { observes: true, ..ControlPlaneOptions::default() };
            let plane = ControlPlane::start(options).await?;
            let (client, kubeconfig) = (plane.client(), plane.kubeconfig_path());
            let (account, rights) = Rights::install(&plane).await?;
            let rights = Some(rights);
            return Ok(Self { client, kubeconfig, account, rights, _running: Box::new(plane) });
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
        let (account, rights) = (kubeconfig.clone(), None);
        Ok(Self { client, kubeconfig, account, rights, _running: Box::new(cluster) })
    }
}
