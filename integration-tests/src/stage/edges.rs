//! The roads between the parties of a fleet, each through a proxy that a test may disturb.
//!
//! Invariant: a service knows of the other parties nothing but the proxies in front of them.
//! Kubelets, users and tests have roads of their own.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use kube::config::Kubeconfig;

use super::services::Service;
use crate::parts::{CutProxy, EtcdCluster, Faults};

/// A road between two parties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// From the watchers to the schedulers, which stand behind one address.
    WatcherScheduler,
    /// From the schedulers to all actuators.
    SchedulerActuator,
    /// From one actuator to all members of etcd.
    ActuatorEtcd(usize),
    /// From the watchers to the API server.
    WatcherApiServer,
    /// From the actuators to EC2.
    ActuatorEc2,
}

/// The proxies of all roads.
#[derive(Default)]
pub struct Edges {
    scheduler: Vec<CutProxy>,
    actuators: Vec<CutProxy>,
    etcd: Vec<Vec<CutProxy>>,
    api_server: Vec<CutProxy>,
    ec2: Vec<CutProxy>,
}

impl Edges {
    /// Lets nothing pass on this road, in both directions, while its connections stay open.
    pub fn stall(&self, edge: Edge) {
        self.set(edge, &Faults::stalled());
    }

    /// Closes this road: what is open ends, and nothing new is let in.
    pub fn close(&self, edge: Edge) {
        self.set(edge, &Faults { refuse: true, ..Faults::default() });
        self.of(edge).iter().for_each(CutProxy::cut);
    }

    /// Opens this road again. What was stalled arrives late.
    pub fn heal(&self, edge: Edge) {
        self.set(edge, &Faults::default());
    }

    /// How many connections were made on this road so far, refused ones included.
    #[must_use]
    pub fn connections(&self, edge: Edge) -> usize {
        self.of(edge).iter().map(CutProxy::connections_total).sum()
    }

    fn set(&self, edge: Edge, faults: &Faults) {
        self.of(edge).iter().for_each(|proxy| proxy.set(faults.clone()));
    }

    fn of(&self, edge: Edge) -> &[CutProxy] {
        match edge {
            Edge::WatcherScheduler => &self.scheduler,
            Edge::SchedulerActuator => &self.actuators,
            Edge::ActuatorEtcd(actuator) => self.etcd.get(actuator).map_or(&[], Vec::as_slice),
            Edge::WatcherApiServer => &self.api_server,
            Edge::ActuatorEc2 => &self.ec2,
        }
    }
}

/// Putting proxies in place, in the order in which a fleet starts.
impl Edges {
    /// The way to EC2, as a URL.
    pub(super) async fn towards_ec2(&mut self, url: &str) -> Result<String> {
        Ok(url_of(add(&mut self.ec2, address_of(url)?).await?))
    }

    /// The way of one more actuator to etcd, as endpoints.
    pub(super) async fn towards_etcd(&mut self, etcd: &EtcdCluster) -> Result<Vec<String>> {
        let (mut proxies, mut endpoints) = (Vec::new(), Vec::new());
        for member in etcd.addresses() {
            endpoints.push(url_of(add(&mut proxies, member).await?));
        }
        self.etcd.push(proxies);
        Ok(endpoints)
    }

    /// The way to one more actuator, as a URL.
    pub(super) async fn towards_actuator(&mut self, actuator: &Service) -> Result<String> {
        Ok(url_of(add(&mut self.actuators, actuator.address).await?))
    }

    /// The way to all schedulers, as one URL.
    pub(super) async fn towards_schedulers(&mut self, schedulers: &[Service]) -> Result<String> {
        let addresses: Vec<SocketAddr> = schedulers.iter().map(|service| service.address).collect();
        let proxy = CutProxy::before(&addresses).await?;
        let url = url_of(proxy.address());
        self.scheduler.push(proxy);
        Ok(url)
    }

    /// The way to the API server: a copy in `dir` of a kubeconfig that leads straight to it.
    pub(super) async fn towards_api_server(
        &mut self,
        straight: &Path,
        dir: &Path,
    ) -> Result<PathBuf> {
        let known = Kubeconfig::read_from(straight)?.clusters.into_iter();
        let server = known.filter_map(|named| named.cluster?.server).next();
        let address = address_of(&server.context("a kubeconfig without a server")?)?;
        let proxy = add(&mut self.api_server, address).await?;
        let text = std::fs::read_to_string(straight)?;
        let file = dir.join("kubeconfig-through-a-proxy");
        std::fs::write(&file, text.replace(&address.to_string(), &proxy.to_string()))?;
        Ok(file)
    }
}

async fn add(proxies: &mut Vec<CutProxy>, server: SocketAddr) -> Result<SocketAddr> {
    let proxy = CutProxy::start(server).await?;
    let address = proxy.address();
    proxies.push(proxy);
    Ok(address)
}

fn url_of(address: SocketAddr) -> String {
    format!("http://{address}")
}

/// The address in a URL of the loopback interface.
fn address_of(url: &str) -> Result<SocketAddr> {
    let uri: http::Uri = url.parse()?;
    let authority = uri.authority().with_context(|| format!("{url} names no host"))?;
    authority.as_str().parse().with_context(|| format!("{url} is not on loopback"))
}
