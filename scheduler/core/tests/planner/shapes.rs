//! Reads the properties of a pod shape.
//!
//! Invariant: each property is one word and one value; what is not understood fails the test.

use longshore_core::vocabulary::requirements::selector::LabelSelector;
use longshore_core::world::shape::{
    HostPort, Namespaces, PodAffinityTerm, PodShape, PreferredTerm, TopologySpread,
};

use super::words::*;

/// Sets one property of a shape.
pub fn property(shape: &mut PodShape, property: &str, value: &str) {
    let own = shape.id.to_string();
    match property {
        "cpu" => shape.requests.cpu_millis = cpu(value),
        "mem" => shape.requests.memory_bytes = bytes(value),
        "disk" => shape.requests.ephemeral_storage_bytes = bytes(value),
        "gpu" => shape.requests.set("nvidia.com/gpu", value.parse().unwrap()),
        "use" => {
            let (name, amount) = value.split_once('=').unwrap();
            shape.requests.set(name, quantity(name, amount));
        }
        "label" => shape.labels.extend(labels_of(value)),
        "ns" => value.clone_into(&mut shape.namespace),
        "owner" => value.clone_into(&mut shape.owner),
        "scheduler" => value.clone_into(&mut shape.scheduler),
        "never" => shape.unschedulable = Some(value.replace('_', " ")),
        "select" => shape.node_selector.extend(labels_of(value)),
        "need" => shape.required_node_terms.push(requirements(value)),
        "volume" => shape.volume_terms.push(requirements(value)),
        "prefer" => shape.preferred_node_terms.push(preferred(value)),
        "tolerate" => shape.tolerations.push(toleration(value)),
        "spread" => shape.topology_spread.push(spread(value, &own, false)),
        "spread-wish" => shape.topology_spread.push(spread(value, &own, true)),
        "near" => shape.required_affinity.push(term(value, 0)),
        "apart" => shape.required_anti_affinity.push(term(value, 0)),
        "near-wish" => shape.preferred_affinity.push(weighted_term(value)),
        "apart-wish" => shape.preferred_anti_affinity.push(weighted_term(value)),
        "port" => shape.host_ports.push(port(value)),
        "daemon" => shape.is_daemon = value == "yes",
        "priority" => shape.priority = value.parse().unwrap(),
        _ => panic!("shape: unknown {property}"),
    }
}

/// `50*arch=arm64`, or without a weight for 1.
fn preferred(value: &str) -> PreferredTerm {
    let (weight, term) = value.split_once('*').unwrap_or(("1", value));
    PreferredTerm { weight: weight.parse().unwrap(), requirements: requirements(term) }
}

/// `8080`, `8080/UDP`, `8080@10.0.0.1`.
fn port(value: &str) -> HostPort {
    let (value, host_ip) = value.split_once('@').unwrap_or((value, ""));
    let (port, protocol) = value.split_once('/').unwrap_or((value, "TCP"));
    HostPort {
        port: port.parse().unwrap(),
        protocol: protocol.to_owned(),
        host_ip: host_ip.to_owned(),
    }
}

/// `zone:1` or `host:2`, over pods of the same app; then, each after a colon, `min=3`,
/// `affinity=ignore`, `taints=honor`, `app=other` and `hash=x` for a matchLabelKeys value.
fn spread(value: &str, own: &str, schedule_anyway: bool) -> TopologySpread {
    let mut parts = value.split(':');
    let (key, skew) = (parts.next().unwrap(), parts.next().unwrap());
    let mut spread = TopologySpread {
        max_skew: skew.parse().unwrap(),
        topology_key: topology_key(key),
        schedule_anyway,
        selector: LabelSelector::label("app", own),
        min_domains: None,
        honor_node_affinity: true,
        honor_node_taints: false,
    };
    for part in parts {
        match part.split_once('=').unwrap() {
            ("min", least) => spread.min_domains = Some(least.parse().unwrap()),
            ("affinity", "ignore") => spread.honor_node_affinity = false,
            ("taints", "honor") => spread.honor_node_taints = true,
            ("app", "*") => spread.selector = LabelSelector::default(),
            ("app", app) => spread.selector = LabelSelector::label("app", app),
            ("hash", hash) => {
                let (key, hash) = requirement(&format!("hash={hash}"));
                spread.selector.match_expressions.push((key, hash));
            }
            other => panic!("spread: unknown {other:?}"),
        }
    }
    spread
}

/// `50*zone:app`, or without a weight for 1.
fn weighted_term(value: &str) -> PodAffinityTerm {
    let (weight, value) = value.split_once('*').unwrap_or(("1", value));
    term(value, weight.parse().unwrap())
}

/// `zone:app`, over pods of the own namespace; `zone:app:other,more` over pods of those;
/// `zone:app:*` over those of all.
fn term(value: &str, weight: i32) -> PodAffinityTerm {
    let mut parts = value.split(':');
    let (key, app) = (parts.next().unwrap(), parts.next().unwrap());
    let namespaces = match parts.next() {
        None => Namespaces::Own,
        Some("*") => Namespaces::All,
        Some(names) => Namespaces::Listed(names.split(',').map(ToOwned::to_owned).collect()),
    };
    let selector =
        if app == "*" { LabelSelector::default() } else { LabelSelector::label("app", app) };
    PodAffinityTerm {
        topology_key: topology_key(key),
        selector: Some(selector),
        namespaces,
        weight,
    }
}
