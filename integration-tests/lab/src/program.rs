//! Region, cluster, machines and control port put together as arguments say: what `longshore-lab`
//! runs.
//!
//! Invariant: whatever runs belongs to the value that [`Lab::start`] returns, and ends with it.

mod args;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde::Serialize;

pub use args::{LabArgs, Output};

use crate::cluster::{Cluster, ClusterConfig, ClusterHandle};
use crate::control::{Control, ControlHandle};
use crate::kubelet::{KubeletConfig, Kubelets};
use crate::region::{CLUSTER, CONTROLLER_KEY, Region, RegionConfig, RegionHandle, Timing};

/// Tag by which controllers find subnets and security groups.
const DISCOVERY: &str = "karpenter.sh/discovery";

/// A lab that runs. Fields are in the order in which they have to end.
#[derive(Debug)]
pub struct Lab {
    control: ControlHandle,
    _kubelets: Option<Arc<Kubelets>>,
    cluster: Option<ClusterHandle>,
    /// The region.
    pub region: RegionHandle,
    found: Found,
}

/// Where everything is, and how a controller finds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Found {
    /// URL of every AWS service.
    pub endpoint_url: String,
    /// URL of the control port.
    pub control_url: String,
    /// Name of the region.
    pub region: String,
    /// Key id of the role that may do everything.
    pub access_key_id: &'static str,
    /// Any secret will do: signatures are not verified.
    pub secret_access_key: &'static str,
    /// Name of the cluster and of the interruption queue.
    pub cluster_name: String,
    /// Kubeconfig of the cluster that machines join, where they join one.
    pub kubeconfig: Option<String>,
}

impl Lab {
    /// Starts what the arguments say.
    ///
    /// # Errors
    /// When an address is not to be had, the region is unknown, or the cluster cannot be reached.
    pub async fn start(args: &LabArgs) -> Result<Self> {
        let region = Region::start_at(region_config(args)?, args.listen).await?;
        let cluster = match &args.cluster {
            Some(file) => Some(simulated(args, file).await?),
            None => None,
        };
        let kubeconfig = args.cluster.as_deref().or(args.kubeconfig.as_deref());
        let kubelets = match kubeconfig {
            Some(file) => Some(Arc::new(joining(args, file, (&region, cluster.as_ref())).await?)),
            None => None,
        };
        let control = Control::new(region.clone(), kubelets.clone());
        let control = control.listen(args.control).await;
        let control = control.with_context(|| format!("cannot listen on {}", args.control))?;
        let found = Found {
            endpoint_url: region.endpoint_url(),
            control_url: control.url(),
            region: args.region.clone(),
            access_key_id: CONTROLLER_KEY,
            secret_access_key: "any",
            cluster_name: args.cluster_name.clone(),
            kubeconfig: kubeconfig.map(|file| file.display().to_string()),
        };
        Ok(Self { control, _kubelets: kubelets, cluster, region, found })
    }

    /// Where everything is.
    #[must_use]
    pub const fn found(&self) -> &Found {
        &self.found
    }

    /// Ends it, the cluster's requests first.
    pub async fn stop(self) {
        drop((self.control, self._kubelets));
        if let Some(cluster) = self.cluster {
            cluster.stop().await;
        }
    }
}

impl Found {
    /// As it is printed.
    ///
    /// # Errors
    /// When it cannot be written as JSON, which is a bug.
    pub fn printed(&self, output: Output) -> serde_json::Result<String> {
        match output {
            Output::Json => Ok(serde_json::to_string(self)? + "\n"),
            Output::Text => Ok(self.exports()),
        }
    }

    fn exports(&self) -> String {
        let mut lines = vec![
            ("AWS_ENDPOINT_URL", self.endpoint_url.as_str()),
            ("AWS_REGION", &self.region),
            ("AWS_ACCESS_KEY_ID", self.access_key_id),
            ("AWS_SECRET_ACCESS_KEY", self.secret_access_key),
            ("CLUSTER_NAME", &self.cluster_name),
            ("INTERRUPTION_QUEUE", &self.cluster_name),
            ("LAB_CONTROL_URL", &self.control_url),
        ];
        lines.extend(self.kubeconfig.as_deref().map(|file| ("KUBECONFIG", file)));
        let lines =
            lines.into_iter().map(|(name, value)| format!("export {name}={}\n", quoted(value)));
        lines.collect()
    }
}

/// For a shell: as it is where that is safe.
fn quoted(value: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/.:_-".contains(letter);
    match value.chars().all(is_plain) {
        true => value.to_owned(),
        false => format!("'{}'", value.replace('\'', r"'\''")),
    }
}

fn region_config(args: &LabArgs) -> Result<RegionConfig> {
    let mut config = RegionConfig::simple(&args.region)?;
    config.seed = args.seed;
    if args.realistic {
        config.timing = Timing::realistic();
    }
    if let Some(boot) = args.boot {
        // Bounded where it was read.
        let boot_ms = u32::try_from(boot.as_millis()).unwrap_or(u32::MAX);
        (config.timing.boot_min_ms, config.timing.boot_max_ms) = (boot_ms, boot_ms);
    }
    rename(&mut config, &args.cluster_name);
    Ok(config)
}

/// Gives the cluster another name wherever it has one.
fn rename(config: &mut RegionConfig, name: &str) {
    let clusters = config.clusters.iter_mut().map(|cluster| &mut cluster.name);
    let queues = config.queues.iter_mut().map(|queue| &mut queue.name);
    let renamed = clusters.chain(queues).filter(|it| *it == CLUSTER);
    renamed.for_each(|it| name.clone_into(it));
    let subnets = config.subnets.iter_mut().map(|subnet| &mut subnet.tags);
    let groups = config.security_groups.iter_mut().map(|group| &mut group.tags);
    let tags = subnets.chain(groups).filter_map(|tags| tags.get_mut(DISCOVERY));
    tags.for_each(|it| name.clone_into(it));
}

/// Starts a cluster and writes its kubeconfig.
async fn simulated(args: &LabArgs, file: &Path) -> Result<ClusterHandle> {
    let config = ClusterConfig {
        name: args.cluster_name.clone(),
        seed: args.seed,
        ..ClusterConfig::default()
    };
    let cluster = Cluster::start(config).await?;
    let written = std::fs::write(file, cluster.kubeconfig_text());
    written.with_context(|| format!("cannot write {}", file.display()))?;
    Ok(cluster)
}

fn kubelet_config(args: &LabArgs) -> KubeletConfig {
    let mut config = KubeletConfig::new(&args.cluster_name, &args.region);
    if args.realistic {
        config = config.realistic();
    }
    if let Some(join) = args.join {
        (config.register_delay, config.ready_delay) = (join, Duration::ZERO);
    }
    config
}

/// Lets machines join the cluster of a kubeconfig.
async fn joining(
    args: &LabArgs,
    file: &Path,
    (region, simulated): (&RegionHandle, Option<&ClusterHandle>),
) -> Result<Kubelets> {
    let client = client(file).await?;
    // A cluster that cannot be reached is said before the first launch, not by nodes that never
    // come.
    let version = client.apiserver_version().await;
    let version =
        version.with_context(|| format!("the cluster of {} does not answer", file.display()))?;
    tracing::info!(version = version.git_version, "machines join the cluster");
    let mut config = kubelet_config(args);
    if let Some(cluster) = simulated {
        config.clock = cluster.clock();
    }
    Ok(Kubelets::start(client, Arc::new(region.clone()), config))
}

async fn client(file: &Path) -> Result<kube::Client> {
    let kubeconfig = Kubeconfig::read_from(file);
    let kubeconfig = kubeconfig.with_context(|| format!("cannot read {}", file.display()))?;
    let options = KubeConfigOptions::default();
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await?;
    // Kubelets repeat what is refused themselves.
    config.default_retry = false;
    kube::Client::try_from(config).with_context(|| format!("{} makes no client", file.display()))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    fn args(more: &[&str]) -> LabArgs {
        LabArgs::parse_from(["longshore-lab"].iter().chain(more))
    }

    fn delays(args: &LabArgs) -> (u32, u32, [Duration; 2]) {
        let (timing, kubelet) = (region_config(args).unwrap().timing, kubelet_config(args));
        (timing.boot_min_ms, timing.boot_max_ms, [kubelet.register_delay, kubelet.ready_delay])
    }

    #[test]
    fn machines_take_as_long_as_is_said() {
        let said = delays(&args(&["--boot", "8", "--join", "2.5", "--realistic"]));
        assert_eq!(said, (8_000, 8_000, [Duration::from_millis(2_500), Duration::ZERO]));
        let real = delays(&args(&["--realistic"]));
        assert_eq!(real, (18_000, 35_000, [25, 10].map(Duration::from_secs)));
        assert_eq!(delays(&args(&[])), (20, 60, [Duration::ZERO; 2]));
    }

    #[test]
    fn a_cluster_has_its_name_everywhere() {
        let config = region_config(&args(&["--cluster-name", "prod"])).unwrap();
        assert_eq!((&*config.clusters[0].name, &*config.queues[0].name), ("prod", "prod"));
        let subnets = config.subnets.iter().map(|it| &it.tags[DISCOVERY]);
        assert_eq!(subnets.collect::<Vec<_>>(), ["prod"; 3]);
        assert_eq!(config.security_groups[0].tags[DISCOVERY], "prod");
    }

    #[test]
    fn values_are_quoted_for_a_shell_where_they_have_to_be() {
        assert_eq!(quoted("http://127.0.0.1:1"), "http://127.0.0.1:1");
        assert_eq!(quoted("a b'c$d"), r"'a b'\''c$d'");
    }
}
