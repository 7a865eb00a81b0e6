//! The small words of a scenario: quantities, requirements, taints, terms.
//!
//! Invariant: each function reads one word and fails the test when it cannot.

use std::collections::BTreeSet;

use longshore_core::labels::{self, Labels};
use longshore_core::pool::{BudgetNodes, NodeBudget};
use longshore_core::requirement::{Operator, Requirement};
use longshore_core::selector::LabelSelector;
use longshore_core::taint::{Taint, TaintEffect, Toleration};
use longshore_core::world::shape::{Namespaces, PodAffinityTerm, TopologySpread};

/// `zone:1` or `host:2`, over pods of the same app.
pub fn spread(value: &str, app: &str, schedule_anyway: bool) -> TopologySpread {
    let (key, skew) = value.split_once(':').unwrap();
    TopologySpread {
        max_skew: skew.parse().unwrap(),
        topology_key: topology_key(key),
        schedule_anyway,
        selector: LabelSelector::label("app", app),
        min_domains: None,
        honor_node_affinity: true,
        honor_node_taints: false,
    }
}

/// `zone:app`.
pub fn term(value: &str) -> PodAffinityTerm {
    let (key, app) = value.split_once(':').unwrap();
    PodAffinityTerm {
        topology_key: topology_key(key),
        selector: Some(LabelSelector::label("app", app)),
        namespaces: Namespaces::Own,
        weight: 0,
    }
}

pub fn topology_key(short: &str) -> String {
    match short {
        "zone" => labels::ZONE,
        "host" => labels::HOSTNAME,
        other => other,
    }
    .to_owned()
}

/// `key=v1,v2`, `key!=v`, `key>4`, `key<4` or `key` for Exists.
pub fn requirement(text: &str) -> (String, Requirement) {
    let split = |sign, operator| {
        let (key, values) = text.split_once(sign)?;
        Some((key, Requirement::new(operator, values.split(',')).unwrap()))
    };
    let found = split("!=", Operator::NotIn)
        .or_else(|| split("=", Operator::In))
        .or_else(|| split(">", Operator::Gt))
        .or_else(|| split("<", Operator::Lt))
        .unwrap_or_else(|| (text, Requirement::exists()));
    let key = match found.0 {
        "zone" => labels::ZONE,
        "arch" => labels::ARCH,
        "bought" => labels::CAPACITY_TYPE,
        "type" => labels::INSTANCE_TYPE,
        "family" => "karpenter.k8s.aws/instance-family",
        "size" => "karpenter.k8s.aws/instance-size",
        other => other,
    };
    (key.to_owned(), found.1)
}

pub fn taint(text: &str) -> Taint {
    let (key, value) = text.split_once('=').unwrap_or((text, ""));
    Taint { key: key.to_owned(), value: value.to_owned(), effect: TaintEffect::NoSchedule }
}

pub fn toleration(text: &str) -> Toleration {
    let (key, value) = text.split_once('=').unwrap_or((text, ""));
    let key = if key == "all" { "" } else { key };
    let exists = value.is_empty();
    Toleration { key: key.to_owned(), exists, value: value.to_owned(), effect: None }
}

pub fn budget(text: &str) -> NodeBudget {
    let nodes = match text.strip_suffix('%') {
        Some(percent) => BudgetNodes::Percent(percent.parse().unwrap()),
        None => BudgetNodes::Count(text.parse().unwrap()),
    };
    NodeBudget { nodes, reasons: BTreeSet::new(), active: true }
}

pub fn pairs<'a>(words: &'a [&'a str]) -> impl Iterator<Item = (&'a str, &'a str)> {
    assert!(words.len().is_multiple_of(2), "properties and values must pair up: {words:?}");
    words.chunks(2).map(|pair| (pair[0], pair[1]))
}

pub fn label_map(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

pub fn labels_of(text: &str) -> Labels {
    text.split(',')
        .map(|pair| pair.split_once('=').unwrap())
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .collect()
}

pub fn quantity(name: &str, text: &str) -> i64 {
    match name {
        "cpu" => cpu(text),
        "memory" => bytes(text),
        _ => text.parse().unwrap(),
    }
}

pub fn cpu(text: &str) -> i64 {
    text.strip_suffix('m')
        .map_or_else(|| text.parse::<i64>().unwrap() * 1000, |m| m.parse().unwrap())
}

pub fn bytes(text: &str) -> i64 {
    let (number, unit) = text.split_at(text.len() - 2);
    let shift = if unit == "Gi" { 30 } else { 20 };
    number.parse::<i64>().unwrap() << shift
}

pub fn price(text: &str) -> i64 {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    format!("{whole}{part:0<6}").parse().unwrap()
}

pub fn millis(text: &str) -> i64 {
    let (number, unit) = text.split_at(text.len() - 1);
    number.parse::<i64>().unwrap()
        * match unit {
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => panic!("unknown unit of time: {text}"),
        }
}
