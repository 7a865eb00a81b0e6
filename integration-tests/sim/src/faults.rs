//! What goes wrong, when, for how long: drawn from the seed before the run begins.
//!
//! Invariant: a pure function of seed, size and time; each fault has a number, so that a run can be
//! repeated without some of them.

mod act;

pub use act::Begun;

use serde::Serialize;

use crate::random::Random;
use crate::world::{Kind, World};

/// A fault begins at least so long after the one before, in milliseconds.
const GAP_MS: (u64, u64) = (15_000, 120_000);
/// How long a fault lasts, in milliseconds.
const LENGTH_MS: (u64, u64) = (3_000, 120_000);
/// No fault begins before the world has come up, in milliseconds.
const FIRST_MS: u64 = 60_000;
/// Percent of calls that a troubled API refuses or loses.
const TROUBLED_PERCENT: u64 = 30;

/// Something that goes wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// A service is killed and starts again.
    Kill {
        /// Index of the service.
        service: usize,
    },
    /// A service is stopped as by SIGSTOP.
    Stop {
        /// Index of the service.
        service: usize,
    },
    /// Nothing passes between two services, in one direction or both.
    Partition {
        /// Index of the one.
        from: usize,
        /// Index of the other.
        to: usize,
        /// Both directions.
        both: bool,
    },
    /// A service reaches no API server or cloud.
    Cutoff {
        /// Index of the service.
        service: usize,
    },
    /// Connections between two services are cut, and may be made again at once.
    Cut {
        /// Index of the one.
        from: usize,
        /// Index of the other.
        to: usize,
    },
    /// A service's clock jumps.
    Skew {
        /// Index of the service.
        service: usize,
        /// How far ahead.
        skew_ms: i64,
    },
    /// The cloud's API throttles.
    Throttled {
        /// Index of the site.
        site: usize,
    },
    /// The cloud's API answers InternalError.
    CloudErrors {
        /// Index of the site.
        site: usize,
    },
    /// The cloud refuses calls as unauthorized.
    CloudDenied {
        /// Index of the site.
        site: usize,
    },
    /// Replies of the cloud are lost after they took effect.
    CloudRepliesLost {
        /// Index of the site.
        site: usize,
    },
    /// Listings leave instances out.
    ShortListings {
        /// Index of the site.
        site: usize,
    },
    /// Listings are empty.
    EmptyListings {
        /// Index of the site.
        site: usize,
    },
    /// Offerings have no capacity.
    SoldOut {
        /// Index of the site.
        site: usize,
        /// Percent of the offerings.
        percent: u64,
    },
    /// Spot instances are taken back.
    SpotStorm {
        /// Index of the site.
        site: usize,
        /// Percent of the spot instances.
        percent: u64,
    },
    /// Somebody ends instances in the console.
    KilledByHand {
        /// Index of the site.
        site: usize,
    },
    /// Somebody takes the tags off an instance.
    TagsStripped {
        /// Index of the site.
        site: usize,
    },
    /// Launch templates vanish.
    TemplatesDeleted {
        /// Index of the site.
        site: usize,
    },
    /// New instances never join.
    Duds {
        /// Index of the site.
        site: usize,
    },
    /// The API server is overloaded, fails and conflicts.
    ApiErrors {
        /// Index of the cluster.
        cluster: usize,
    },
    /// Replies of the API server are lost after they took effect.
    ApiRepliesLost {
        /// Index of the cluster.
        cluster: usize,
    },
    /// A kind is not served for a while.
    KindAbsent {
        /// Index of the cluster.
        cluster: usize,
        /// Its plural.
        plural: String,
    },
    /// The history of all objects is compacted: watches list anew.
    Compacted {
        /// Index of the cluster.
        cluster: usize,
    },
    /// A claim cannot be decoded.
    Undecodable {
        /// Index of the cluster.
        cluster: usize,
    },
    /// A kubelet says that its node is not ready.
    NodeFlaps {
        /// Index of the cluster.
        cluster: usize,
    },
}

impl What {
    /// Its name, for counting.
    #[must_use]
    pub fn name(&self) -> String {
        let value = serde_json::to_value(self).unwrap_or_default();
        let named = value.as_object().and_then(|object| object.keys().next().cloned());
        named.unwrap_or_default()
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

/// All faults of a run that ends them at `until_ms`.
#[must_use]
pub fn draw(seed: u64, world: &World, until_ms: u64) -> Vec<Fault> {
    let mut random = Random::stream(seed, "faults");
    let (mut faults, mut at_ms) = (Vec::new(), FIRST_MS);
    loop {
        at_ms += random.between(GAP_MS.0, GAP_MS.1);
        let for_ms = random.between(LENGTH_MS.0, LENGTH_MS.1);
        if at_ms + for_ms >= until_ms {
            return faults;
        }
        let what = one(&mut random, world);
        faults.push(Fault { number: faults.len(), at_ms, for_ms, what });
    }
}

fn one(random: &mut Random, world: &World) -> What {
    let service = random.index(world.services.len());
    let (from, to) = edge(random, world);
    let site = random.index(world.sites.len());
    let cluster = random.index(world.clusters.len());
    let percent = random.between(20, 100);
    match random.between(0, 23) {
        0..=2 => What::Kill { service },
        3 => What::Stop { service },
        4 => What::Partition { from, to, both: random.chance(50) },
        5 => What::Cutoff { service },
        6 => What::Cut { from, to },
        7 => What::Skew { service, skew_ms: skew(random) },
        8 => What::Throttled { site },
        9 => What::CloudErrors { site },
        10 => What::CloudDenied { site },
        11 => What::CloudRepliesLost { site },
        12 => What::ShortListings { site },
        13 => What::EmptyListings { site },
        14 => What::SoldOut { site, percent },
        15 => What::SpotStorm { site, percent },
        16 => What::KilledByHand { site },
        17 => What::TagsStripped { site },
        18 => What::TemplatesDeleted { site },
        19 => What::Duds { site },
        20 => What::ApiErrors { cluster },
        21 => match random.between(0, 1) {
            0 => What::ApiRepliesLost { cluster },
            _ => What::Compacted { cluster },
        },
        22 => match random.between(0, 1) {
            0 => What::KindAbsent { cluster, plural: plural(random) },
            _ => What::Undecodable { cluster },
        },
        _ => What::NodeFlaps { cluster },
    }
}

/// Two services that talk to each other.
fn edge(random: &mut Random, world: &World) -> (usize, usize) {
    let of = |wanted: fn(&Kind) -> bool| -> Vec<usize> {
        let services = world.services.iter().enumerate();
        services.filter(|(_, service)| wanted(&service.kind)).map(|(index, _)| index).collect()
    };
    let schedulers = of(|kind| *kind == Kind::Scheduler);
    let others = of(|kind| *kind != Kind::Scheduler);
    let scheduler = schedulers[random.index(schedulers.len())];
    let other = others[random.index(others.len())];
    if random.chance(50) { (scheduler, other) } else { (other, scheduler) }
}

fn skew(random: &mut Random) -> i64 {
    let far = i64::try_from(random.between(1_000, 600_000)).unwrap_or_default();
    if random.chance(50) { far } else { -far }
}

fn plural(random: &mut Random) -> String {
    let plurals = ["nodeclaims", "nodepools", "nodes", "pods", "poddisruptionbudgets"];
    plurals[random.index(plurals.len())].to_owned()
}
