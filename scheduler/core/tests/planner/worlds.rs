//! Planner against check, over small random worlds of whatever may meet in a cluster.
//! `LONGSHORE_WORLDS=100000` tries more of them, `LONGSHORE_FIRST_WORLD` begins elsewhere; a number
//! names a world for ever.
//!
//! Invariant: the check refuses no plan of the planner.

use std::collections::BTreeMap;
use std::fmt::Write;

use longshore_core::check::{check, cut};
use longshore_core::plan;

use super::random::Random;
use super::scenario;

/// Worlds that are tried unless told otherwise.
const WORLDS: u64 = 1_500;

const TYPES: &str = "now 3h
type t.nano cpu 2 mem 512Mi pods 4 od 0.006 spot 0.002 zones a,b,c reserved 60m/200Mi
type c.large cpu 2 mem 4Gi pods 29 od 0.085 spot 0.03 zones a,b,c reserved 70m/600Mi
type m.xlarge cpu 4 mem 16Gi pods 58 od 0.192 spot 0.07 zones a,b,c reserved 80m/1000Mi zone-price b=0.05
type r.2xlarge cpu 8 mem 64Gi pods 58 od 0.504 zones a,b reserved 90m/1100Mi
type d.xlarge cpu 4 mem 16Gi pods 58 od 0.226 spot 0.08 zones a,c label karpenter.k8s.aws/instance-local-nvme=237
type d.2xlarge cpu 8 mem 32Gi pods 58 od 0.452 zones b label karpenter.k8s.aws/instance-local-nvme=475
type g.xlarge cpu 4 mem 16Gi pods 29 gpu 1 od 0.526 zones a,b label karpenter.k8s.aws/instance-gpu-count=1
type a.large cpu 2 mem 8Gi pods 29 arch arm64 od 0.07 spot 0.02 zones b,c reserve b/cr-1=2@0.0001
";

/// What a pool may want.
const POOLS: [&str; 30] = [
    "need karpenter.k8s.aws/instance-local-nvme>100",
    "need karpenter.k8s.aws/instance-local-nvme<300",
    "need karpenter.k8s.aws/instance-gpu-count>0",
    "need karpenter.k8s.aws/instance-gpu-count!=1",
    "need !karpenter.k8s.aws/instance-local-nvme",
    "need karpenter.k8s.aws/instance-local-nvme",
    "need topology.k8s.aws/zone-id=id-a,id-c",
    "need topology.k8s.aws/zone-id!=id-b",
    "need topology.k8s.aws/zone-id=id-b need bought=spot",
    "need bought=spot",
    "need bought=on-demand",
    "need bought=reserved",
    "need arch=arm64,amd64",
    "need arch=arm64",
    "label karpenter.k8s.aws/instance-family=m",
    "label rack=r1",
    "need rack=r1,r2",
    "need rack",
    "need rack!=r3",
    "need karpenter.k8s.aws/capacity-reservation-id=cr-1",
    "zones a,b",
    "need type@2",
    "need type=t.nano,c.large,m.xlarge",
    "need half=0",
    "limit cpu=7900m",
    "limit cpu=3950m limit memory=20Gi",
    "limit nodes=2",
    "limit memory=15500Mi",
    "startup-taint starting",
    "taint team=ops",
];

/// DaemonSets.
const DAEMONS: [&str; 18] = [
    "cpu 100m mem 100Mi",
    "cpu 300m mem 300Mi tolerate all",
    "cpu 100m mem 2Gi tolerate all",
    "mem 500Mi",
    "cpu 100m select karpenter.sh/initialized=true",
    "cpu 200m mem 1Gi tolerate all select karpenter.sh/registered=true",
    "cpu 200m need !karpenter.sh/initialized",
    "cpu 500m select rack=r1",
    "cpu 1 need rack=r2 tolerate all",
    "cpu 500m need rack",
    "cpu 500m need !rack",
    "cpu 400m need karpenter.k8s.aws/instance-local-nvme",
    "cpu 400m need !karpenter.k8s.aws/instance-local-nvme tolerate all",
    "mem 1Gi need topology.k8s.aws/zone-id=id-a",
    "cpu 1 need bought=spot",
    "gpu 1",
    "cpu 100m port 9100 tolerate team",
    "disk 10Gi mem 100Mi",
];

/// What workloads may ask for.
const ASKED: [&str; 46] = [
    "",
    "",
    "",
    "spread zone:1",
    "spread host:1",
    "spread host:2",
    "apart host:w0",
    "apart zone:w1",
    "near zone:w0",
    "near host:w1",
    "port 9100",
    "tolerate team",
    "tolerate all",
    "need zone=a,b",
    "need bought=spot",
    "prefer arch=arm64",
    "spread rack:1",
    "near rack:w0",
    "spread zone:1:min=3",
    "spread zone:1:taints=honor",
    "spread-wish zone:1",
    "apart-wish 5*zone:w0",
    "priority 100",
    "volume zone=b",
    "volume zone=a volume zone=c",
    "need rack=r2",
    "need rack=r1",
    "need !rack",
    "gpu 1",
    "need karpenter.k8s.aws/instance-local-nvme>300",
    "need karpenter.k8s.aws/instance-local-nvme",
    "need !karpenter.k8s.aws/instance-local-nvme",
    "need karpenter.k8s.aws/instance-gpu-count<5",
    "need karpenter.k8s.aws/instance-accelerator-count!=3",
    "select topology.k8s.aws/zone-id=id-b",
    "need topology.k8s.aws/zone-id!=id-a",
    "select karpenter.sh/initialized=true",
    "select karpenter.sh/registered=true",
    "need !karpenter.sh/initialized",
    "need half=0",
    "spread quarter:1",
    "need karpenter.k8s.aws/capacity-reservation-id",
    "need !karpenter.k8s.aws/capacity-reservation-id",
    "need zone=a&arch=amd64 need rack=r2",
    "need type=m.xlarge,d.xlarge,r.2xlarge",
    "need pool=p1",
];

/// What becomes of nodes.
const STATES: [&str; 21] = [
    "",
    "",
    "",
    "",
    "label rack=r1",
    "label rack=r2 taint team=ops",
    "state cordoned",
    "state not-ready",
    "state deleting",
    "state hold",
    "state drifted",
    "initialized no taint karpenter.sh/unregistered:NoExecute",
    "initialized no state not-ready created 1m",
    "initialized no state not-ready created 175m",
    "initialized no taint starting",
    "expire 2h",
    "expire 2h grace 1m",
    "last-pod 179m",
    "alloc cpu=1",
    "alloc memory=100Mi",
    "bought spot",
];

/// What is said of pods that run.
const HELD: [&str; 8] =
    ["", "", "", "", " hold ever", " deleting yes", " deleting yes ends 10815s", " ends 10799s"];

/// Nodes on their way.
const CLAIMS: [&str; 7] = [
    "need type=m.xlarge",
    "need type=m.xlarge,r.2xlarge need zone=a label rack=r2",
    "launched m.xlarge/b/on-demand label rack=r1",
    "launched c.large/a/spot",
    "need type=c.large need bought=spot",
    "need karpenter.k8s.aws/instance-local-nvme>100 need type=d.xlarge,d.2xlarge",
    "need topology.k8s.aws/zone-id=id-c need type=m.xlarge,c.large",
];

fn one<'w>(random: &mut Random, words: &[&'w str]) -> &'w str {
    words[usize::try_from(random.below(words.len() as u64)).unwrap()]
}

/// A world in the words of scenarios.
pub fn world(random: &mut Random) -> String {
    let mut text = TYPES.to_owned();
    let pools = 1 + random.below(3);
    for pool in 0..pools {
        write!(text, "pool p{pool} after 0s").unwrap();
        for _ in 0..random.below(4) {
            write!(text, " {}", one(random, &POOLS)).unwrap();
        }
        let more = [
            "",
            "",
            "",
            " weight 5",
            " budget 1",
            " budget 50%",
            " canary 1/0",
            " canary 2/1",
            " evictions 1",
            " replicas 2",
        ];
        writeln!(text, "{}", one(random, &more)).unwrap();
    }
    for daemon in 0..random.below(4) {
        writeln!(text, "shape ds{daemon} daemon yes {}", one(random, &DAEMONS)).unwrap();
    }
    for index in 0..1 + random.below(5) {
        let (cpu, memory) = (100 * random.below(25), 256 * random.below(14));
        write!(text, "shape w{index} cpu {cpu}m mem {memory}Mi").unwrap();
        for _ in 0..random.below(3) {
            write!(text, " {}", one(random, &ASKED)).unwrap();
        }
        writeln!(text, "\npods w{index} {}", random.below(6)).unwrap();
    }
    nodes(random, pools, &mut text);
    let more =
        ["", "", "", "", "min-values best-effort\n", "objective fee 0.01\n", "interrupted i-n0\n"];
    text += one(random, &more);
    if random.below(6) == 0 {
        writeln!(text, "shape spare cpu 900m mem 700Mi {}", one(random, &ASKED)).unwrap();
        writeln!(text, "buffer b shape spare replicas {}", random.below(5)).unwrap();
    }
    let overlays = [
        "one need family=m percent -60",
        "two need zone=a add 0.30",
        "three need family=c price 0.01 has nvidia.com/gpu=1",
    ];
    if random.below(8) == 0 {
        writeln!(text, "overlay {}", one(random, &overlays)).unwrap();
    }
    text
}

/// Nodes, claims, and what runs there.
fn nodes(random: &mut Random, pools: u64, text: &mut String) {
    text.push_str("shape run cpu 300m mem 200Mi\nshape walk cpu 200m mem 400Mi\n");
    for node in 0..random.below(6) {
        let (kind, zone) =
            (one(random, &["m.xlarge", "c.large", "d.xlarge"]), one(random, &["a", "b"]));
        let zone = if kind == "d.xlarge" { "a" } else { zone };
        let owner = format!("pool p{}", random.below(pools));
        let owner = if random.below(6) == 0 { "" } else { &owner };
        let state = one(random, &STATES);
        let state = if owner.is_empty() { "" } else { state };
        writeln!(text, "node n{node} type {kind} zone {zone} {owner} {state}").unwrap();
        for _ in 0..random.below(3) {
            let (shape, count) = (one(random, &["run", "walk"]), 1 + random.below(2));
            let held = one(random, &HELD);
            writeln!(text, "pods {shape} {count} on n{node}{held}").unwrap();
        }
    }
    for claim in 0..random.below(3) {
        let kind = one(random, &CLAIMS);
        let pool = random.below(pools);
        writeln!(text, "claim c{claim} pool p{pool} cpu 500m mem 1Gi pods 2 {kind}").unwrap();
    }
    for (name, shape) in [("first", "run"), ("second", "walk"), ("third", "run")] {
        if random.below(3) == 0 {
            let allowed = random.below(4);
            writeln!(text, "pdb {name} app {shape} allowed {allowed}").unwrap();
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a test that can be told to try more")]
fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn the_check_refuses_no_plan_of_the_planner() {
    let first = number("LONGSHORE_FIRST_WORLD", 0);
    let mut refused: BTreeMap<String, (u64, usize, String)> = BTreeMap::new();
    for seed in first..first + number("LONGSHORE_WORLDS", WORLDS) {
        let mut random = Random::new(seed);
        // The first numbers of neighbouring seeds are alike.
        random.shuffle(&mut [0; 16]);
        let text = world(&mut random);
        let read = scenario::read(&text);
        let input = read.input(0..read.changes.len());
        let plan = plan(&input);
        let found = check(&plan, &input);
        let Some(violation) = found.first() else { continue };
        let (left, _) = cut(plan, &input);
        assert_eq!(check(&left, &input), Vec::new(), "world {seed} is not cut down\n{text}");
        let words = violation.to_string();
        let kind = words.split(|c: char| c.is_ascii_digit()).next().unwrap_or_default().to_owned();
        let known = refused.entry(kind).or_insert((seed, 0, String::new()));
        known.1 += 1;
        if known.2.is_empty() || text.len() < known.2.len() {
            (known.0, known.2) = (seed, format!("{text}{words}"));
        }
    }
    let kinds =
        refused.values().map(|(seed, count, text)| format!("{count} like world {seed}:\n{text}"));
    assert!(refused.is_empty(), "{}", kinds.collect::<Vec<_>>().join("\n\n"));
}
