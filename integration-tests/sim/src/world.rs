//! Everything that runs: regions, clusters, and the three services above them.
//!
//! Invariant: made of the seed alone. One thread, one order of events; whatever acts on the world
//! does so from a task of its own, at simulated times.

mod services;
mod standalone;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;

use crate::clock::WallClock;
use crate::cloud;
use crate::cluster::Cluster;
use crate::etcd::Etcd;
use crate::journal::Journal;
use crate::net::Net;
use crate::process::Machine;
use crate::random::Random;
use crate::region::Region;
use crate::site::Site;
use crate::verdict::Judge;

pub use services::{Kind, Service};

/// Most time that a chunk of bytes takes between two processes.
const LATENCY_MAX: Duration = Duration::from_millis(4);
/// How long a watcher may stay at one scheduler: half an hour, ten minutes of spread, and the way.
const SESSION_AGE_MAX: Duration = Duration::from_secs(45 * 60);
/// Address that stands for both schedulers.
const SCHEDULERS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 9, 9, 9)), 7400);

/// How large a world is.
#[derive(Clone, Debug)]
pub struct Size {
    /// Clusters, each with its account and region.
    pub clusters: Vec<(&'static str, &'static str, &'static str)>,
    /// Schedulers.
    pub schedulers: u8,
    /// All three services of a cluster are one process, and there is no etcd.
    pub standalone: bool,
}

/// The clusters that there may be: name, account and region. Two share an account and a region, and
/// two have one name.
const CLUSTERS: [(&str, &str, &str); 3] = [
    ("prod", "111122223333", "us-east-1"),
    ("stage", "111122223333", "us-east-1"),
    ("prod", "444455556666", "us-east-1"),
];

/// Account of the second cluster where each is alone in its own: two processes that share nothing
/// would take each other's instances for nobody's.
const ANOTHER_ACCOUNT: &str = "777788889999";

impl Size {
    /// This many clusters, three at most, and two schedulers; or none, where each cluster has a
    /// process that does all.
    #[must_use]
    pub fn of(clusters: u8, standalone: bool) -> Self {
        let mut all = CLUSTERS;
        if standalone {
            all[1].1 = ANOTHER_ACCOUNT;
        }
        let clusters = all.into_iter().take(usize::from(clusters)).collect();
        Self { clusters, schedulers: if standalone { 0 } else { 2 }, standalone }
    }
}

/// Everything that runs.
pub struct World {
    /// True time.
    pub clock: WallClock,
    /// The network.
    pub net: Net,
    /// Accounts and regions.
    pub sites: Vec<Site>,
    /// Clusters.
    pub clusters: Vec<Arc<Cluster>>,
    /// The services.
    pub services: Vec<Service>,
    /// All three of a cluster are one process, and there is no etcd.
    pub standalone: bool,
    /// Services that have ended by themselves, and the step at which they begin again.
    pub away: BTreeMap<usize, u64>,
    /// What has happened.
    pub journal: Journal,
    /// What must never happen.
    pub judge: Judge,
}

impl World {
    /// Builds a world and starts everything in it.
    ///
    /// # Errors
    /// When a part cannot be made, which is a bug.
    pub async fn start(seed: u64, size: &Size) -> Result<Self> {
        let clock = WallClock::begin();
        let journal = Journal::new(clock.clone());
        let net = Net::new(Random::stream(seed, "network"), LATENCY_MAX);
        let judge = Judge::new(journal.clone());
        let (mut sites, mut clusters) = (Vec::<(String, String, Site)>::new(), Vec::new());
        for (name, account, region) in &size.clusters {
            let known = sites.iter().position(|(a, r, _)| a == account && r == region);
            let index = known.unwrap_or(sites.len());
            if known.is_none() {
                let site = site(seed, index, (account, region), &clock)?;
                crate::process::start(site.region.clone().keep_time());
                if !size.standalone {
                    site.etcd.serve(&net);
                }
                sites.push(((*account).to_owned(), (*region).to_owned(), site));
            }
            let number = clusters.len();
            let label = format!("{name}-{number}");
            let made = Cluster::start(seed, number, (name, &label), (index, &sites[index].2)).await;
            clusters.push(Arc::new(made?));
        }
        let sites = sites.into_iter().map(|(_, _, site)| site).collect();
        let mut world = Self {
            clock,
            net,
            sites,
            clusters,
            services: Vec::new(),
            standalone: size.standalone,
            away: BTreeMap::new(),
            journal,
            judge,
        };
        let seen = world.clusters.iter().map(|cluster| cluster.seen()).collect();
        world.judge.watch(&world.sites, seen, size.standalone);
        world.add_services(seed, size);
        for index in 0..world.services.len() {
            world.boot(index);
        }
        Ok(world)
    }

    /// Indices of some services.
    pub fn indices(&self, wanted: impl Fn(&Service) -> bool) -> Vec<usize> {
        let services = self.services.iter().enumerate();
        services.filter(|(_, service)| wanted(service)).map(|(index, _)| index).collect()
    }

    /// Watchers whose connection to a scheduler is older than a session may be.
    #[must_use]
    pub fn aged_sessions(&self) -> Vec<String> {
        let named = |host: IpAddr, wanted: fn(&Kind) -> bool| {
            let of_host =
                |service: &&Service| service.machine.host == host && wanted(&service.kind);
            self.services.iter().find(of_host).map(|service| service.machine.name.clone())
        };
        let old = self.net.older_than(SESSION_AGE_MAX).into_iter();
        let old = old.filter_map(|(from, to, age)| {
            let watcher = named(from, |kind| matches!(kind, Kind::Watcher { .. }))?;
            let scheduler = named(to, |kind| *kind == Kind::Scheduler)?;
            Some(format!("{watcher} is at {scheduler} for {} s", age.as_secs()))
        });
        old.collect()
    }

    fn add_services(&mut self, seed: u64, size: &Size) {
        let machines = if size.standalone { self.alone() } else { self.apart(size) };
        for (number, (name, kind)) in (1_u8..).zip(machines) {
            let machine = Machine::new(&name, number, seed, &self.clock, &self.net);
            let random = Arc::new(Mutex::new(Random::stream(seed, &name)));
            self.services.push(Service { machine, kind, random, process: None });
        }
        let schedulers = self.services.iter().filter(|service| service.kind == Kind::Scheduler);
        let behind = schedulers.map(|service| service.machine.address()).collect();
        self.net.serve(SCHEDULERS, behind);
    }

    /// Names and kinds of services that run apart.
    fn apart(&self, size: &Size) -> Vec<(String, Kind)> {
        let mut machines = Vec::new();
        for site in 0..self.sites.len() {
            // Three at one site and two at the others: what leads, and who may take over.
            for copy in if site == 0 { "abc" } else { "ab" }.chars() {
                machines.push((format!("actuator-{site}{copy}"), Kind::Actuator { site }));
            }
        }
        for copy in 0..size.schedulers {
            machines.push((format!("scheduler-{copy}"), Kind::Scheduler));
        }
        machines.extend(self.of_clusters("watcher", |cluster| Kind::Watcher { cluster }));
        machines
    }

    /// Names and kinds of processes that do all for their cluster.
    fn alone(&self) -> Vec<(String, Kind)> {
        self.of_clusters("up", |cluster| Kind::Standalone { cluster })
    }

    /// One of a kind for each cluster, and another for the first, which stands by.
    fn of_clusters(&self, name: &str, kind: impl Fn(usize) -> Kind) -> Vec<(String, Kind)> {
        let mut machines = Vec::new();
        for (cluster, known) in self.clusters.iter().enumerate() {
            machines.push((format!("{name}-{}", known.label), kind(cluster)));
            if cluster == 0 {
                machines.push((format!("{name}-{}-standby", known.label), kind(cluster)));
            }
        }
        machines
    }
}

fn site(seed: u64, index: usize, (account, name): (&str, &str), clock: &WallClock) -> Result<Site> {
    let random = Random::stream(seed, &format!("region/{account}/{name}"));
    let region = Region::new(name, account, clock.another(), random)?;
    let last = u8::try_from(index).unwrap_or(u8::MAX);
    let address = IpAddr::V4(Ipv4Addr::new(10, 2, last, 1));
    let stream = Random::stream(seed, &format!("etcd/{account}/{name}"));
    let etcd = Etcd::new(index, clock.another(), stream);
    Ok(Site { region, weather: cloud::Weather::default(), address, etcd })
}
