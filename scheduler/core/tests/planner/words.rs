//! The small words of a scenario: quantities, requirements, taints, terms.
//!
//! Invariant: each function reads one word and fails the test when it cannot.

use std::collections::BTreeSet;

use longshore_core::labels::{self, Labels};
use longshore_core::pool::{BudgetNodes, NodeBudget};
use longshore_core::requirement::{Operator, Requirement};
use longshore_core::requirements::Requirements;
use longshore_core::taint::{Taint, TaintEffect, Toleration};

pub fn topology_key(short: &str) -> String {
    match short {
        "zone" => labels::ZONE,
        "host" => labels::HOSTNAME,
        "bought" => labels::CAPACITY_TYPE,
        "arch" => labels::ARCH,
        "type" => labels::INSTANCE_TYPE,
        "half" => labels::CAPACITY_HALF,
        "quarter" => labels::CAPACITY_QUARTER,
        "eighth" => labels::CAPACITY_EIGHTH,
        other => other,
    }
    .to_owned()
}

/// `key=v1,v2`, `key!=v`, `key>4`, `key<4`, `key>=4`, `key<=4`, `!key` for DoesNotExist or `key`
/// for Exists; `@3` at the end for minValues.
pub fn requirement(text: &str) -> (String, Requirement) {
    let (text, least) = match text.split_once('@') {
        Some((text, least)) => (text, Some(least.parse().unwrap())),
        None => (text, None),
    };
    let split = |sign, operator| {
        let (key, values) = text.split_once(sign)?;
        Some((key, Requirement::new(operator, values.split(',')).unwrap()))
    };
    let found = split("!=", Operator::NotIn)
        .or_else(|| split(">=", Operator::Gte))
        .or_else(|| split("<=", Operator::Lte))
        .or_else(|| split("=", Operator::In))
        .or_else(|| split(">", Operator::Gt))
        .or_else(|| split("<", Operator::Lt))
        .or_else(|| Some((text.strip_prefix('!')?, Requirement::does_not_exist())))
        .unwrap_or_else(|| (text, Requirement::exists()));
    let key = match found.0 {
        "zone" => labels::ZONE,
        "arch" => labels::ARCH,
        "bought" => labels::CAPACITY_TYPE,
        "type" => labels::INSTANCE_TYPE,
        "family" => "karpenter.k8s.aws/instance-family",
        "size" => "karpenter.k8s.aws/instance-size",
        "pool" => labels::NODE_POOL,
        "host" => labels::HOSTNAME,
        "cpus" => "karpenter.k8s.aws/instance-cpu",
        other => other,
    };
    (key.to_owned(), found.1.with_min_values(least))
}

/// Requirements joined by `&`.
pub fn requirements(text: &str) -> Requirements {
    text.split('&').map(requirement).collect()
}

/// `key=value:effect`; NoSchedule without an effect.
pub fn taint(text: &str) -> Taint {
    let (text, effect) = effect(text);
    let (key, value) = text.split_once('=').unwrap_or((text, ""));
    let effect = effect.unwrap_or(TaintEffect::NoSchedule);
    Taint { key: key.to_owned(), value: value.to_owned(), effect }
}

/// `key=value:effect`, `all` for every key; every effect without one.
pub fn toleration(text: &str) -> Toleration {
    let (text, effect) = effect(text);
    let (key, value) = text.split_once('=').unwrap_or((text, ""));
    let key = if key == "all" { "" } else { key };
    let exists = value.is_empty();
    Toleration { key: key.to_owned(), exists, value: value.to_owned(), effect }
}

fn effect(text: &str) -> (&str, Option<TaintEffect>) {
    let Some((text, effect)) = text.split_once(':') else { return (text, None) };
    let effect = match effect {
        "NoSchedule" => TaintEffect::NoSchedule,
        "PreferNoSchedule" => TaintEffect::PreferNoSchedule,
        "NoExecute" => TaintEffect::NoExecute,
        _ => panic!("unknown effect {effect}"),
    };
    (text, Some(effect))
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
        "memory" | "ephemeral-storage" => bytes(text),
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
