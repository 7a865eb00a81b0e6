//! What goes wrong, when, for how long: drawn from the seed before the run begins.
//!
//! Invariant: a pure function of seed, size and time; each fault has a number, so that a run can be
//! repeated without some of them.

mod act;
mod ailing;
mod handover;
mod kinds;
mod people;

pub use act::Begun;
pub use kinds::{CloudFault, ClusterFault, EdgeFault, EtcdFault, ProcessFault, What, names};
pub use people::ROLLED_OUT;

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
/// How far a clock is off: two hosts differ by ten minutes at most, beyond which plans are refused
/// as expired.
const SKEW_MS: (u64, u64) = (1_000, 295_000);
/// No fault begins before the world has come up, in milliseconds.
const FIRST_MS: u64 = 60_000;
/// The same when only faults of certain names are drawn.
const CHOSEN_FIRST_MS: u64 = 0;
/// How long darkness lasts: longer than it takes to believe that an instance has vanished.
const DARK_MS: u64 = 200_000;
/// How long launches fail: longer than a launch may be tried.
const LAUNCHES_FAIL_MS: u64 = 660_000;
/// How long a pool goes: longer than it takes until everybody knows.
const POOL_GOES_MS: u64 = 300_000;
/// How long nodes ail: shorter than a scheduler must have seen it itself, or longer.
const AILS_MS: [(u64, u64); 2] = [(20_000, 295_000), (330_000, 660_000)];
/// How often most nodes of a pool ail at once, in percent.
const MANY_AIL_PERCENT: u64 = 30;
/// How often a fault of the names wanted is looked for.
const TRIES: usize = 2_000;
/// Loops of an actuator, of the region and of one launch or call.
const ACTUATOR: [&str; 5] = [
    "longshore_actuator::work::reconciling::",
    "longshore_actuator::work::catalogues::",
    "longshore_actuator::work::offerings::",
    "longshore_actuator::work::launch::attempt::",
    "longshore_actuator::service::apply::",
];
/// Loops of a session, and the planner's work, which begins in [`crate::process`].
const SCHEDULER: [&str; 5] = [
    "longshore_scheduler::session::",
    "longshore_scheduler::session::commit::",
    "longshore_scheduler::session::live::",
    "longshore_scheduler::session::dispatch::",
    crate::process::COMPUTES,
];
/// Loops of a watcher.
const WATCHER: [&str; 5] = [
    "longshore_watcher::observe::",
    "longshore_watcher::lease::",
    "longshore_watcher::session::",
    "longshore_watcher::directives::",
    "longshore_watcher::lifecycle::",
];
/// More tasks than a service has at work.
const TASKS: usize = 1_000;
/// Percent of calls that a troubled API refuses or loses.
const TROUBLED_PERCENT: u64 = 30;

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

/// All faults of a run that ends them at `until_ms`; only those of certain names when any are
/// given.
#[must_use]
pub fn draw(seed: u64, world: &World, until_ms: u64, only: &[String]) -> Vec<Fault> {
    let mut random = Random::stream(seed, "faults");
    let (gap_ms, first_ms) =
        if only.is_empty() { (GAP_MS, FIRST_MS) } else { (CHOSEN_GAP_MS, CHOSEN_FIRST_MS) };
    let (mut faults, mut at_ms) = (Vec::new(), first_ms);
    loop {
        at_ms += random.between(gap_ms.0, gap_ms.1);
        let for_ms = random.between(LENGTH_MS.0, LENGTH_MS.1);
        let wanted = |what: &What| only.is_empty() || only.iter().any(|name| name == what.name());
        let mut drawn = (0..TRIES).map(|_| one(&mut random, world));
        let Some(what) = drawn.find(wanted) else { return faults };
        let for_ms = least_ms(&what).unwrap_or(for_ms);
        if at_ms + for_ms >= until_ms {
            return faults;
        }
        faults.push(Fault { number: faults.len(), at_ms, for_ms, what });
    }
}

/// How long a fault lasts whose length is not drawn.
const fn least_ms(what: &What) -> Option<u64> {
    match what {
        What::Cloud { fault: CloudFault::Dark(_), .. } => Some(DARK_MS),
        What::Cloud { fault: CloudFault::LaunchesFail, .. } => Some(LAUNCHES_FAIL_MS),
        What::Cluster { fault: ClusterFault::PoolGoes, .. } => Some(POOL_GOES_MS),
        What::Cluster { fault: ClusterFault::NodesAil { for_ms, .. }, .. } => Some(*for_ms),
        What::Process { .. }
        | What::Edge { .. }
        | What::Cloud { .. }
        | What::Cluster { .. }
        | What::Etcd { .. } => None,
    }
}

/// Where a service panics.
fn places(kind: &Kind) -> Vec<&'static str> {
    match kind {
        Kind::Actuator { .. } => ACTUATOR.to_vec(),
        Kind::Scheduler => SCHEDULER.to_vec(),
        Kind::Watcher { .. } => WATCHER.to_vec(),
        Kind::Standalone { .. } => [ACTUATOR, SCHEDULER, WATCHER].concat(),
    }
}

fn of_process(random: &mut Random, world: &World) -> What {
    let service = random.index(world.services.len());
    let places = places(&world.services[service].kind);
    let fault = match random.between(0, 7) {
        0..=2 => ProcessFault::Kill,
        3 => ProcessFault::Stop,
        4 => ProcessFault::Cutoff,
        5 => ProcessFault::Panic(places[random.index(places.len())]),
        6 => ProcessFault::TaskPanics(random.index(TASKS)),
        _ => ProcessFault::Skew(skew(random)),
    };
    What::Process { service, fault }
}

fn one(random: &mut Random, world: &World) -> What {
    match random.between(0, 11) {
        0..=2 => of_process(random, world),
        // Here are no two services that talk to each other, and no etcd.
        3 if world.standalone => of_process(random, world),
        8..=9 if world.standalone => of_some_cluster(random, world),
        3 => {
            let (from, to) = edge(random, world);
            let faults = [EdgeFault::OneWay, EdgeFault::Partition, EdgeFault::Cut];
            What::Edge { from, to, fault: faults[random.index(faults.len())].clone() }
        }
        4..=7 => What::Cloud { site: random.index(world.sites.len()), fault: cloud(random) },
        8..=9 => of_etcd(random, world),
        _ => of_some_cluster(random, world),
    }
}

fn of_some_cluster(random: &mut Random, world: &World) -> What {
    let cluster = random.index(world.clusters.len());
    What::Cluster { cluster, fault: of_cluster(random) }
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
        CloudFault::LookupsFail,
        CloudFault::LaunchesFail,
        CloudFault::SlowToShow,
        CloudFault::Revoked,
        CloudFault::Copied,
        CloudFault::Upgraded,
    ];
    faults[random.index(faults.len())].clone()
}

fn of_cluster(random: &mut Random) -> ClusterFault {
    let plurals = ["nodeclaims", "nodepools", "nodes", "pods", "poddisruptionbudgets"];
    let plural = plurals[random.index(plurals.len())].to_owned();
    let after_ms = random.between(55_000, 75_000);
    let many = random.chance(MANY_AIL_PERCENT);
    let ails_ms = AILS_MS[random.index(AILS_MS.len())];
    let for_ms = random.between(ails_ms.0, ails_ms.1);
    let faults = [
        ClusterFault::ApiErrors,
        ClusterFault::ApiRepliesLost,
        ClusterFault::KindAbsent(plural),
        ClusterFault::Compacted,
        ClusterFault::Undecodable,
        ClusterFault::NodeFlaps,
        ClusterFault::Frenzy(after_ms),
        ClusterFault::Silent,
        ClusterFault::PoolGoes,
        ClusterFault::TemplateChanges,
        ClusterFault::NodesAil { many, for_ms },
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
    let far = i64::try_from(random.between(SKEW_MS.0, SKEW_MS.1)).unwrap_or_default();
    if random.chance(50) { far } else { -far }
}
