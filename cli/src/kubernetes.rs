//! The way to a cluster, as whoever runs the command.
//!
//! Invariant: found as kubectl finds it, else as a pod does.

use std::path::PathBuf;

use anyhow::Context as _;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

/// Which cluster.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ClusterAccess {
    /// Kubeconfig file; else $KUBECONFIG or ~/.kube/config, else the pod's service account.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig; the current one when absent.
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
}

impl ClusterAccess {
    /// A client of its API server; nothing is asked of that yet.
    ///
    /// # Errors
    /// When there is no usable kubeconfig.
    pub async fn client(&self) -> anyhow::Result<Client> {
        let options =
            KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let config = match &self.kubeconfig {
            Some(file) => {
                let read = Kubeconfig::read_from(file);
                let read = read.with_context(|| format!("--kubeconfig {}", file.display()))?;
                Config::from_custom_kubeconfig(read, &options).await?
            }
            None if self.context.is_some() => Config::from_kubeconfig(&options).await?,
            None => Config::infer().await.context("no kubeconfig is found; give --kubeconfig")?,
        };
        Ok(Client::try_from(config)?)
    }
}
