//! Room on nodes that are to open, and pods that belong elsewhere.
//!
//! Invariant: a pod belongs elsewhere while it waits and the claim that it was planned for has no
//! node in service yet.

use std::collections::BTreeSet;

use longshore_proto::types::v1 as wire;
use longshore_proto::types::v1::ObjectKind;
use longshore_proto::types::v1::object::Kind;

use super::{Index, Key, PodEntry};
use crate::api::NodeClaim;
use crate::project::requests::add;

impl Index {
    /// Shapes of the pods that wait for claims whose nodes have yet to open, but for the pods in
    /// `apart`.
    #[must_use]
    pub fn awaited_elsewhere(&self, apart: &BTreeSet<&str>) -> BTreeSet<&str> {
        let is_open = |claim: &NodeClaim| {
            claim.status.as_ref().is_some_and(|status| status.node_name.is_some())
        };
        let is_coming =
            |claim: &NodeClaim| claim.metadata.deletion_timestamp.is_none() && !is_open(claim);
        let coming = |name: &&str| self.claim(name).is_some_and(|claim| is_coming(claim));
        let planned = self.planned_claims().filter(coming);
        let pods = planned.flat_map(|claim| self.planned_for(claim)).filter(|pod| pod.waits());
        let elsewhere = pods.filter(|pod| !apart.contains(&*pod.row.uid));
        elsewhere.map(|pod| &*pod.row.shape_id).collect()
    }

    /// True when a node has room for one more pod of any of the shapes, whatever else they ask of a
    /// node.
    #[must_use]
    pub fn has_room(&self, node: &str, shapes: &BTreeSet<&str>) -> bool {
        let Some(Kind::Node(row)) = self.view.get(&Key::new(ObjectKind::Node, node)) else {
            return false;
        };
        let Some(allocatable) = row.allocatable else { return false };
        let mut used = wire::Resources::default();
        let requests = |pod: &PodEntry| self.shape(&pod.row.shape_id)?.requests.as_ref();
        self.pods_on(node).filter_map(requests).for_each(|requests| add(&mut used, requests));
        let mut wanted = shapes.iter().filter_map(|shape| self.shape(shape)?.requests.as_ref());
        wanted.any(|wanted| {
            let mut sum = used.clone();
            add(&mut sum, wanted);
            is_within(&sum, &allocatable)
        })
    }
}

fn is_within(sum: &wire::Resources, most: &wire::Resources) -> bool {
    let extended = |(name, amount): (&String, &i64)| {
        *amount <= most.extended.get(name).copied().unwrap_or_default()
    };
    sum.cpu_millis <= most.cpu_millis
        && sum.memory_bytes <= most.memory_bytes
        && sum.ephemeral_storage_bytes <= most.ephemeral_storage_bytes
        && sum.pods <= most.pods
        && sum.extended.iter().all(extended)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{Node, ObjectReference, Pod};
    use serde_json::{Value, json};

    use super::*;
    use crate::index::Watched;

    fn apply<K: Watched + serde::de::DeserializeOwned>(index: &mut Index, object: Value) {
        let object = serde_json::from_value::<K>(object).map_err(|error| error.to_string());
        index.apply(ObjectReference::default(), object);
    }

    fn pod(name: &str, cpu: &str, node: Option<&str>) -> Value {
        json!({
            "metadata": { "namespace": "default", "name": name, "uid": name },
            "spec": { "nodeName": node, "containers": [
                { "name": "main", "resources": { "requests": { "cpu": cpu } } },
            ] },
        })
    }

    fn claim(name: &str, node: Option<&str>) -> Value {
        json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": { "name": name },
            "spec": { "requirements": [],
                "nodeClassRef": { "group": "g", "kind": "k", "name": "default" } },
            "status": { "nodeName": node },
        })
    }

    /// A node of two cores with a pod of one, and two pods that wait for another claim.
    fn index() -> Index {
        let mut index = Index::default();
        apply::<Node>(
            &mut index,
            json!({
                "metadata": { "name": "n1" },
                "status": { "allocatable": { "cpu": "2", "memory": "4Gi", "pods": "8" } },
            }),
        );
        apply::<Pod>(&mut index, pod("here", "1", Some("n1")));
        apply::<Pod>(&mut index, pod("small", "1", None));
        apply::<Pod>(&mut index, pod("large", "1500m", None));
        apply::<NodeClaim>(&mut index, claim("c2", None));
        index
    }

    fn draws(index: &Index, apart: &[&str]) -> bool {
        index.has_room("n1", &index.awaited_elsewhere(&apart.iter().copied().collect()))
    }

    #[test]
    fn a_node_draws_the_pods_that_fit_it_and_that_wait_for_another_node() {
        let mut index = index();
        assert!(!draws(&index, &[]), "they wait for nobody");
        index.plan_for("c2", &["large".to_owned()], false);
        assert!(!draws(&index, &[]), "it does not fit");
        index.plan_for("c2", &["large".to_owned(), "small".to_owned()], false);
        assert!(draws(&index, &[]));
        assert!(!draws(&index, &["small"]), "it is the node's own");
        apply::<NodeClaim>(&mut index, claim("c2", Some("n2")));
        assert!(!draws(&index, &[]), "the other is open, too");
        apply::<NodeClaim>(&mut index, claim("c2", None));
        apply::<Pod>(&mut index, pod("small", "1", Some("n2")));
        assert!(!draws(&index, &[]), "it has come there");
    }
}
