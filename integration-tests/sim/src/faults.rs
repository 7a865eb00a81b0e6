//! What goes wrong, when, for how long: drawn from the seed before the run begins.
//!
//! Invariant: a pure function of seed, size and time; each fault has a number, so that a run can be
//! repeated without some of them.

mod act;
mod handover;

pub use act::Begun;

use serde::Serialize;

use crate::etcd::MEMBERS;
use crate::random::Random;
use crate::world::{Kind, Service, World};

/// A fault begins at least so long after the one before, in milliseconds.
const GAP_MS: (u64, u64) = (15_000, 120_000);
/// The same when only faults of certain names are drawn.
const CHOSEN_GAP_MS: (u64, u64) = (1_000, 30_000);
/// How long a fault lasts, in milliseconds.
const LENGTH_MS: (u64, u64) = (3_000, 120_000);
/// No fault begins before the world has come up, in milliseconds.
const FIRST_MS: u64 = 60_000;
/// The same when only faults of certain names are drawn.
const CHOSEN_FIRST_MS: u64 = 0;
/// How long darkness lasts: longer than it takes to believe that an instance has vanished.
const DARK_MS: u64 = 200_000;
/// How often a fault of the names wanted is looked for.
const TRIES: usize = 2_000;
/// Percent of calls that a troubled API refuses or loses.
const TROUBLED_PERCENT: u64 = 30;

/// Something that goes wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// With a service.
    Process {
        /// Index of the service.
        service: usize,
        /// What.
        fault: ProcessFault,
    },
    /// Between two services.
    Edge {
        /// Index of the one.
        from: usize,
        /// Index of the other.
        to: usize,
        /// What.
        fault: EdgeFault,
    },
    /// With the cloud.
    Cloud {
        /// Index of the site.
        site: usize,
        /// What.
        fault: CloudFault,
    },
    /// With a cluster.
    Cluster {
        /// Index of the cluster.
        cluster: usize,
        /// What.
        fault: ClusterFault,
    },
    /// With etcd.
    Etcd {
        /// Index of the site.
        site: usize,
        /// What.
        fault: EtcdFault,
    },
}

/// What goes wrong with a service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessFault {
    /// It is killed and starts again.
    Kill,
    /// It is stopped as by SIGSTOP.
    Stop,
    /// It reaches no API server and no cloud.
    Cutoff,
    /// It reaches no member of etcd.
    EtcdUnreachable,
    /// Its clock is this far ahead, in milliseconds; behind when negative.
    Skew(i64),
}

/// What goes wrong between two services.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EdgeFault {
    /// Nothing passes from the one to the other.
    OneWay,
    /// Nothing passes at all.
    Partition,
    /// Connections are cut, and may be made again at once.
    Cut,
}

/// What goes wrong with the cloud.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CloudFault {
    /// Calls are throttled.
    Throttled,
    /// Calls answer InternalError.
    CloudErrors,
    /// Calls are refused as unauthorized.
    Denied,
    /// Replies are lost after they took effect.
    CloudRepliesLost,
    /// Listings leave instances out.
    ShortListings,
    /// Listings are empty.
    EmptyListings,
    /// This percentage of the offerings has no capacity.
    SoldOut(u64),
    /// This percentage of the spot instances is taken back.
    SpotStorm(u64),
    /// Somebody ends instances in the console.
    KilledByHand,
    /// Somebody takes the tags off an instance.
    TagsStripped,
    /// Launch templates vanish, and launches do not find new ones for as long.
    TemplatesDeleted,
    /// New instances never join.
    Duds,
    /// EC2 denies this percentage of the instances, and their nodes do not report.
    Dark(u64),
    /// Nobody may end this percentage of the instances from now on; users delete claims.
    Protected(u64),
    /// Nothing is left of Longshore but the claims and instances: as if Karpenter had made them.
    KarpenterBefore,
}

/// What goes wrong with a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClusterFault {
    /// The API server is overloaded, fails and conflicts.
    ApiErrors,
    /// Its replies are lost after they took effect.
    ApiRepliesLost,
    /// It does not serve the kind of this plural.
    KindAbsent(String),
    /// The history of all objects is compacted: watches list anew.
    Compacted,
    /// A claim cannot be decoded.
    Undecodable,
    /// A node is not ready for a while.
    NodeFlaps,
    /// Users take a workload away, and want it again at the moment at which its nodes go.
    Frenzy(u64),
}

/// What goes wrong with the etcd of a site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EtcdFault {
    /// It has no leader: nothing is answered.
    NoQuorum,
    /// Another member becomes its leader: nothing is answered for a moment, then leases begin anew.
    LeaderChange,
    /// This member has lost the others.
    MemberCut(usize),
    /// Requests are refused.
    EtcdErrors,
    /// Answers are lost after the requests took effect.
    EtcdRepliesLost,
    /// All leases end.
    LeasesEnd,
    /// A compaction overtakes those who observe the election.
    Overtaken,
}

impl What {
    /// The fault's name, for counting.
    #[must_use]
    pub fn name(&self) -> String {
        let value = match self {
            Self::Process { fault, .. } => serde_json::to_value(fault),
            Self::Edge { fault, .. } => serde_json::to_value(fault),
            Self::Cloud { fault, .. } => serde_json::to_value(fault),
            Self::Cluster { fault, .. } => serde_json::to_value(fault),
            Self::Etcd { fault, .. } => serde_json::to_value(fault),
        };
        let value = value.unwrap_or_default();
        let named = value.as_object().and_then(|object| object.keys().next().cloned());
        named.or_else(|| value.as_str().map(ToOwned::to_owned)).unwrap_or_default()
    }
}

/// A fault with its time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// Number within the run.
    pub number: usize,
    /// When it begins, in milliseconds since the beginning.
    pub at_ms: u64,
    /// How long it lasts, in milliseconds.
    pub for_ms: u64,
    /// What goes wrong.
    pub what: What,
}

/// All faults of a run that ends them at `until_ms`; only those of certain names when any are given.
#[must_use]
pub fn draw(seed: u64, world: &World, until_ms: u64, only: &[String]) -> Vec<Fault> {
    let mut random = Random::stream(seed, "faults");
    let (gap_ms, first_ms) =
        if only.is_empty() { (GAP_MS, FIRST_MS) } else { (CHOSEN_GAP_MS, CHOSEN_FIRST_MS) };
    let (mut faults, mut at_ms) = (Vec::new(), first_ms);
    loop {
        at_ms += random.between(gap_ms.0, gap_ms.1);
        let for_ms = random.between(LENGTH_MS.0, LENGTH_MS.1);
        let wanted = |what: &What| only.is_empty() || only.contains(&what.name());
        let mut drawn = (0..TRIES).map(|_| one(&mut random, world));
        let Some(what) = drawn.find(wanted) else { return faults };
        let dark = matches!(what, What::Cloud { fault: CloudFault::Dark(_), .. });
        let for_ms = if dark { DARK_MS } else { for_ms };
        if at_ms + for_ms >= until_ms {
            return faults;
        }
        faults.push(Fault { number: faults.len(), at_ms, for_ms, what });
    }
}

fn one(random: &mut Random, world: &World) -> What {
    let process = |random: &mut Random| {
        let service = random.index(world.services.len());
        let fault = match random.between(0, 5) {
            0..=2 => ProcessFault::Kill,
            3 => ProcessFault::Stop,
            4 => ProcessFault::Cutoff,
            _ => ProcessFault::Skew(skew(random)),
        };
        What::Process { service, fault }
    };
    match random.between(0, 11) {
        0..=2 => process(random),
        3 => {
            let (from, to) = edge(random, world);
            let faults = [EdgeFault::OneWay, EdgeFault::Partition, EdgeFault::Cut];
            What::Edge { from, to, fault: faults[random.index(faults.len())].clone() }
        }
        4..=7 => What::Cloud { site: random.index(world.sites.len()), fault: cloud(random) },
        8..=9 => of_etcd(random, world),
        _ => {
            let cluster = random.index(world.clusters.len());
            What::Cluster { cluster, fault: of_cluster(random) }
        }
    }
}

fn cloud(random: &mut Random) -> CloudFault {
    let percent = random.between(20, 100);
    let faults = [
        CloudFault::Throttled,
        CloudFault::CloudErrors,
        CloudFault::Denied,
        CloudFault::CloudRepliesLost,
        CloudFault::ShortListings,
        CloudFault::EmptyListings,
        CloudFault::SoldOut(percent),
        CloudFault::SpotStorm(percent),
        CloudFault::KilledByHand,
        CloudFault::TagsStripped,
        CloudFault::TemplatesDeleted,
        CloudFault::Duds,
        CloudFault::Dark(percent),
        CloudFault::KarpenterBefore,
        CloudFault::Protected(percent / 4),
    ];
    faults[random.index(faults.len())].clone()
}

fn of_cluster(random: &mut Random) -> ClusterFault {
    let plurals = ["nodeclaims", "nodepools", "nodes", "pods", "poddisruptionbudgets"];
    let plural = plurals[random.index(plurals.len())].to_owned();
    let after_ms = random.between(55_000, 75_000);
    let faults = [
        ClusterFault::ApiErrors,
        ClusterFault::ApiRepliesLost,
        ClusterFault::KindAbsent(plural),
        ClusterFault::Compacted,
        ClusterFault::Undecodable,
        ClusterFault::NodeFlaps,
        ClusterFault::Frenzy(after_ms),
    ];
    faults[random.index(faults.len())].clone()
}

fn of_etcd(random: &mut Random, world: &World) -> What {
    let site = random.index(world.sites.len());
    let member = random.index(MEMBERS);
    let of_site = |service: &Service| service.kind == Kind::Actuator { site };
    let actuators: Vec<usize> = world.indices(of_site);
    let service = random.one(&actuators).copied().unwrap_or_default();
    let faults = [
        EtcdFault::NoQuorum,
        EtcdFault::LeaderChange,
        EtcdFault::MemberCut(member),
        EtcdFault::EtcdErrors,
        EtcdFault::EtcdRepliesLost,
        EtcdFault::LeasesEnd,
        EtcdFault::Overtaken,
    ];
    match faults.get(random.index(faults.len() + 2)) {
        Some(fault) => What::Etcd { site, fault: fault.clone() },
        None => What::Process { service, fault: ProcessFault::EtcdUnreachable },
    }
}

/// Two services that talk to each other.
fn edge(random: &mut Random, world: &World) -> (usize, usize) {
    let schedulers = world.indices(|service| service.kind == Kind::Scheduler);
    let others = world.indices(|service| service.kind != Kind::Scheduler);
    let scheduler = schedulers[random.index(schedulers.len())];
    let other = others[random.index(others.len())];
    if random.chance(50) { (scheduler, other) } else { (other, scheduler) }
}

fn skew(random: &mut Random) -> i64 {
    let far = i64::try_from(random.between(1_000, 600_000)).unwrap_or_default();
    if random.chance(50) { far } else { -far }
}
