//! Random worlds in the protocol's own messages, for tests.
//!
//! Invariant: equal seeds give equal worlds on every platform.

use std::collections::BTreeMap;

use longshore_proto::types::v1;
use longshore_proto::types::v1::object::Kind;

const GIB: i64 = 1 << 30;
const ZONE: &str = "topology.kubernetes.io/zone";
const ARCH: &str = "kubernetes.io/arch";
const ZONES: [&str; 3] = ["z-a", "z-b", "z-c"];
/// Shapes that pods are of; the last is a DaemonSet's.
const SHAPES: u64 = 8;
/// Node class that every pool names.
pub const CLASS: &str = "default";
/// Id of the catalogue.
pub const CATALOGUE: &str = "c";

/// Xorshift.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    pub fn index(&mut self, limit: usize) -> usize {
        usize::try_from(self.below(u64::try_from(limit).unwrap())).unwrap()
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            let other = self.index(at + 1);
            items.swap(at, other);
        }
    }

    fn amount(&mut self, limit: u64) -> i64 {
        i64::try_from(self.below(limit)).unwrap()
    }

    fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.index(of.len())]
    }
}

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn resources(cpu_millis: i64, memory_bytes: i64, pods: i64) -> Option<v1::Resources> {
    Some(v1::Resources { cpu_millis, memory_bytes, pods, ..v1::Resources::default() })
}

/// A catalogue with two architectures and sizes of three shapes.
pub fn catalogue(random: &mut Random) -> v1::Catalogue {
    let mut types = Vec::new();
    for (family, arch, memory) in [("c", "amd64", 2), ("m", "amd64", 4), ("a", "arm64", 4)] {
        for cpus in [2, 4, 8] {
            types.push(kind(random, (family, arch), cpus, memory));
        }
    }
    v1::Catalogue { catalogue_id: CATALOGUE.to_owned(), types, ..v1::Catalogue::default() }
}

fn kind(
    random: &mut Random,
    (family, arch): (&str, &str),
    cpus: i64,
    memory: i64,
) -> v1::InstanceType {
    let mut offerings = Vec::new();
    for zone in ZONES {
        for capacity_type in [v1::CapacityType::Spot, v1::CapacityType::OnDemand] {
            let base = 20_000 * cpus + 3_000 * memory * cpus + random.amount(4_000);
            let spot = capacity_type == v1::CapacityType::Spot;
            offerings.push(v1::Offering {
                zone: zone.to_owned(),
                zone_id: format!("id-{zone}"),
                capacity_type: capacity_type.into(),
                price_micro_usd_per_hour: if spot { base / 3 } else { base },
                available: !random.once_in(9),
                ..v1::Offering::default()
            });
        }
    }
    v1::InstanceType {
        name: format!("{family}.{cpus}"),
        labels: map(&[(ARCH, arch), ("kubernetes.io/os", "linux"), ("family", family)]),
        capacity: resources(cpus * 1000, cpus * memory * GIB, 20),
        overhead: resources(80, GIB / 2, 0),
        offerings,
    }
}

fn requirement(key: &str, values: &[&str]) -> v1::Requirement {
    v1::Requirement {
        key: key.to_owned(),
        operator: v1::Operator::In.into(),
        values: values.iter().map(|value| (*value).to_owned()).collect(),
        min_values: None,
    }
}

/// A pool: one that takes all, one with limits, one with a taint and weight.
pub fn pool(random: &mut Random, number: u64) -> Kind {
    let mut pool = v1::NodePool {
        name: format!("pool-{number}"),
        node_class: CLASS.to_owned(),
        disruption: Some(v1::Disruption {
            policy: v1::ConsolidationPolicy::WhenEmptyOrUnderutilized.into(),
            consolidate_after: Some(prost_types::Duration { seconds: 30, nanos: 0 }),
            ..v1::Disruption::default()
        }),
        drift_hash: format!("1-{}", random.below(2)),
        ..v1::NodePool::default()
    };
    if number == 1 {
        let cpu = 8_000 + 4_000 * random.amount(8);
        pool.limits = Some(v1::PoolLimits { values: [("cpu".to_owned(), cpu)].into() });
        pool.requirements.push(requirement(ARCH, &["amd64"]));
    }
    if number == 2 {
        pool.weight = 10;
        pool.taints = vec![taint()];
    }
    Kind::NodePool(pool)
}

fn taint() -> v1::Taint {
    let effect = v1::TaintEffect::NoSchedule.into();
    v1::Taint { key: "team".to_owned(), value: "ops".to_owned(), effect }
}

/// A shape of pods; the number decides what kind of rules it has, chance the rest.
pub fn shape(random: &mut Random, number: u64) -> Kind {
    let app = format!("app-{number}");
    let own = v1::LabelSelector { match_labels: map(&[("app", &app)]), ..Default::default() };
    let cpu = 100 + 100 * random.amount(25);
    let mut shape = v1::PodShape {
        shape_id: format!("s-{number}"),
        namespace: "default".to_owned(),
        labels: map(&[("app", &app)]),
        requests: resources(cpu, (1 + random.amount(8)) * GIB / 2, 1),
        owner: format!("Deployment/{app}"),
        ..v1::PodShape::default()
    };
    match number {
        1 => shape.node_selector = map(&[(ARCH, random.pick(&["amd64", "arm64"]))]),
        2 | 3 => shape.topology_spread.push(v1::TopologySpread {
            max_skew: 1,
            topology_key: ZONE.to_owned(),
            schedule_anyway: number == 3,
            selector: Some(own),
            honor_node_affinity: true,
            ..v1::TopologySpread::default()
        }),
        4 => shape.required_anti_affinity.push(near("kubernetes.io/hostname", own)),
        5 => shape.required_affinity.push(near(ZONE, own)),
        6 => {
            let (key, value) = ("team".to_owned(), "ops".to_owned());
            let exists = random.once_in(2);
            let value = if exists { String::new() } else { value };
            shape.tolerations.push(v1::Toleration { key, exists, value, effect: 0 });
        }
        7 => {
            shape.daemon = true;
            shape.requests = resources(100, GIB / 4, 1);
        }
        _ => {}
    }
    Kind::PodShape(shape)
}

fn near(key: &str, selector: v1::LabelSelector) -> v1::PodAffinityTerm {
    v1::PodAffinityTerm {
        topology_key: key.to_owned(),
        selector: Some(selector),
        ..v1::PodAffinityTerm::default()
    }
}

/// A node of some pool that is in service, and its claim.
pub fn node(random: &mut Random, number: u64) -> [Kind; 2] {
    let (name, zone) = (format!("n-{number}"), random.pick(&ZONES));
    let (pool, provider_id) = (format!("pool-{}", random.below(3)), format!("aws:///x/i-{number}"));
    let allocatable = resources(3_920, 15 * GIB, 20);
    let now = |seconds| Some(prost_types::Timestamp { seconds, nanos: 0 });
    let labels = [
        (ZONE, zone),
        (ARCH, "amd64"),
        ("kubernetes.io/os", "linux"),
        ("kubernetes.io/hostname", &name),
        ("node.kubernetes.io/instance-type", "m.4"),
        ("karpenter.sh/capacity-type", "on-demand"),
        ("karpenter.sh/nodepool", &pool),
    ];
    let node = v1::Node {
        name: name.clone(),
        provider_id: provider_id.clone(),
        labels: map(&labels),
        allocatable: allocatable.clone(),
        ready: !random.once_in(8),
        cordoned: random.once_in(12),
        create_time: now(1_000),
        ..v1::Node::default()
    };
    let claim = v1::NodeClaim {
        name: format!("claim-{number}"),
        pool,
        node_class: CLASS.to_owned(),
        provider_id,
        node_name: name,
        instance_type: "m.4".to_owned(),
        zone: zone.to_owned(),
        capacity_type: v1::CapacityType::OnDemand.into(),
        allocatable,
        create_time: now(1_000),
        register_time: now(1_060),
        initialize_time: if random.once_in(8) { None } else { now(1_070) },
        deleting: random.once_in(15),
        drift_hash: format!("1-{}/1-0", random.below(2)),
        ..v1::NodeClaim::default()
    };
    [Kind::Node(node), Kind::NodeClaim(claim)]
}

/// A pod that waits, or runs on one of the nodes.
pub fn pod(random: &mut Random, number: u64, nodes: u64) -> Kind {
    let waits = nodes == 0 || random.once_in(2);
    let node_name = if waits { String::new() } else { format!("n-{}", random.below(nodes)) };
    let phase = if waits { v1::PodPhase::Pending } else { v1::PodPhase::Running };
    Kind::Pod(v1::Pod {
        uid: format!("p-{number:05}"),
        namespace: "default".to_owned(),
        name: format!("p-{number:05}"),
        shape_id: format!("s-{}", random.below(SHAPES - 1)),
        node_name,
        phase: phase.into(),
        unschedulable: waits,
        ..v1::Pod::default()
    })
}

/// Pools, shapes, a DaemonSet, nodes and pods.
pub fn objects(random: &mut Random, (nodes, pods): (u64, u64)) -> Vec<Kind> {
    let mut all: Vec<Kind> = (0..3).map(|number| pool(random, number)).collect();
    all.extend((0..SHAPES).map(|number| shape(random, number)));
    all.push(Kind::DaemonSet(v1::DaemonSet {
        namespace: "default".to_owned(),
        name: "agent".to_owned(),
        shape_id: format!("s-{}", SHAPES - 1),
    }));
    all.extend((0..nodes).flat_map(|number| node(random, number)));
    all.extend((0..pods).map(|number| pod(random, number, nodes)));
    all
}

/// One change of a world of so many nodes and pods: something new, changed, gone or unreadable.
pub fn change(random: &mut Random, (nodes, pods): (u64, u64)) -> Vec<v1::ObjectChange> {
    let of = |kinds: Vec<Kind>| kinds.into_iter().map(upsert).collect();
    match random.below(20) {
        0 => of(node(random, 0).into_iter().chain(broken(random, nodes)).collect()),
        1 | 2 => {
            let number = random.below(nodes);
            of(node(random, number).to_vec())
        }
        3 => {
            let number = random.below(nodes);
            let [node, claim] = node(random, number);
            vec![removal(&node), removal(&claim)]
        }
        4 => {
            let number = random.below(SHAPES);
            of(vec![shape(random, number)])
        }
        5 => {
            let number = random.below(3);
            of(vec![pool(random, number)])
        }
        6..=11 => {
            let number = random.below(pods);
            vec![removal(&pod(random, number, nodes))]
        }
        _ => {
            let number = random.below(pods);
            of(vec![pod(random, number, nodes)])
        }
    }
}

/// A node that has become unreadable: it counts as not being there.
fn broken(random: &mut Random, nodes: u64) -> Option<Kind> {
    let number = random.below(nodes);
    let [Kind::Node(mut node), _] = node(random, number) else { return None };
    node.allocatable = resources(-1, GIB, 10);
    Some(Kind::Node(node))
}

pub fn upsert(kind: Kind) -> v1::ObjectChange {
    let change = v1::object_change::Change::Upsert(v1::Object { kind: Some(kind) });
    v1::ObjectChange { change: Some(change) }
}

fn removal(kind: &Kind) -> v1::ObjectChange {
    let change = v1::object_change::Change::Remove(longshore_proto::reference::of(kind));
    v1::ObjectChange { change: Some(change) }
}
