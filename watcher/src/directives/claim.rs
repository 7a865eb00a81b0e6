//! Creating and deleting NodeClaims.
//!
//! Invariant: a claim's launch id is its identity: creating it again with the same id is done, with
//! another id is refused.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{DeleteParams, ObjectMeta, PostParams};
use kube::{Api, Resource, ResourceExt as _};
use longshore_proto::cluster::v1::{CreateClaim, DeleteClaim};
use longshore_proto::time::duration_ms;
use longshore_proto::types::v1 as wire;
use longshore_runtime::planted;

use super::{DirectiveError, Directives, Outcome};
use crate::api::hash;
use crate::api::keys::annotations::{
    EC2_NODE_CLASS_HASH, EC2_NODE_CLASS_HASH_VERSION, NODE_POOL_HASH, NODE_POOL_HASH_VERSION,
};
use crate::api::keys::conditions;
use crate::api::node_claim::ResourceRequirements;
use crate::api::{
    DurationOrNever, NodeClaim, NodeClaimSpec, NodeClassReference, NodePool, Provisioner, Taint,
    TaintEffect,
};
use crate::events::{Nominated, Workload};
use crate::index::Index;
use crate::lifecycle::drain_end;
use crate::names;
use crate::patch::{Part, Wanted, code, edit, found, set_condition};
use crate::project::claim::api_requirement;
use crate::project::pool::class_group;
use crate::project::quantity::quantities;

impl Directives {
    /// The claims of the cluster.
    #[must_use]
    pub fn claims(&self) -> Api<NodeClaim> {
        Api::all(self.client.clone())
    }

    /// A claim as it was last seen.
    #[must_use]
    pub fn known_claim(&self, name: &str) -> Option<NodeClaim> {
        self.store.read(|index| index.claim(name).map(|claim| claim.as_ref().clone()))
    }

    pub(super) async fn create_claim(&self, create: &CreateClaim) -> Outcome {
        let wanted = create.claim.as_ref();
        let wanted = wanted.ok_or_else(|| refused("MALFORMED", "no claim in create_claim"))?;
        let object = self.store.read(|index| object(wanted, index))?;
        self.store.update(|index| index.plan_more(&wanted.name, &create.pods));
        let outcome = match self.claims().create(&PostParams::default(), &object).await {
            Ok(created) => {
                self.counters.nodes.claim_created(&wanted.pool, &create.reason);
                self.announce(&created, &create.pods);
                Ok(())
            }
            // Without an answer it may have been created all the same.
            Err(error) if matches!(code(&error), Some(409) | None) => {
                self.confirm(wanted, error).await
            }
            Err(error) => Err(error.into()),
        };
        if outcome.is_err() && !planted::is("S29a") {
            self.store.update(|index| index.unplan(&wanted.name));
        }
        outcome
    }

    /// Done before, when the claim of that name is for the same launch.
    async fn confirm(&self, wanted: &wire::NodeClaim, error: kube::Error) -> Outcome {
        let existing = self.claims().get_opt(&wanted.name).await?.ok_or(error)?;
        if existing.annotations().get(names::LAUNCH_ID) == Some(&wanted.launch_id) {
            return Ok(());
        }
        let text = format!("NodeClaim {} exists for another launch", wanted.name);
        Err(refused("CLAIM_EXISTS", &text))
    }

    /// Announces the node to the workloads of its pods, to pods of nobody by their shape: an Event
    /// for each of thousands would be more writes than all the rest.
    fn announce(&self, claim: &NodeClaim, pods: &[String]) {
        let announced = self.store.read(|index| announcements(index, &claim.name_any(), pods));
        announced.into_iter().for_each(|nominated| self.events.nominate(nominated));
    }

    pub(super) async fn delete_claim(&self, delete: &DeleteClaim) -> Outcome {
        let name = &delete.claim;
        let api = self.claims();
        if let Some(assumes) = &delete.assumes {
            self.assume_closed(name, assumes).await?;
        }
        if delete.on_absence {
            self.losses.note(name);
        }
        let wanted = Wanted {
            kind: conditions::DISRUPTION_REASON,
            status: Some(true),
            reason: &delete.reason,
            message: &delete.message,
        };
        let at = self.now();
        let mut known = self.known_claim(name);
        let within_ms = drain_within_ms(delete);
        let is_bound = |it: &NodeClaim| it.annotations().contains_key(names::TERMINATION_TIMESTAMP);
        if within_ms.is_some() || known.as_ref().is_some_and(is_bound) {
            let bound =
                |claim: &mut NodeClaim| bound_drain(claim, at.0.as_millisecond(), within_ms);
            known = edit(&api, name, Part::Main, known, bound).await?;
        }
        let marked = edit(&api, name, Part::Status, known, |claim| {
            let generation = claim.metadata.generation;
            let status = claim.status.get_or_insert_default();
            set_condition(&mut status.conditions, &wanted, generation, &at);
        });
        let Some(claim) = marked.await? else { return Ok(()) };
        if claim.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        found(api.delete(name, &DeleteParams::default()).await)?;
        self.counters.nodes.claim_disrupted(&claim, &delete.reason);
        let note = format!("draining and terminating the node: {}", delete.message);
        self.say_of_claim(&claim, &delete.reason, note);
        Ok(())
    }
}

/// How long a drain may take by its directive, in milliseconds.
fn drain_within_ms(delete: &DeleteClaim) -> Option<i64> {
    let within = delete.drain_within.as_ref().map(duration_ms);
    if delete.at_once { Some(0) } else { within }
}

/// Notes when the drain of a claim ends at the latest, where that is before its own grace ends. A
/// drain without a hurry takes off what was noted for one that never began.
fn bound_drain(claim: &mut NodeClaim, now_ms: i64, within_ms: Option<i64>) {
    let Some(within_ms) = within_ms else { return drain_end::take_off(claim) };
    let own = claim.spec.termination_grace_period.as_ref();
    let own_ms = own.and_then(|grace| i64::try_from(grace.duration().as_millis()).ok());
    let within_ms = own_ms.map_or(within_ms, |own_ms| own_ms.min(within_ms));
    let end_ms = now_ms.saturating_add(within_ms);
    if drain_end::noted_ms(claim).is_none_or(|noted_ms| end_ms < noted_ms) {
        drain_end::note(claim, end_ms);
    }
}

/// A claim for these pods, announced once for each of their workloads.
fn announcements(index: &Index, claim: &str, pods: &[String]) -> Vec<Nominated> {
    let mut all: BTreeMap<(Option<Workload>, &str), Nominated> = BTreeMap::new();
    for pod in pods.iter().filter_map(|uid| index.pod(uid)) {
        let controller = index.shape(&pod.row.shape_id).map_or("", |shape| &shape.owner);
        let namespace = pod.row.namespace.to_string();
        let workload = (!controller.is_empty())
            .then(|| Workload { namespace, controller: controller.to_owned() });
        let shape = if workload.is_none() { &*pod.row.shape_id } else { "" };
        let first = || {
            let (about, workload) = (pod.reference(), workload.clone());
            Nominated { about, workload, pods: 0, claim: claim.to_owned() }
        };
        all.entry((workload.clone(), shape)).or_insert_with(first).pods += 1;
    }
    all.into_values().collect()
}

fn refused(reason: &'static str, message: &str) -> DirectiveError {
    DirectiveError::refused(reason, message)
}

/// The NodeClaim object for a claim.
fn object(wanted: &wire::NodeClaim, index: &Index) -> Result<NodeClaim, DirectiveError> {
    let spec = NodeClaimSpec {
        taints: taints(&wanted.taints),
        startup_taints: taints(&wanted.startup_taints),
        requirements: wanted.requirements.iter().filter_map(api_requirement).collect(),
        resources: requests(wanted.requests.as_ref()),
        node_class_ref: class_reference(&wanted.node_class)?,
        termination_grace_period: wanted
            .termination_grace_period
            .and_then(|d| std::time::Duration::try_from(d).ok())
            .map(Into::into),
        expire_after: wanted
            .expire_after
            .and_then(|d| std::time::Duration::try_from(d).ok())
            .map_or(DurationOrNever::NEVER, Into::into),
    };
    let metadata = ObjectMeta {
        name: Some(wanted.name.clone()),
        labels: Some(labels(wanted)),
        annotations: Some(annotations(wanted, index)),
        finalizers: Some(vec![names::TERMINATION.to_owned()]),
        owner_references: owner(&wanted.pool, index).map(|owner| vec![owner]),
        ..ObjectMeta::default()
    };
    Ok(NodeClaim { metadata, spec, status: None })
}

fn labels(wanted: &wire::NodeClaim) -> BTreeMap<String, String> {
    let mut labels = wanted.labels.clone();
    if !wanted.pool.is_empty() {
        labels.insert(names::NODE_POOL.to_owned(), wanted.pool.clone());
    }
    labels
}

fn annotations(wanted: &wire::NodeClaim, index: &Index) -> BTreeMap<String, String> {
    let ours = [
        (names::LAUNCH_ID, wanted.launch_id.clone()),
        (names::TRACEPARENT, traceparent(wanted)),
        (names::MAX_PRICE, price(wanted.max_price_micro_usd_per_hour)),
        (names::REPLACEMENT, flag(wanted.replacement)),
        (names::DRIFT_HASH, wanted.drift_hash.clone()),
    ];
    let mut all = index.pool_annotations(&wanted.pool);
    all.extend(hashes(wanted, index));
    let set = ours.into_iter().filter(|(_, value)| !value.is_empty());
    all.extend(set.map(|(key, value)| (key.to_owned(), value)));
    all
}

/// The value of an annotation that says yes; none for no.
fn flag(yes: bool) -> String {
    if yes { "true".to_owned() } else { String::new() }
}

/// Karpenter's hashes of pool and class, where these carry them and they hold: so Karpenter, should
/// it come back, tells whether the node is still what they ask for. A claim without hashes it never
/// calls drifted.
fn hashes(wanted: &wire::NodeClaim, index: &Index) -> Vec<(String, String)> {
    let pools = index.pools();
    let pool = pools.pool(&wanted.pool).and_then(|pool| hash::of_pool(pool));
    let class = wanted.node_class.strip_prefix("EC2NodeClass/");
    let class = class.and_then(|name| pools.class_hash(name)).map(str::to_owned);
    let of_pool = pool.map(|hash| {
        [(NODE_POOL_HASH, hash), (NODE_POOL_HASH_VERSION, hash::NODE_POOL_VERSION.to_owned())]
    });
    let of_class = class.map(|hash| {
        let version = hash::NODE_CLASS_VERSION.to_owned();
        [(EC2_NODE_CLASS_HASH, hash), (EC2_NODE_CLASS_HASH_VERSION, version)]
    });
    let all = of_pool.into_iter().chain(of_class).flatten();
    all.map(|(key, value)| (key.to_owned(), value)).collect()
}

fn traceparent(wanted: &wire::NodeClaim) -> String {
    if wanted.traceparent.is_empty() {
        longshore_runtime::propagate::current_traceparent()
    } else {
        wanted.traceparent.clone()
    }
}

fn price(micro_usd_per_hour: i64) -> String {
    if micro_usd_per_hour > 0 { micro_usd_per_hour.to_string() } else { String::new() }
}

fn taints(list: &[wire::Taint]) -> Vec<Taint> {
    let taint = |t: &wire::Taint| {
        let effect = match t.effect() {
            wire::TaintEffect::NoSchedule => TaintEffect::NoSchedule,
            wire::TaintEffect::PreferNoSchedule => TaintEffect::PreferNoSchedule,
            wire::TaintEffect::NoExecute => TaintEffect::NoExecute,
            wire::TaintEffect::Unspecified => return None,
        };
        let value = (!t.value.is_empty()).then(|| t.value.clone());
        Some(Taint { key: t.key.clone(), value, effect, time_added: None })
    };
    list.iter().filter_map(taint).collect()
}

fn requests(resources: Option<&wire::Resources>) -> ResourceRequirements {
    let requests = resources.map(quantities).unwrap_or_default();
    let requests = requests.into_iter().map(|(name, quantity)| (name, quantity.into()));
    ResourceRequirements { requests: requests.collect() }
}

fn class_reference(name: &str) -> Result<NodeClassReference, DirectiveError> {
    let (kind, name) =
        name.split_once('/').ok_or_else(|| refused("MALFORMED", "node_class must be Kind/name"))?;
    let group = class_group(kind).to_owned();
    Ok(NodeClassReference { group, kind: kind.to_owned(), name: name.to_owned() })
}

/// The pool as owner, so that deleting it deletes its claims.
fn owner(pool: &str, index: &Index) -> Option<OwnerReference> {
    let pools = index.pools();
    let owner = pools.pool(pool).and_then(|pool| pool.controller_owner_ref(&()));
    let owner = owner.or_else(|| pools.provisioner(pool)?.controller_owner_ref(&()))?;
    Some(OwnerReference { controller: None, block_owner_deletion: Some(true), ..owner })
}

impl Index {
    /// Annotations that nodes of a pool carry.
    #[must_use]
    pub fn pool_annotations(&self, name: &str) -> BTreeMap<String, String> {
        let pool: Option<&NodePool> = self.pools().pool(name).map(AsRef::as_ref);
        let provisioner: Option<&Provisioner> = self.pools().provisioner(name).map(AsRef::as_ref);
        pool.map(|pool| pool.spec.template.metadata.annotations.clone())
            .or_else(|| provisioner.map(|provisioner| provisioner.spec.annotations.clone()))
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ObjectReference, Pod};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_claim_is_announced_once_for_each_workload_and_each_shape_of_pods_of_nobody() {
        let mut index = Index::default();
        let pods = [
            // Of one Deployment in two revisions, of its namesake elsewhere, and of nobody.
            ("web-1-a", "team", "1", "100m"),
            ("web-2-a", "team", "2", "200m"),
            ("web-1-b", "other", "1", "100m"),
            ("bare-1", "team", "", "100m"),
            ("bare-2", "team", "", "100m"),
            ("bare-3", "team", "", "200m"),
        ];
        for (name, namespace, hash, cpu) in pods {
            let owner = json!([{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "controller": true,
                "name": format!("web-{hash}"), "uid": hash }]);
            let pod = serde_json::from_value::<Pod>(json!({
                "metadata": { "namespace": namespace, "name": name, "uid": name,
                    "labels": if hash.is_empty() { json!({}) } else { json!({ "pod-template-hash": hash }) },
                    "ownerReferences": if hash.is_empty() { json!([]) } else { owner } },
                "spec": { "containers": [{ "name": "main", "resources": { "requests": { "cpu": cpu } } }] },
            }));
            index.apply(ObjectReference::default(), pod.map_err(|error| error.to_string()));
        }
        let uids = pods.map(|(name, ..)| name.to_owned());
        let said = announcements(&index, "c1", &uids).into_iter().map(|it| {
            assert_eq!(it.claim, "c1");
            let workload = it.workload.map(|it| format!("{}/{}", it.namespace, it.controller));
            (workload.unwrap_or_default(), it.about.name.unwrap_or_default(), it.pods)
        });
        let mut said: Vec<_> = said.collect();
        said.sort();
        let line =
            |workload: &str, about: &str, pods| (workload.to_owned(), about.to_owned(), pods);
        let wanted = [
            line("", "bare-1", 2),
            line("", "bare-3", 1),
            line("other/Deployment/web", "web-1-b", 1),
            line("team/Deployment/web", "web-1-a", 2),
        ];
        assert_eq!(said, wanted);
    }

    #[test]
    fn a_drain_is_bounded_by_the_least_of_what_is_known() {
        let claim = |grace: Option<&str>, noted: Option<&str>| -> NodeClaim {
            let mut claim = json!({
                "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
                "metadata": { "name": "c1" },
                "spec": {
                    "requirements": [],
                    "nodeClassRef": { "group": "g", "kind": "EC2NodeClass", "name": "d" },
                },
            });
            if let Some(grace) = grace {
                claim["spec"]["terminationGracePeriod"] = json!(grace);
            }
            if let Some(noted) = noted {
                claim["metadata"]["annotations"] = json!({ names::TERMINATION_TIMESTAMP: noted });
            }
            serde_json::from_value(claim).unwrap()
        };
        let table = [
            (None, None, "1970-01-01T00:01:50Z"),
            (Some("1m"), None, "1970-01-01T00:01:00Z"),
            (Some("1h"), None, "1970-01-01T00:01:50Z"),
            (None, Some("1970-01-01T00:00:30Z"), "1970-01-01T00:00:30Z"),
            (None, Some("1970-01-01T01:00:00Z"), "1970-01-01T00:01:50Z"),
        ];
        for (grace, noted, expected) in table {
            let mut claim = claim(grace, noted);
            bound_drain(&mut claim, 0, Some(110_000));
            assert_eq!(claim.annotations()[names::TERMINATION_TIMESTAMP], expected);
        }
        let mut staying = claim(None, Some("1970-01-01T00:00:30Z"));
        let mut going = staying.clone();
        going.metadata.deletion_timestamp = Some(crate::patch::time(0));
        for (claim, bound) in [(&mut staying, false), (&mut going, true)] {
            bound_drain(claim, 0, None);
            assert_eq!(!claim.annotations().is_empty(), bound, "what never began is over");
        }
    }
}
