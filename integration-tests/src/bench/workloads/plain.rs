//! Workloads of pods without constraints.
//!
//! Invariant: requests are whole thousandths of a core and MiB.

use std::collections::{BTreeMap, BTreeSet};

use longshore_manifests::neutral::Demand;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};

/// CPU that a generic pod may request, in thousandths of a core.
pub(super) const CPU_MILLIS: [i64; 5] = [100, 250, 500, 1000, 1500];
/// Memory that it may request, in MiB.
pub(super) const MEMORY_MIB: [i64; 6] = [100, 256, 512, 1024, 2048, 4096];

/// The seed of every generator that is not given one.
pub(super) const SEED: u64 = 42;

/// Requests of Karpenter's performance suite with thirty deployments, without its constraints.
const WIDE: [(i64, i64, u32); 30] = [
    (240, 300, 35),
    (450, 400, 35),
    (650, 700, 35),
    (900, 1024, 35),
    (1400, 2048, 35),
    (1900, 4096, 35),
    (2400, 8192, 35),
    (2800, 4096, 35),
    (3300, 16384, 35),
    (3700, 10240, 35),
    (2300, 65536, 35),
    (900, 30720, 35),
    (1300, 32768, 35),
    (2800, 32768, 35),
    (1800, 30720, 35),
    (1850, 20480, 35),
    (3300, 30720, 35),
    (3800, 300, 35),
    (225, 500, 35),
    (450, 750, 35),
    (700, 1024, 30),
    (900, 2048, 30),
    (1300, 4096, 30),
    (1800, 8192, 30),
    (2400, 16384, 30),
    (2800, 32768, 30),
    (3400, 28672, 30),
    (3800, 65536, 30),
    (3300, 13312, 30),
    (2800, 24576, 30),
];

/// Replicas of one small deployment.
pub(super) fn seed_scale(replicas: u32) -> Vec<Demand> {
    vec![row((250, 512), replicas)]
}

/// Two deployments of 500 pods, as Karpenter's basic performance case has them.
pub(super) fn basic() -> Vec<Demand> {
    vec![row((900, 3100), 500), row((3500, 28672), 500)]
}

/// Thirty deployments.
pub(super) fn wide() -> Vec<Demand> {
    WIDE.into_iter().map(|(cpu, memory, count)| row((cpu, memory), count)).collect()
}

/// Pods whose CPU and memory are drawn from five and six sizes.
#[must_use]
pub fn generic(pods: u32) -> Vec<Demand> {
    let mut random = StdRng::seed_from_u64(SEED);
    counted((0..pods).map(|_| requests(&mut random)))
}

/// Classes of equally many pods, each class with requests of its own.
#[must_use]
pub fn classes(classes: u32, pods_each: u32, seed: u64) -> Vec<Demand> {
    let mut random = StdRng::seed_from_u64(SEED + seed);
    let all = different(classes, || (random.random_range(50..2000), random.random_range(64..8192)));
    all.into_iter().map(|requests| row(requests, pods_each)).collect()
}

/// Pods of which no two are alike.
pub(super) fn distinct(pods: u32) -> Vec<Demand> {
    classes(pods, 1, 1)
}

/// Pods of a third to two thirds of a node of 32 vCPU.
pub(super) fn third() -> Vec<Demand> {
    let mut random = StdRng::seed_from_u64(SEED);
    let all =
        different(20, || (random.random_range(10_500..21_000), random.random_range(8192..65536)));
    all.into_iter().map(|requests| row(requests, 50)).collect()
}

/// Ten thousand pods that fit nothing, of a thousand kinds, before thirty thousand that do.
pub(super) fn poison() -> Vec<Demand> {
    let too_large = (0..1000).map(|n| row((1_000_000 + n, 1024), 10));
    too_large.chain(generic(30_000)).collect()
}

/// Requests of one generic pod.
pub(super) fn requests(random: &mut StdRng) -> (i64, i64) {
    let cpu = CPU_MILLIS.choose(random).copied().unwrap_or_default();
    (cpu, MEMORY_MIB.choose(random).copied().unwrap_or_default())
}

fn different(number: u32, mut draw: impl FnMut() -> (i64, i64)) -> BTreeSet<(i64, i64)> {
    let mut all = BTreeSet::new();
    while all.len() < number as usize {
        all.insert(draw());
    }
    all
}

fn counted(pods: impl Iterator<Item = (i64, i64)>) -> Vec<Demand> {
    let mut counts: BTreeMap<(i64, i64), u32> = BTreeMap::new();
    for requests in pods {
        *counts.entry(requests).or_default() += 1;
    }
    counts.into_iter().map(|(requests, count)| row(requests, count)).collect()
}

const fn row((cpu_millis, memory_mib): (i64, i64), count: u32) -> Demand {
    Demand { cpu_millis, memory_mib, count }
}
