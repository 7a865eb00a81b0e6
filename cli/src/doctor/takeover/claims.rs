//! NodeClaims: each stands for an instance, which the region has to show with its tags.
//!
//! Invariant: a claim that is not taken over whole is never ended for it; the row says what happens
//! instead.

use longshore_actuator::cloud::{Instance, TAG_CLAIM, TAG_CLUSTER_NAME, TAG_POOL};
use longshore_proto::provider_id::instance_id;
use longshore_watcher::api::keys::annotations::{
    EC2_NODE_CLASS_HASH, EC2_NODE_CLASS_HASH_VERSION, NODE_POOL_HASH, NODE_POOL_HASH_VERSION,
};
use longshore_watcher::api::keys::labels::NODE_POOL;
use longshore_watcher::api::{NodeClaim, crd};
use longshore_watcher::project::claim;
use serde_json::Value;

use super::{Row, Verdict, has_class, unreadable};
use crate::doctor::facts::{Facts, Kind, annotation, label, name};

/// A row for each.
pub fn rows(facts: &Facts) -> impl Iterator<Item = Row> {
    facts.of(Kind::NodeClaim).map(|object| of_claim(facts, object))
}

fn of_claim(facts: &Facts, object: &Value) -> Row {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let provider_id = text("/status/providerID");
    let row = Row {
        node: text("/status/nodeName").to_owned(),
        instance: instance_id(provider_id).to_owned(),
        ..Row::adopted(name("NodeClaim", object))
    };
    let read = crd::decode::<NodeClaim>(object.clone()).map_err(|error| error.to_string());
    let read = read.and_then(|read| claim::claim(&read).map_err(|fault| fault.to_string()));
    let read = match read {
        Ok(read) => read,
        Err(error) => return unreadable(row, error),
    };
    let plain = read.name.as_str();
    if read.deleting {
        let why = "it is being deleted: Longshore goes on draining it, and then ends its instance";
        return row.but(Verdict::AdoptedWithNote, why, "");
    }
    if provider_id.is_empty() {
        let why = "it has no provider id: it is recorded if the region shows an instance that is \
                   tagged with it, else deleted after 15 minutes";
        return row.but(Verdict::AdoptedWithNote, why, format!("kubectl delete nodeclaim {plain}"));
    }
    if let Some((why, remedy)) = of_instance(facts, &row.instance, (plain, &read.pool)) {
        return row.but(Verdict::LeftAlone, why, remedy);
    }
    if !has_class(facts, &read.node_class) {
        let why =
            format!("it names {}, which is not there: its node stays as it is", read.node_class);
        let remedy = format!("create {} as it was", read.node_class);
        return row.but(Verdict::AdoptedWithNote, why, remedy);
    }
    match drift(facts, object) {
        Some((why, remedy)) => row.but(Verdict::AdoptedWithNote, why, remedy),
        None => row,
    }
}

/// What is wrong with the instance of a claim, as far as the region was asked.
fn of_instance(facts: &Facts, id: &str, (claim, pool): (&str, &str)) -> Option<(String, String)> {
    let account = facts.account()?;
    let instances = account.instances.as_ref()?.as_ref().ok()?;
    let Some(found) = instances.iter().find(|it| it.instance_id == id) else {
        let why = format!(
            "{} shows no instance {id} with the tag {TAG_POOL}: Longshore waits, and ends nothing",
            account.region
        );
        let remedy = format!(
            "aws ec2 describe-instances --region {} --instance-ids {id}   # if it is gone: kubectl \
             delete nodeclaim {claim}; if it runs: aws ec2 create-tags --resources {id} --tags \
             Key={TAG_POOL},Value={pool}",
            account.region
        );
        return Some((why, remedy));
    };
    let (why, tag) = mistagged(found, claim, &account.cluster)?;
    let region = &account.region;
    Some((why, format!("aws ec2 create-tags --region {region} --resources {id} --tags {tag}")))
}

/// A tag by which an instance would be another's, and what it should be.
fn mistagged(found: &Instance, claim: &str, cluster: &str) -> Option<(String, String)> {
    // Karpenter writes this tag some time after the launch; the claim knows its instance all the
    // same.
    if !["", claim].contains(&found.tag(TAG_CLAIM)) {
        let why = format!("its instance is tagged {TAG_CLAIM}={}", found.tag(TAG_CLAIM));
        return Some((why, format!("Key={TAG_CLAIM},Value={claim}")));
    }
    if cluster.is_empty() || is_of(found, cluster) {
        return None;
    }
    let why = format!("its instance is not tagged as one of cluster {cluster}");
    Some((why, format!("Key={TAG_CLUSTER_NAME},Value={cluster}")))
}

/// True when an instance's tags say that it is of this cluster.
pub fn is_of(found: &Instance, cluster: &str) -> bool {
    let named = found.tag(TAG_CLUSTER_NAME);
    let owned = || found.tag(&format!("kubernetes.io/cluster/{cluster}")) == "owned";
    named == cluster || named.is_empty() && owned()
}

/// Why Karpenter would call the claim drifted.
fn drift(facts: &Facts, claim: &Value) -> Option<(String, String)> {
    let pool = label(claim, NODE_POOL)?;
    let pool = facts.of(Kind::NodePool).find(|it| it["metadata"]["name"] == pool);
    let class = &claim["spec"]["nodeClassRef"]["name"];
    let class = facts.of(Kind::EC2NodeClass).find(|it| it["metadata"]["name"] == *class);
    let pairs = [
        (pool, "NodePool", NODE_POOL_HASH, NODE_POOL_HASH_VERSION),
        (class, "EC2NodeClass", EC2_NODE_CLASS_HASH, EC2_NODE_CLASS_HASH_VERSION),
    ];
    pairs.into_iter().find_map(|(owner, kind, hash, version)| {
        let owner = owner?;
        let same_version = annotation(owner, version)? == annotation(claim, version)?;
        let differs = same_version && annotation(owner, hash)? != annotation(claim, hash)?;
        differs.then(|| {
            let owner = name(kind, owner);
            let why = format!(
                "by its {hash} it was made before {owner} was changed last: Karpenter calls that \
                 drifted"
            );
            (why, String::new())
        })
    })
}
