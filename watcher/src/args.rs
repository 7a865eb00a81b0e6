//! Arguments, as strings, and what they come to.
//!
//! Invariant: what is wrong with an argument is said before anything starts.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Parser;
use kube::config::{KubeConfigOptions, Kubeconfig};
use longshore_runtime::entropy::Entropy;
use longshore_runtime::process::ProcessArgs;

/// Observes one cluster and carries out what a scheduler plans for it.
#[derive(Clone, Debug, Parser)]
#[command(name = "longshore-watcher", version)]
pub struct Args {
    /// Name of the cluster, unique among all that the scheduler serves; tags and user data spell
    /// it alike.
    #[arg(long, env = "LONGSHORE_CLUSTER_NAME")]
    pub cluster_name: String,
    /// Address of the scheduler.
    #[arg(long, env = "LONGSHORE_SCHEDULER_ENDPOINT", value_name = "URL")]
    pub scheduler_endpoint: String,
    /// The cluster, and the place in it.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// Region of the cluster; taken from its nodes when absent.
    #[arg(long, env = "LONGSHORE_REGION")]
    pub region: Option<String>,
    /// Where metrics and health are served.
    #[arg(long, env = "LONGSHORE_METRICS_LISTEN", value_name = "ADDRESS")]
    pub metrics_listen: Option<SocketAddr>,
    /// What every process is told.
    #[command(flatten)]
    pub process: ProcessArgs,
}

/// A cluster, and the place of a process in it: what the watcher alone and `longshore up` ask
/// alike.
#[derive(Clone, Debug, clap::Args)]
pub struct ClusterArgs {
    /// API server as nodes reach it; asked of EKS when absent.
    #[arg(long, env = "LONGSHORE_CLUSTER_ENDPOINT", value_name = "URL")]
    pub cluster_endpoint: Option<String>,
    /// Queue with interruption notices; without one, interruptions are not handled.
    #[arg(long, env = "LONGSHORE_INTERRUPTION_QUEUE", value_name = "NAME")]
    pub interruption_queue: Option<String>,
    /// Instance profile of legacy node templates that name none.
    #[arg(long, env = "LONGSHORE_DEFAULT_INSTANCE_PROFILE", value_name = "NAME")]
    pub default_instance_profile: Option<String>,
    /// How planned pods are brought to their new nodes. `pin` adds a toleration to each that lets
    /// it, and nobody else, onto its node until all are there; it needs the right to patch pods.
    /// `nominate` only writes status.nominatedNodeName, which kube-scheduler may clear.
    #[arg(long, env = "LONGSHORE_PLACEMENT", value_enum, default_value_t)]
    pub placement: Placement,
    /// Whether a Deployment with one pod that is annotated `longshore.dev/surge: "true"` is asked
    /// for its next pod before the node of this one goes; needs the right to patch Deployments.
    #[arg(long, env = "LONGSHORE_SURGE")]
    pub surge: bool,
    /// AWS account that the cluster's nodes are launched in; needed where actuators of several
    /// accounts serve its region.
    #[arg(long, env = "LONGSHORE_ACCOUNT_ID", value_name = "ID")]
    pub account_id: Option<String>,
    /// Kubeconfig file; without one, the pod's service account, then the user's own kubeconfig.
    #[arg(long, env = "LONGSHORE_KUBECONFIG", value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Namespace of the Lease.
    #[arg(long, env = "LONGSHORE_NAMESPACE", default_value = "kube-system")]
    pub namespace: String,
    /// Name of this process among its copies, usually the pod's.
    #[arg(long, env = "LONGSHORE_IDENTITY", value_name = "NAME")]
    pub identity: Option<String>,
}

/// How planned pods are brought to their new nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Placement {
    /// Through a toleration of their own node's taint.
    #[default]
    Pin,
    /// Through a nomination.
    Nominate,
}

/// What a watcher needs to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Name of the cluster.
    pub cluster_name: String,
    /// Address of the scheduler.
    pub scheduler_endpoint: String,
    /// API server as nodes reach it; empty means that EKS is asked.
    pub cluster_endpoint: String,
    /// Interruption queue; empty means none.
    pub interruption_queue: String,
    /// Instance profile of legacy node templates that name none; empty means none.
    pub default_instance_profile: String,
    /// How planned pods are brought to their new nodes.
    pub placement: Placement,
    /// Whether Deployments may be asked for their next pod before one goes.
    pub surge: bool,
    /// Region; empty means that of the nodes.
    pub region: String,
    /// Account of the nodes; empty when unknown.
    pub account_id: String,
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name among replicas.
    pub identity: String,
}

impl Config {
    /// A cluster and its scheduler; everything else at its default.
    #[must_use]
    pub fn new(cluster_name: &str, scheduler_endpoint: &str) -> Self {
        Self {
            cluster_name: cluster_name.to_owned(),
            scheduler_endpoint: scheduler_endpoint.to_owned(),
            cluster_endpoint: String::new(),
            interruption_queue: String::new(),
            default_instance_profile: String::new(),
            placement: Placement::default(),
            surge: false,
            region: String::new(),
            account_id: String::new(),
            namespace: "kube-system".to_owned(),
            identity: "watcher".to_owned(),
        }
    }
}

impl Args {
    /// The arguments, checked.
    ///
    /// # Errors
    /// When one makes no sense; the message says what would.
    pub fn config(&self) -> anyhow::Result<Config> {
        let name = &self.cluster_name;
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        anyhow::ensure!(
            !name.is_empty() && name.len() <= 100 && name.chars().all(plain),
            "--cluster-name {name:?} is not a cluster's name: letters, digits, - and _ only"
        );
        self.process.tls.check_endpoint("--scheduler-endpoint", &self.scheduler_endpoint)?;
        let account = self.cluster.account_id.as_deref().unwrap_or_default();
        let digits = account.len() == 12 && account.chars().all(|c| c.is_ascii_digit());
        anyhow::ensure!(
            account.is_empty() || digits,
            "--account-id {account:?} is not an account: it has 12 digits"
        );
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let mut config = Config::new(name, &self.scheduler_endpoint);
        config.cluster_endpoint = text(&self.cluster.cluster_endpoint);
        config.interruption_queue = text(&self.cluster.interruption_queue);
        config.default_instance_profile = text(&self.cluster.default_instance_profile);
        config.placement = self.cluster.placement;
        config.surge = self.cluster.surge;
        config.region = text(&self.region);
        config.account_id = account.to_owned();
        config.namespace = self.cluster.namespace.clone();
        let identity = self.cluster.identity.clone();
        config.identity = identity.unwrap_or_else(own_identity);
        Ok(config)
    }

    /// A client of the cluster's API server.
    ///
    /// # Errors
    /// When there is neither a service account nor a usable kubeconfig.
    pub async fn kube_client(&self) -> anyhow::Result<kube::Client> {
        let mut config = match &self.cluster.kubeconfig {
            Some(file) => {
                let kubeconfig = Kubeconfig::read_from(file)
                    .with_context(|| format!("kubeconfig {}", file.display()))?;
                let options = KubeConfigOptions::default();
                kube::Config::from_custom_kubeconfig(kubeconfig, &options).await?
            }
            None => kube::Config::infer().await.context(
                "no access to a cluster: neither a pod's service account nor a kubeconfig; give \
                 --kubeconfig",
            )?,
        };
        // An eviction that a budget refuses is an answer (429), not a failure: kube would ask again
        // a dozen times within seconds, and say nothing. Whoever calls has pauses of its own.
        config.default_retry = false;
        Ok(kube::Client::try_from(config)?)
    }
}

/// A name that no other process has. The process id alone is 1 in every container.
fn own_identity() -> String {
    let suffix: u32 = Entropy::system().range(0..=u32::MAX);
    format!("watcher-{}-{suffix:08x}", std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(more: &[&str]) -> anyhow::Result<Config> {
        let scheduler = "http://127.0.0.1:1";
        let given = ["watcher", "--cluster-name", "c", "--scheduler-endpoint", scheduler];
        Args::try_parse_from(given.iter().chain(more))?.config()
    }

    #[test]
    fn arguments_are_checked() {
        let config_given = config(&["--region", "us-east-1", "--identity", "w-0"]).unwrap();
        assert_eq!(config_given.region, "us-east-1");
        assert_eq!(config_given.identity, "w-0");
        assert_eq!(config(&[]).unwrap().region, "");
        assert_eq!(config(&["--account-id", "012345678901"]).unwrap().account_id, "012345678901");
        for wrong in ["12345678901", "12345678901x", "１２３４"] {
            let error = config(&["--account-id", wrong]).unwrap_err();
            assert!(error.to_string().contains("12 digits"), "{error}");
        }
        let bad = ["watcher", "--cluster-name", "a/b", "--scheduler-endpoint", "http://s:1"];
        let error = Args::try_parse_from(bad).unwrap().config().unwrap_err();
        assert!(error.to_string().contains("--cluster-name"));
        for scheduler in ["s", "http://s:1", "https://s:1"] {
            let bad = ["watcher", "--cluster-name", "a", "--scheduler-endpoint", scheduler];
            let error = Args::try_parse_from(bad).unwrap().config().unwrap_err();
            assert!(format!("{error:#}").contains("--scheduler-endpoint"), "{error:#}");
        }
    }
}
