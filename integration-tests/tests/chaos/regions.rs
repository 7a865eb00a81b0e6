//! Two regions and two accounts on one scheduler: three clusters, two of them of the same name,
//! each with its own actuator.
//!
//! Invariant: what an instance belongs to is read from its tags and from the region it is in.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, ensure};
use kube::Client;
use longshore_it::demo::audit;
use longshore_it::parts::{Process, poll};
use longshore_it::stage::agreement::{self, Books};
use longshore_it::stage::home::Home;
use longshore_it::stage::services::{Service, Surroundings};
use longshore_it::stage::world::ROOT;
use longshore_it::stage::{eyes, hands, ledger};
use longshore_lab::cluster::ClusterConfig;
use longshore_lab::instance::InstanceSource as _;
use longshore_lab::kubelet::{KubeletConfig, Kubelets};
use longshore_lab::region::{CLUSTER, CONTROLLER_KEY, Region, RegionConfig, RegionHandle};

use super::TERMINATE;
use crate::kill::crowd::{LIMIT, supply, workload};

/// Account, region and cluster of each site.
const SITES: [(&str, &str, &str); 3] = [
    ("111122223333", "us-east-1", CLUSTER),
    ("444455556666", "us-east-1", CLUSTER),
    ("111122223333", "eu-west-1", "other"),
];
/// Pods of the first site at first; each further site has one more, so that no two look alike.
const PODS: u32 = 3;
/// Pods that come to each site later.
const MORE: u32 = 2;
const ANY_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A cluster with its region. Fields are in the order in which they have to end.
struct Site {
    watcher: Option<Process>,
    actuator: Service,
    client: Client,
    region: Arc<RegionHandle>,
    surroundings: Surroundings,
    pods: u32,
    _kubelets: Kubelets,
    _home: Home,
}

impl Site {
    async fn start(index: u32, dir: &Path) -> Result<Self> {
        let (account, region_name, cluster) = SITES[usize::try_from(index)?];
        let dir = dir.join(format!("site-{index}"));
        std::fs::create_dir_all(&dir)?;
        let region = Arc::new(Region::start(config(account, region_name, cluster)?).await?);
        let seed = u64::from(index);
        let home =
            Home::simulated(ClusterConfig { seed, ..ClusterConfig::default() }, &dir).await?;
        let client = home.client.clone();
        hands::apply(&client, &hands::manifests(&Path::new(ROOT).join("deploy/crds"))?).await?;
        hands::established(&client).await?;
        let kubelet = KubeletConfig::new(cluster, region_name);
        let kubelets = Kubelets::start(client.clone(), Arc::clone(&region) as _, kubelet);
        let surroundings = Surroundings {
            dir,
            region_url: region.endpoint_url(),
            region: region_name.to_owned(),
            access_key: CONTROLLER_KEY.to_owned(),
            cluster: cluster.to_owned(),
            kubeconfig: home.kubeconfig.clone(),
            queue: CLUSTER.to_owned(),
            watcher_flags: vec!["--account-id".to_owned(), account.to_owned()],
            actuator_flags: Vec::new(),
            scheduler_flags: Vec::new(),
            etcd: Vec::new(),
            otlp: None,
            keys: None,
            ahead_s: BTreeMap::new(),
        };
        let actuator = surroundings.start_actuator("actuator", ANY_PORT).await?;
        let pods = PODS + index;
        hands::apply(&client, &supply()).await?;
        hands::apply(&client, &[workload(pods)]).await?;
        Ok(Self {
            watcher: None,
            actuator,
            client,
            region,
            surroundings,
            pods,
            _kubelets: kubelets,
            _home: home,
        })
    }

    async fn grow(&mut self) -> Result<()> {
        self.pods += MORE;
        hands::scale(&self.client, "default", "crowd", self.pods).await
    }

    /// Its pods run on as many instances of its own account, region and cluster, and none has
    /// ended.
    async fn served(&self) -> Result<()> {
        let pods = usize::try_from(self.pods)?;
        let sight = eyes::look(&self.client, "default", "app=crowd").await?;
        ensure!(sight.running == pods, "{} of {pods} pods run", sight.running);
        let instances = self.region.instances();
        ensure!(instances.len() == pods, "{} instances for {pods} pods", instances.len());
        let tag = format!("kubernetes.io/cluster/{}", self.surroundings.cluster);
        let foreign = instances.iter().find(|instance| !instance.tags.contains_key(&tag));
        ensure!(foreign.is_none(), "{foreign:?} is not of this cluster");
        let ended = self.region.calls_of(TERMINATE);
        ensure!(ended.is_empty(), "{ended:?}");
        let ledger = ledger::read(&self.actuator.url()).await?;
        let claims = eyes::claims(&self.client).await?;
        let nodes = eyes::list(&self.client, "", "v1", "Node").await?;
        Books { instances: &instances, ledger: &ledger, claims: &claims, nodes: &nodes }.agree()?;
        let claimed = agreement::provider_ids(&claims).collect();
        let books = audit::books(&instances, &claimed);
        ensure!(books.duplicates == 0 && books.leaks == 0, "{books:?}");
        Ok(())
    }
}

/// A region of this account in which EKS knows the cluster.
fn config(account: &str, region: &str, cluster: &str) -> Result<RegionConfig> {
    let mut config = RegionConfig::simple(region)?;
    config.account_id = account.to_owned();
    for known in &mut config.clusters {
        known.name = cluster.to_owned();
        for role in &mut known.node_roles {
            *role = role.replace(SITES[0].0, account);
        }
    }
    Ok(config)
}

#[tokio::test(flavor = "multi_thread")]
async fn clusters_of_two_accounts_and_two_regions_share_a_scheduler() -> Result<()> {
    let dir = crate::kept_dir("chaos-regions-")?;
    let mut sites = Vec::new();
    for index in 0..u32::try_from(SITES.len())? {
        sites.push(Box::pin(Site::start(index, &dir)).await?);
    }
    let urls: Vec<String> = sites.iter().map(|site| site.actuator.url()).collect();
    let surroundings = Surroundings { dir: dir.clone(), ..sites[0].surroundings.clone() };
    let mut scheduler = surroundings.start_scheduler(ANY_PORT, &urls).await?;
    for site in &mut sites {
        site.watcher = Some(site.surroundings.start_watcher("watcher", &scheduler.url())?);
    }
    all_served(&sites, &dir).await?;
    for site in &mut sites {
        site.grow().await?;
    }
    // All of them come back to a scheduler that knows none of them, in any order.
    scheduler.process.kill()?;
    let address = scheduler.address;
    let _scheduler = surroundings.start_scheduler_as("scheduler-again", address, &urls).await?;
    all_served(&sites, &dir).await
}

async fn all_served(sites: &[Site], dir: &Path) -> Result<()> {
    for (site, of) in sites.iter().zip(SITES) {
        let served = poll::until(&format!("{of:?} is served"), LIMIT, || site.served()).await;
        served.map_err(|error| error.context(format!("logs in {}", dir.display())))?;
    }
    Ok(())
}
