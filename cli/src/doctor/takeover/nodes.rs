//! Nodes of pools that no NodeClaim stands for: those of the first API, and those whose claim was
//! lost.
//!
//! Invariant: such a node is never drained nor ended by Longshore; its room counts for pods that
//! are there. An instance without even a node is ended.

use std::collections::BTreeSet;

use longshore_actuator::cloud::TAG_POOL;
use longshore_proto::capacity::v1::InstancePhase;
use longshore_proto::provider_id::instance_id;
use longshore_watcher::api::keys::labels::{NODE_POOL, PROVISIONER_NAME};
use serde_json::Value;

use super::{Row, Verdict, claims};
use crate::doctor::facts::{Facts, Kind, label, name};

/// A row for each, and for each Machine, which stood for a node before there were NodeClaims.
pub fn rows(facts: &Facts) -> Vec<Row> {
    let machines = facts.of(Kind::Machine).map(machine);
    if !facts.read(Kind::NodeClaim) {
        return machines.collect();
    }
    let claimed: BTreeSet<&str> = facts.of(Kind::NodeClaim).flat_map(named_by).collect();
    let unclaimed = facts.of(Kind::Node).filter(|node| {
        let id = node["spec"]["providerID"].as_str().unwrap_or_default();
        let plain = node["metadata"]["name"].as_str().unwrap_or_default();
        let pooled = label(node, NODE_POOL).or_else(|| label(node, PROVISIONER_NAME)).is_some();
        pooled && !claimed.contains(id) && !claimed.contains(plain)
    });
    machines.chain(unclaimed.map(node)).chain(instances(facts)).collect()
}

/// Instances of the cluster that neither a claim nor a node stands for: Longshore ends them, as
/// Karpenter would.
fn instances(facts: &Facts) -> Vec<Row> {
    let Some(account) = facts.account().filter(|account| !account.cluster.is_empty()) else {
        return Vec::new();
    };
    let all = account.instances.iter().flatten().flatten();
    let alive = all.filter(|it| {
        matches!(it.phase, InstancePhase::Pending | InstancePhase::Running)
            && claims::is_of(it, &account.cluster)
    });
    let claims = facts.of(Kind::NodeClaim).map(|claim| &claim["status"]["providerID"]);
    let nodes = facts.of(Kind::Node).map(|node| &node["spec"]["providerID"]);
    let named: Vec<&str> = claims.chain(nodes).filter_map(Value::as_str).collect();
    let is_named = |id: &str| named.iter().any(|name| name.ends_with(id));
    let bare = alive.filter(|it| !is_named(&it.instance_id));
    bare.map(|it| {
        let id = &it.instance_id;
        let row = Row { instance: id.clone(), ..Row::adopted(format!("Instance/{id}")) };
        let why = "no NodeClaim and no node stands for it: it is ended once that has been so for two minutes, \
                   as Karpenter does";
        let region = &account.region;
        let remedy = format!(
            "to keep it, before the takeover: aws ec2 delete-tags --region {region} --resources {id} \
             --tags Key={TAG_POOL}"
        );
        row.but(Verdict::AdoptedWithNote, why, remedy)
    })
    .collect()
}

/// Provider id and name of a claim's node.
fn named_by(claim: &Value) -> impl Iterator<Item = &str> {
    let status = &claim["status"];
    [&status["providerID"], &status["nodeName"]].into_iter().filter_map(Value::as_str)
}

fn machine(object: &Value) -> Row {
    let row = Row::adopted(name("Machine", object));
    let why = "Machines of the first API are not read: its node is left alone, and never ended";
    let plain = object["metadata"]["name"].as_str().unwrap_or_default();
    let node = object["status"]["nodeName"].as_str().unwrap_or_default().to_owned();
    let remedy = format!("once its node is gone: kubectl delete machine {plain}");
    Row { node, ..row }.but(Verdict::LeftAlone, why, remedy)
}

fn node(object: &Value) -> Row {
    let plain = object["metadata"]["name"].as_str().unwrap_or_default();
    let id = object["spec"]["providerID"].as_str().unwrap_or_default();
    let id = instance_id(id).to_owned();
    let row =
        Row { node: plain.to_owned(), instance: id.clone(), ..Row::adopted(name("Node", object)) };
    let first = label(object, NODE_POOL).is_none();
    let why = if first {
        "it is of the first API (karpenter.sh/provisioner-name), which had no NodeClaims"
    } else {
        "no NodeClaim stands for it"
    };
    let why = format!("{why}: its pods stay and its room is used; it is never drained nor ended");
    let remedy = format!(
        "when it may go: kubectl drain {plain} --ignore-daemonsets --delete-emptydir-data && \
         kubectl delete node {plain} && aws ec2 terminate-instances --instance-ids {id}"
    );
    row.but(Verdict::LeftAlone, why, remedy)
}
