//! NodeClaims and nodes that come and go, by Karpenter's names.
//!
//! Invariant: counted by whoever carries the step out, when the API server has said that it is
//! done; a step that is repeated and changes nothing is not counted again. Series of a pool go some
//! time after the pool.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;
use longshore_runtime::metrics::Metrics;
use longshore_runtime::metrics::series::Series;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::Histogram;

use super::reason::shown;
use crate::api::NodeClaim;
use crate::names;
use crate::project::claim::pool_of;

/// How long series of a pool stay that is gone, in milliseconds: some scrapes.
const GONE_KEPT_MS: i64 = 10 * 60 * 1000;

/// Counters of nodes. Clones count together.
#[derive(Clone, Debug)]
pub struct NodeCounters {
    claims_created: Series<Counter>,
    claims_disrupted: Series<Counter>,
    claims_terminated: Series<Counter>,
    claims_termination: Series<Histogram>,
    created: Series<Counter>,
    drained: Series<Counter>,
    terminated: Series<Counter>,
    lifetimes: Series<Histogram>,
    /// Since when pools with series have been gone, by the steady clock.
    gone: Arc<Mutex<BTreeMap<String, i64>>>,
    /// Claims counted as drained that are not let go yet.
    counted: Arc<Mutex<BTreeSet<String>>>,
}

impl Default for NodeCounters {
    fn default() -> Self {
        Self {
            claims_created: Series::default(),
            claims_disrupted: Series::default(),
            claims_terminated: Series::default(),
            claims_termination: Series::of_durations(),
            created: Series::default(),
            drained: Series::default(),
            terminated: Series::default(),
            lifetimes: Series::of_durations(),
            gone: Arc::default(),
            counted: Arc::default(),
        }
    }
}

impl NodeCounters {
    /// Counters that `metrics` shows.
    #[must_use]
    pub fn registered(metrics: &Metrics) -> Self {
        let own = Self::default();
        let count = |name: &str, help: &str, of: &Series<Counter>| {
            metrics.register_as(&format!("karpenter_{name}_total"), help, of.clone());
        };
        count("nodeclaims_created", "NodeClaims created, by reason", &own.claims_created);
        let help = "NodeClaims that were told to go, by reason";
        count("nodeclaims_disrupted", help, &own.claims_disrupted);
        let help = "NodeClaims let go after their instances ended";
        count("nodeclaims_terminated", help, &own.claims_terminated);
        count("nodes_created", "Nodes that joined for a NodeClaim", &own.created);
        count("nodes_drained", "Nodes without a pod left that a drain must move", &own.drained);
        count("nodes_terminated", "Nodes removed with their NodeClaims", &own.terminated);
        let measure = |name: &str, help: &str, of: &Series<Histogram>| {
            metrics.register_as(&format!("karpenter_{name}_duration_seconds"), help, of.clone());
        };
        let help = "Time from the deletion of a NodeClaim until it is let go";
        measure("nodeclaims_termination", help, &own.claims_termination);
        measure("nodes_lifetime", "Age of nodes when they are removed", &own.lifetimes);
        own
    }

    /// A claim was created; `reason` is that of the disruption it makes up for, empty for none.
    pub fn claim_created(&self, pool: &str, reason: &str) {
        let reason = if reason.is_empty() { "provisioned".into() } else { shown(reason) };
        self.claims_created.with(&[("nodepool", pool), ("reason", &reason)]).inc();
    }

    /// A claim was told to go.
    pub fn claim_disrupted(&self, claim: &NodeClaim, reason: &str) {
        let (reason, labels) = (shown(reason), claim.labels());
        let capacity_type = capacity_type(claim);
        let labels = [
            ("nodepool", pool_of(labels)),
            ("reason", reason.as_ref()),
            ("capacity_type", capacity_type),
        ];
        self.claims_disrupted.with(&labels).inc();
    }

    /// A node joined for a claim.
    pub fn joined(&self, claim: &NodeClaim) {
        let labels = [("nodepool", pool_of(claim.labels())), ("zone", zone(claim))];
        self.created.with(&labels).inc();
    }

    /// The node of a claim is drained. `lives` says of claims whether they are still there.
    pub fn drained(&self, claim: &NodeClaim, lives: impl Fn(&str) -> bool) {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        counted.retain(|name| lives(name));
        if counted.insert(claim.name_any()) {
            self.drained.with(&[("nodepool", pool_of(claim.labels()))]).inc();
        }
    }

    /// A claim is let go.
    pub fn claim_terminated(&self, claim: &NodeClaim, now_ms: i64) {
        let pool = pool_of(claim.labels());
        let labels =
            [("nodepool", pool), ("capacity_type", capacity_type(claim)), ("zone", zone(claim))];
        self.claims_terminated.with(&labels).inc();
        if let Some(took) = since(claim.metadata.deletion_timestamp.as_ref(), now_ms) {
            self.claims_termination.with(&[("nodepool", pool)]).observe(took.as_secs_f64());
        }
    }

    /// The node of a claim is removed.
    pub fn terminated(&self, claim: &NodeClaim, node: &Node, now_ms: i64) {
        let pool = pool_of(claim.labels());
        self.terminated.with(&[("nodepool", pool), ("zone", zone(claim))]).inc();
        if let Some(age) = since(node.metadata.creation_timestamp.as_ref(), now_ms) {
            self.lifetimes.with(&[("nodepool", pool)]).observe(age.as_secs_f64());
        }
    }

    /// Drops series of pools that have been gone for a while. `exists` says of a pool whether it or
    /// a claim of it is there.
    pub fn forget_gone(&self, exists: impl Fn(&str) -> bool, steady_ms: i64) {
        let counters = [
            &self.claims_created,
            &self.claims_disrupted,
            &self.claims_terminated,
            &self.created,
            &self.drained,
            &self.terminated,
        ];
        let histograms = [&self.claims_termination, &self.lifetimes];
        let shown = counters.iter().flat_map(|it| it.firsts());
        let shown: BTreeSet<String> =
            shown.chain(histograms.iter().flat_map(|it| it.firsts())).collect();
        let mut gone = self.gone.lock().unwrap_or_else(PoisonError::into_inner);
        gone.retain(|pool, _| shown.contains(pool) && !exists(pool));
        for pool in shown.iter().filter(|pool| !exists(pool)) {
            let since_ms = *gone.entry(pool.clone()).or_insert(steady_ms);
            if steady_ms - since_ms > GONE_KEPT_MS {
                counters.iter().for_each(|it| it.drop_all("nodepool", pool));
                histograms.iter().for_each(|it| it.drop_all("nodepool", pool));
            }
        }
    }
}

fn zone(claim: &NodeClaim) -> &str {
    claim.labels().get(names::ZONE).map_or("", String::as_str)
}

fn capacity_type(claim: &NodeClaim) -> &str {
    claim.labels().get(names::CAPACITY_TYPE).map_or("", String::as_str)
}

/// How long ago something was, by clocks that may differ.
fn since(then: Option<&Time>, now_ms: i64) -> Option<Duration> {
    let ago_ms = now_ms.saturating_sub(then?.0.as_millisecond());
    Some(Duration::from_millis(u64::try_from(ago_ms).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claim(name: &str, pool: &str) -> NodeClaim {
        serde_json::from_value(json!({
            "metadata": { "name": name, "deletionTimestamp": "1970-01-01T00:00:10Z", "labels": {
                "karpenter.sh/nodepool": pool, "karpenter.sh/capacity-type": "spot",
                "topology.kubernetes.io/zone": "z1" } },
            "spec": { "nodeClassRef": { "group": "g", "kind": "k", "name": "n" }, "requirements": [] },
        }))
        .unwrap()
    }

    #[test]
    fn the_life_of_a_claim_is_counted_by_its_labels() {
        let metrics = Metrics::new();
        let counters = NodeCounters::registered(&metrics);
        let claim = claim("a", "web");
        counters.claim_created("web", "");
        counters.claim_created("web", "Drifted");
        counters.joined(&claim);
        counters.claim_disrupted(&claim, "Underutilized");
        counters.drained(&claim, |_| true);
        counters.drained(&claim, |_| true);
        counters.terminated(&claim, &Node::default(), 0);
        counters.claim_terminated(&claim, 73_000);
        let text = metrics.text();
        for line in [
            "karpenter_nodeclaims_created_total{nodepool=\"web\",reason=\"provisioned\"} 1",
            "karpenter_nodeclaims_created_total{nodepool=\"web\",reason=\"drifted\"} 1",
            "karpenter_nodes_created_total{nodepool=\"web\",zone=\"z1\"} 1",
            "karpenter_nodeclaims_disrupted_total{nodepool=\"web\",reason=\"underutilized\",\
             capacity_type=\"spot\"} 1",
            "karpenter_nodes_drained_total{nodepool=\"web\"} 1",
            "karpenter_nodes_terminated_total{nodepool=\"web\",zone=\"z1\"} 1",
            "karpenter_nodeclaims_terminated_total{nodepool=\"web\",capacity_type=\"spot\",\
             zone=\"z1\"} 1",
            "karpenter_nodeclaims_termination_duration_seconds_sum{nodepool=\"web\"} 63.0",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }

    #[test]
    fn series_of_a_pool_go_some_time_after_it() {
        let counters = NodeCounters::default();
        for pool in ["old", "new"] {
            counters.joined(&claim("a", pool));
            counters.claim_terminated(&claim("a", pool), 0);
        }
        let shown = || counters.created.firsts().into_iter().collect::<Vec<_>>().join(" ");
        counters.forget_gone(|pool| pool == "new", 0);
        counters.forget_gone(|_| true, GONE_KEPT_MS + 1);
        counters.forget_gone(|pool| pool == "new", GONE_KEPT_MS + 2);
        assert_eq!(shown(), "new old", "it was there again meanwhile");
        counters.forget_gone(|pool| pool == "new", 2 * GONE_KEPT_MS + 3);
        assert_eq!(shown(), "new");
        assert_eq!(counters.claims_termination.firsts().len(), 1);
        assert_eq!(counters.gone.lock().unwrap().len(), 1);
        counters.forget_gone(|pool| pool == "new", 2 * GONE_KEPT_MS + 4);
        assert!(counters.gone.lock().unwrap().is_empty());
    }
}
