//! Questions for ComputePlan from arbitrary bytes.
//!
//! Invariant: at most a few dozen objects, with names from a short list, so that they refer to each
//! other.

use arbitrary::{Arbitrary, Result, Unstructured};
use longshore_proto::planning::v1::Effort;
use longshore_proto::types::v1;
use longshore_proto::types::v1::object::Kind;
use longshore_scheduler::compute::Question;

const KEYS: [&str; 8] = [
    "topology.kubernetes.io/zone",
    "kubernetes.io/hostname",
    "kubernetes.io/arch",
    "karpenter.sh/capacity-type",
    "karpenter.sh/nodepool",
    "node.kubernetes.io/instance-type",
    "app",
    "",
];
const VALUES: [&str; 9] = ["a", "b", "c", "amd64", "arm64", "spot", "on-demand", "3", ""];

/// Amounts, most of them ordinary and some as large as the wire allows.
fn amount(u: &mut Unstructured<'_>) -> Result<i64> {
    Ok(match u.int_in_range(0..=15)? {
        0 => i64::arbitrary(u)?,
        1 => i64::MAX,
        2 => 0,
        _ => u.int_in_range(1..=16)? * 500,
    })
}

fn pick<'a>(u: &mut Unstructured<'_>, of: &[&'a str]) -> Result<&'a str> {
    u.choose(of).copied()
}

fn some<T>(
    u: &mut Unstructured<'_>,
    most: usize,
    mut make: impl FnMut(&mut Unstructured<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let count = u.int_in_range(0..=most)?;
    (0..count).map(|_| make(u)).collect()
}

fn name(u: &mut Unstructured<'_>, kind: &str, most: u8) -> Result<String> {
    Ok(format!("{kind}{}", u.int_in_range(0..=most)?))
}

fn labels(u: &mut Unstructured<'_>) -> Result<std::collections::BTreeMap<String, String>> {
    let pair =
        |u: &mut Unstructured<'_>| Ok((pick(u, &KEYS)?.to_owned(), pick(u, &VALUES)?.to_owned()));
    Ok(some(u, 2, pair)?.into_iter().collect())
}

fn resources(u: &mut Unstructured<'_>) -> Result<Option<v1::Resources>> {
    let memory_bytes = amount(u)?.saturating_mul(1 << 20);
    let (cpu_millis, pods) = (amount(u)?, amount(u)?);
    let extended = match u.ratio(1, 8)? {
        true => [("example.com/gpu".to_owned(), amount(u)?)].into(),
        false => Default::default(),
    };
    Ok(Some(v1::Resources { cpu_millis, memory_bytes, pods, extended, ..Default::default() }))
}

fn requirement(u: &mut Unstructured<'_>) -> Result<v1::Requirement> {
    Ok(v1::Requirement {
        key: pick(u, &KEYS)?.to_owned(),
        operator: u.int_in_range(0..=9)?,
        values: some(u, 2, |u| Ok(pick(u, &VALUES)?.to_owned()))?,
        min_values: if u.ratio(1, 8)? { Some(u.int_in_range(0..=9)?) } else { None },
    })
}

fn taint(u: &mut Unstructured<'_>) -> Result<v1::Taint> {
    let (key, value) = (pick(u, &KEYS)?.to_owned(), pick(u, &VALUES)?.to_owned());
    Ok(v1::Taint { key, value, effect: u.int_in_range(0..=4)? })
}

fn selector(u: &mut Unstructured<'_>) -> Result<Option<v1::LabelSelector>> {
    let match_expressions = some(u, 1, requirement)?;
    Ok(Some(v1::LabelSelector { match_labels: labels(u)?, match_expressions }))
}

fn term(u: &mut Unstructured<'_>) -> Result<v1::PodAffinityTerm> {
    Ok(v1::PodAffinityTerm {
        topology_key: pick(u, &KEYS)?.to_owned(),
        selector: selector(u)?,
        all_namespaces: bool::arbitrary(u)?,
        weight: u.int_in_range(-1..=101)?,
        ..Default::default()
    })
}

fn spread(u: &mut Unstructured<'_>) -> Result<v1::TopologySpread> {
    Ok(v1::TopologySpread {
        max_skew: u.int_in_range(-1..=3)?,
        topology_key: pick(u, &KEYS)?.to_owned(),
        schedule_anyway: bool::arbitrary(u)?,
        selector: selector(u)?,
        min_domains: if u.ratio(1, 4)? { Some(u.int_in_range(-1..=4)?) } else { None },
        honor_node_affinity: bool::arbitrary(u)?,
        honor_node_taints: bool::arbitrary(u)?,
    })
}

fn toleration(u: &mut Unstructured<'_>) -> Result<v1::Toleration> {
    let (key, value) = (pick(u, &KEYS)?.to_owned(), pick(u, &VALUES)?.to_owned());
    Ok(v1::Toleration { key, exists: bool::arbitrary(u)?, value, effect: u.int_in_range(0..=4)? })
}

fn shape(u: &mut Unstructured<'_>) -> Result<Kind> {
    let node_term = |u: &mut Unstructured<'_>| {
        Ok(v1::RequirementTerm { requirements: some(u, 2, requirement)? })
    };
    Ok(Kind::PodShape(v1::PodShape {
        shape_id: name(u, "s", 4)?,
        namespace: "default".to_owned(),
        labels: labels(u)?,
        requests: resources(u)?,
        node_selector: if u.ratio(1, 3)? { labels(u)? } else { Default::default() },
        required_node_terms: some(u, 1, node_term)?,
        tolerations: some(u, 1, toleration)?,
        topology_spread: some(u, 1, spread)?,
        required_affinity: if u.ratio(1, 5)? { vec![term(u)?] } else { Vec::new() },
        required_anti_affinity: if u.ratio(1, 5)? { vec![term(u)?] } else { Vec::new() },
        preferred_affinity: if u.ratio(1, 8)? { vec![term(u)?] } else { Vec::new() },
        priority: u.int_in_range(-1..=1)?,
        daemon: u.ratio(1, 8)?,
        ..Default::default()
    }))
}

fn pool(u: &mut Unstructured<'_>) -> Result<Kind> {
    let limits = match u.ratio(1, 4)? {
        true => Some(v1::PoolLimits { values: [("cpu".to_owned(), amount(u)?)].into() }),
        false => None,
    };
    Ok(Kind::NodePool(v1::NodePool {
        name: name(u, "pool", 2)?,
        weight: u.int_in_range(0..=2)?,
        labels: if u.ratio(1, 4)? { labels(u)? } else { Default::default() },
        taints: if u.ratio(1, 4)? { vec![taint(u)?] } else { Vec::new() },
        requirements: some(u, 1, requirement)?,
        limits,
        replicas: if u.ratio(1, 8)? { Some(u.int_in_range(-1..=4)?) } else { None },
        ..Default::default()
    }))
}

fn node(u: &mut Unstructured<'_>) -> Result<Kind> {
    Ok(Kind::Node(v1::Node {
        name: name(u, "n", 3)?,
        provider_id: name(u, "aws:///a/i-", 3)?,
        labels: labels(u)?,
        taints: if u.ratio(1, 4)? { vec![taint(u)?] } else { Vec::new() },
        allocatable: resources(u)?,
        ready: u.ratio(3, 4)?,
        cordoned: u.ratio(1, 8)?,
        ..Default::default()
    }))
}

fn claim(u: &mut Unstructured<'_>) -> Result<Kind> {
    Ok(Kind::NodeClaim(v1::NodeClaim {
        name: name(u, "claim", 3)?,
        pool: name(u, "pool", 2)?,
        requirements: some(u, 1, requirement)?,
        requests: resources(u)?,
        provider_id: if u.ratio(3, 4)? { name(u, "aws:///a/i-", 3)? } else { String::new() },
        instance_type: name(u, "type", 3)?,
        zone: pick(u, &VALUES)?.to_owned(),
        capacity_type: u.int_in_range(0..=4)?,
        allocatable: resources(u)?,
        deleting: u.ratio(1, 8)?,
        ..Default::default()
    }))
}

fn pod(u: &mut Unstructured<'_>) -> Result<Kind> {
    let name_ = name(u, "p", 15)?;
    Ok(Kind::Pod(v1::Pod {
        uid: name_.clone(),
        namespace: "default".to_owned(),
        name: name_,
        shape_id: name(u, "s", 4)?,
        node_name: if u.ratio(1, 2)? { name(u, "n", 3)? } else { String::new() },
        phase: u.int_in_range(0..=2)?,
        deleting: u.ratio(1, 8)?,
        do_not_disrupt: u.ratio(1, 8)?,
        ..Default::default()
    }))
}

fn object(u: &mut Unstructured<'_>) -> Result<v1::Object> {
    let kind = match u.int_in_range(0..=9)? {
        0 => Kind::DaemonSet(v1::DaemonSet {
            namespace: "default".to_owned(),
            name: name(u, "d", 1)?,
            shape_id: name(u, "s", 4)?,
        }),
        1 => Kind::CapacityBuffer(v1::CapacityBuffer {
            namespace: "default".to_owned(),
            name: name(u, "b", 1)?,
            shape_id: name(u, "s", 4)?,
            replicas: u.int_in_range(-1..=5)?,
        }),
        2 => node(u)?,
        3 => claim(u)?,
        4 | 5 => shape(u)?,
        6 => pool(u)?,
        _ => pod(u)?,
    };
    Ok(v1::Object { kind: Some(kind) })
}

fn kind(u: &mut Unstructured<'_>) -> Result<v1::InstanceType> {
    let offering = |u: &mut Unstructured<'_>| {
        Ok(v1::Offering {
            zone: pick(u, &["a", "b", "c"])?.to_owned(),
            zone_id: pick(u, &VALUES)?.to_owned(),
            capacity_type: u.int_in_range(0..=4)?,
            price_micro_usd_per_hour: if u.ratio(1, 9)? { i64::arbitrary(u)? } else { amount(u)? },
            available: u.ratio(7, 8)?,
            ..Default::default()
        })
    };
    Ok(v1::InstanceType {
        name: name(u, "type", 3)?,
        labels: labels(u)?,
        capacity: resources(u)?,
        overhead: if u.ratio(1, 4)? { resources(u)? } else { None },
        offerings: some(u, 4, offering)?,
    })
}

/// A question about a small world.
pub fn question(u: &mut Unstructured<'_>) -> Result<Question> {
    let mut objects =
        vec![v1::Object { kind: Some(pool(u)?) }, v1::Object { kind: Some(shape(u)?) }];
    objects.extend(some(u, 20, object)?);
    let effort = *u.choose(&[Effort::Default, Effort::Greedy, Effort::Max])?;
    let counted = |u: &mut Unstructured<'_>| {
        Ok(v1::PodCount { shape_id: name(u, "s", 4)?, count: u.int_in_range(0..=6)? })
    };
    Ok(Question {
        objects,
        pods: some(u, 2, counted)?,
        catalogue: v1::Catalogue {
            catalogue_id: "c".to_owned(),
            types: some(u, 5, kind)?,
            ..Default::default()
        },
        effort,
        now_ms: u.int_in_range(0..=9_000_000)?,
        explain: some(u, 1, |u| name(u, "s", 4))?,
        ..Question::default()
    })
}
