//! What is told of each cluster that has a session here, by Karpenter's names where it is the same.
//!
//! Invariant: each series has the cluster as its first label. Gauges are those of the newest plan,
//! and go with the session unless a newer one of the cluster has begun; counters go some time after
//! it, so that no increase is lost to those who ask now and then.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use longshore_core::answer::Disruption;
use longshore_core::vocabulary::pool::DisruptionReason;
use longshore_runtime::metrics::Metrics;
use longshore_runtime::metrics::series::{Labels, Series, usd};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use tokio::time::Instant;

/// How long counters of a cluster stay that has left: some scrapes, and longer than a watcher takes
/// to come back.
const LEFT_KEPT: Duration = Duration::from_secs(30 * 60);
/// The label that each series has first.
const CLUSTER: &str = "cluster";
/// Whose doing a plan is in Karpenter's words: there, others schedule as well.
const CONTROLLER: &str = "provisioner";

type Amount = Gauge<f64, AtomicU64>;
type Dollars = Counter<f64, AtomicU64>;

/// Metrics of all clusters. Clones count together.
#[derive(Clone, Debug)]
pub struct Clusters {
    decisions: Series<Counter>,
    savings: Series<Dollars>,
    launch_cost: Series<Dollars>,
    launch_bound: Series<Dollars>,
    scheduling: Series<Histogram>,
    until_launch: Series<Histogram>,
    limits: Series<Amount>,
    usage: Series<Amount>,
    cost: Series<Amount>,
    allowed: Series<Amount>,
    queue: Series<Amount>,
    unschedulable: Series<Amount>,
    nodes: Series<Amount>,
    synced: Series<Amount>,
    idle: Series<Amount>,
    draining: Series<Amount>,
    stopped: Series<Amount>,
    sessions: Arc<Mutex<BTreeMap<String, Latest>>>,
}

/// The latest session of a cluster.
#[derive(Debug)]
struct Latest {
    epoch: u64,
    /// When it ended.
    left: Option<Instant>,
}

/// What a plan knows of a cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Of each pool.
    pub pools: BTreeMap<String, PoolFigures>,
    /// Nodes, whoever made them.
    pub nodes: f64,
    /// Pods that wait for a node.
    pub waiting: f64,
    /// Those of them that have no place.
    pub unplaced: f64,
    /// What is paid for room that no pod asks for, in dollars per hour, by what keeps its nodes;
    /// none where that was not looked at.
    pub idle_usd_per_hour: Option<BTreeMap<String, f64>>,
}

/// What goes on in a cluster while plans come and go.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Standing {
    /// Nodes that are being drained, by what keeps them.
    pub draining: BTreeMap<String, f64>,
    /// NodePools whose nodes are being replaced by others, and whether that was stopped.
    pub rollouts: BTreeMap<String, bool>,
}

/// What a plan knows of a pool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PoolFigures {
    /// Limits by resource: cores, bytes, or pieces.
    pub limits: Vec<(String, f64)>,
    /// Capacity of its nodes by resource, and their number as `nodes`.
    pub usage: Vec<(String, f64)>,
    /// Price of its instances, in dollars per hour.
    pub cost_usd_per_hour: f64,
    /// How many more of its nodes may be disrupted now, by reason.
    pub allowed: Vec<(&'static str, f64)>,
}

impl Default for Clusters {
    fn default() -> Self {
        Self {
            decisions: Series::default(),
            savings: Series::default(),
            launch_cost: Series::default(),
            launch_bound: Series::default(),
            scheduling: Series::of_durations(),
            until_launch: Series::of_durations(),
            limits: Series::default(),
            usage: Series::default(),
            cost: Series::default(),
            allowed: Series::default(),
            queue: Series::default(),
            unschedulable: Series::default(),
            nodes: Series::default(),
            synced: Series::default(),
            idle: Series::default(),
            draining: Series::default(),
            stopped: Series::default(),
            sessions: Arc::default(),
        }
    }
}

impl Clusters {
    /// Metrics that `metrics` shows.
    #[must_use]
    pub fn registered(metrics: &Metrics) -> Self {
        let own = Self::default();
        own.register_counters(metrics);
        own.register_gauges(metrics);
        let gauge = |name: &str, help: &str, of: &Series<Amount>| {
            metrics.register_as(&format!("karpenter_{name}"), help, of.clone());
        };
        gauge("nodepools_limit", "Limits of NodePools", &own.limits);
        gauge("nodepools_usage", "Capacity of the nodes of NodePools", &own.usage);
        let help = "Price of the instances of NodePools, in dollars per hour";
        gauge("nodepools_cost_total", help, &own.cost);
        let help = "Nodes of NodePools that may be disrupted now, by reason";
        gauge("nodepools_allowed_disruptions", help, &own.allowed);
        gauge("scheduler_queue_depth", "Pods that the newest plan found waiting", &own.queue);
        let help = "Pods that the newest plan has no place for";
        gauge("scheduler_unschedulable_pods_count", help, &own.unschedulable);
        gauge("cluster_state_node_count", "Nodes of the cluster", &own.nodes);
        gauge("cluster_state_synced", "1 while the cluster's view is whole", &own.synced);
        own
    }

    fn register_gauges(&self, metrics: &Metrics) {
        let help = "What is paid for room that no pod asks for, in dollars per hour, by what keeps \
                    its nodes";
        metrics.register("idle_usd_per_hour", help, self.idle.clone());
        let help = "Nodes that are being drained, by what keeps them";
        metrics.register("draining_nodes", help, self.draining.clone());
        let help = "1 for NodePools whose rollout was stopped, 0 for those whose rollout goes on";
        metrics.register("nodepools_rollout_stopped", help, self.stopped.clone());
    }

    fn register_counters(&self, metrics: &Metrics) {
        let help = "Disruptions by choice that were begun";
        let name = "karpenter_voluntary_disruption_decisions_total";
        metrics.register_as(name, help, self.decisions.clone());
        let help = "Time from the beginning of a plan until it is there";
        let name = "karpenter_scheduler_scheduling_duration_seconds";
        metrics.register_as(name, help, self.scheduling.clone());
        let help = "Time from the creation of a pod until the launch for it is asked for";
        metrics.register("pending_to_launch_seconds", help, self.until_launch.clone());
        let help = "What disruptions save that were begun, in dollars per hour, by reason";
        metrics.register("savings_usd_per_hour_total", help, self.savings.clone());
        let help = "What nodes cost that were launched for pods, in dollars per hour";
        metrics.register("launch_cost_usd_per_hour_total", help, self.launch_cost.clone());
        let help = "What nodes for the same pods cost at the least, as proved";
        metrics.register("launch_bound_usd_per_hour_total", help, self.launch_bound.clone());
    }

    /// Metrics of a cluster for one of its sessions.
    #[must_use]
    pub fn of(&self, cluster: &str, epoch: u64) -> OfCluster {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|name, latest| {
            let kept = latest.left.is_none_or(|left| left.elapsed() < LEFT_KEPT);
            if !kept {
                self.drop_counters(name);
            }
            kept
        });
        sessions.insert(cluster.to_owned(), Latest { epoch, left: None });
        drop(sessions);
        let own = OfCluster { cluster: cluster.to_owned(), epoch, clusters: self.clone() };
        own.synced(false);
        own
    }

    fn drop_counters(&self, cluster: &str) {
        self.decisions.drop_all(CLUSTER, cluster);
        for dollars in [&self.savings, &self.launch_cost, &self.launch_bound] {
            dollars.drop_all(CLUSTER, cluster);
        }
        for histograms in [&self.scheduling, &self.until_launch] {
            histograms.drop_all(CLUSTER, cluster);
        }
    }

    fn drop_gauges(&self, cluster: &str) {
        let of_pools = [&self.limits, &self.usage, &self.cost, &self.allowed];
        let of_cluster = [&self.queue, &self.unschedulable, &self.nodes, &self.synced];
        let standing = [&self.idle, &self.draining, &self.stopped];
        of_pools
            .into_iter()
            .chain(of_cluster)
            .chain(standing)
            .for_each(|it| it.drop_all(CLUSTER, cluster));
    }
}

/// Metrics of one cluster, for as long as its session lasts.
#[derive(Debug, Default)]
pub struct OfCluster {
    cluster: String,
    epoch: u64,
    clusters: Clusters,
}

impl Drop for OfCluster {
    fn drop(&mut self) {
        let clusters = &self.clusters;
        let mut sessions = clusters.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(latest) = sessions.get_mut(&self.cluster) else { return };
        if latest.epoch != self.epoch && latest.left.is_none() {
            return;
        }
        latest.left = Some(Instant::now());
        clusters.drop_gauges(&self.cluster);
    }
}

impl OfCluster {
    /// Whether the view of the cluster is whole.
    pub fn synced(&self, whole: bool) {
        self.clusters.synced.with(&self.labels()).set(f64::from(u8::from(whole)));
    }

    /// A plan took so long.
    pub fn scheduled(&self, took: Duration) {
        let [cluster] = self.labels();
        let labels = [cluster, ("controller", CONTROLLER)];
        self.clusters.scheduling.with(&labels).observe(took.as_secs_f64());
    }

    /// A launch is asked for; its pods have waited so long.
    pub fn launching(&self, waited: impl Iterator<Item = Duration>) {
        let until_launch = self.clusters.until_launch.with(&self.labels());
        waited.for_each(|waited| until_launch.observe(waited.as_secs_f64()));
    }

    /// Nodes are launched for pods at this cost, and proved to cost no less than the bound, both in
    /// millionths of a dollar per hour.
    pub fn launched(&self, cost_micro_usd: i64, bound_micro_usd: i64) {
        self.clusters.launch_cost.with(&self.labels()).inc_by(usd(cost_micro_usd));
        self.clusters.launch_bound.with(&self.labels()).inc_by(usd(bound_micro_usd));
    }

    /// A disruption is begun.
    pub fn decided(&self, disruption: &Disruption) {
        let [cluster] = self.labels();
        let reason = reason(disruption.reason);
        let decision = if disruption.replacements.is_empty() { "delete" } else { "replace" };
        let labels = [
            cluster,
            ("decision", decision),
            ("reason", reason),
            ("consolidation_type", consolidation_type(disruption)),
        ];
        self.clusters.decisions.with(&labels).inc();
        let saved = disruption.saving_micro_usd_per_hour.max(0);
        self.clusters.savings.with(&[cluster, ("reason", reason)]).inc_by(usd(saved));
    }

    /// There is a new plan.
    pub fn planned(&self, figures: &Figures) {
        let clusters = &self.clusters;
        let amounts = |of: fn(&PoolFigures) -> &Vec<(String, f64)>| {
            let pools = figures.pools.iter();
            pools.flat_map(move |(pool, it)| {
                of(it).iter().map(|(resource, amount)| {
                    (self.of_pool(pool, Some(("resource_type", resource))), gauge(*amount))
                })
            })
        };
        clusters.limits.replace(CLUSTER, &self.cluster, amounts(|it| &it.limits));
        clusters.usage.replace(CLUSTER, &self.cluster, amounts(|it| &it.usage));
        let pools = figures.pools.iter();
        let cost = pools.map(|(name, it)| (self.of_pool(name, None), gauge(it.cost_usd_per_hour)));
        clusters.cost.replace(CLUSTER, &self.cluster, cost);
        let allowed = figures.pools.iter().flat_map(|(pool, it)| {
            it.allowed.iter().map(|(reason, nodes)| {
                (self.of_pool(pool, Some(("reason", *reason))), gauge(*nodes))
            })
        });
        clusters.allowed.replace(CLUSTER, &self.cluster, allowed);
        clusters.nodes.with(&self.labels()).set(figures.nodes);
        let [cluster] = self.labels();
        let labels = [cluster, ("controller", CONTROLLER)];
        clusters.queue.with(&labels).set(figures.waiting);
        clusters.unschedulable.with(&labels).set(figures.unplaced);
        if let Some(idle) = &figures.idle_usd_per_hour {
            clusters.idle.replace(CLUSTER, &self.cluster, self.each("held_by", idle));
        }
    }

    /// What goes on now.
    pub fn stands(&self, standing: &Standing) {
        let Standing { draining, rollouts } = standing;
        let clusters = &self.clusters;
        clusters.draining.replace(CLUSTER, &self.cluster, self.each("blocker", draining));
        let stopped = rollouts.iter().map(|(pool, stopped)| {
            (self.of_pool(pool, None), gauge(f64::from(u8::from(*stopped))))
        });
        clusters.stopped.replace(CLUSTER, &self.cluster, stopped);
    }

    /// Amounts by the value of a label.
    fn each<'a>(
        &'a self,
        label: &'static str,
        amounts: &'a BTreeMap<String, f64>,
    ) -> impl Iterator<Item = (Labels, Amount)> + 'a {
        amounts.iter().map(move |(value, amount)| {
            let labels = [(CLUSTER, self.cluster.clone()), (label, value.clone())];
            (labels.into_iter().collect(), gauge(*amount))
        })
    }

    fn labels(&self) -> [(&'static str, &str); 1] {
        [(CLUSTER, &self.cluster)]
    }

    fn of_pool(&self, pool: &str, more: Option<(&'static str, &str)>) -> Labels {
        let all = [(CLUSTER, self.cluster.as_str()), ("nodepool", pool)].into_iter().chain(more);
        all.map(|(key, value)| (key, value.to_owned())).collect()
    }
}

fn gauge(amount: f64) -> Amount {
    let gauge = Amount::default();
    gauge.set(amount);
    gauge
}

/// A reason as Karpenter's counters have it.
const fn reason(reason: DisruptionReason) -> &'static str {
    match reason {
        DisruptionReason::Empty => "empty",
        DisruptionReason::Underutilized => "underutilized",
        DisruptionReason::Drifted => "drifted",
        DisruptionReason::Expired => "expired",
        DisruptionReason::Interrupted => "interrupted",
        DisruptionReason::Excess => "excess",
    }
}

/// How nodes were found that are not worth their price; empty for other reasons.
const fn consolidation_type(disruption: &Disruption) -> &'static str {
    match (disruption.reason, disruption.claims.len()) {
        (DisruptionReason::Empty, _) => "empty",
        (DisruptionReason::Underutilized, 0 | 1) => "single",
        (DisruptionReason::Underutilized, _) => "multi",
        (
            DisruptionReason::Drifted
            | DisruptionReason::Expired
            | DisruptionReason::Interrupted
            | DisruptionReason::Excess,
            _,
        ) => "",
    }
}

#[cfg(test)]
mod tests;
