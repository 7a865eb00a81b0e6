//! What is counted, for metrics.
//!
//! Invariant: each happening is counted in one place, where it is dealt with.

pub mod evictions;
pub mod nodes;
pub mod pods;
mod reason;

use longshore_proto::cluster::v1::DirectiveStatus;
use longshore_runtime::metrics::Metrics;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use evictions::Evictions;
use nodes::NodeCounters;
use pods::PodTimes;

/// Places on the node of one claim, once all its pods run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// Places planned on the node, and pods that came there besides, where it matters who has
    /// which.
    pub planned: usize,
    /// Those of the places that a pod of the planned shape has.
    pub realised: usize,
    /// Pods that run, wherever that is, because any place was as good as another.
    pub free: usize,
}

/// Counters of a watcher. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// Directives answered, by status.
    pub directives: Family<Vec<(&'static str, &'static str)>, Counter>,
    /// Places planned on new nodes where it matters who has which, and pods that came to these
    /// nodes besides.
    pub planned_pods: Counter,
    /// Those of the places that a pod of the planned shape has.
    pub realised_pods: Counter,
    /// Pods planned on new nodes where any place was as good as another.
    pub free_pods: Counter,
    /// Evictions that were granted.
    pub evictions: Counter,
    /// Events dropped because too many were waiting.
    pub events_dropped: Counter,
    /// Objects that cannot be used now.
    pub left: Gauge,
    /// Evictions by status and reason.
    pub answers: Evictions,
    /// NodeClaims and nodes that come and go.
    pub nodes: NodeCounters,
    /// How long pods wait.
    pub pods: PodTimes,
}

impl Counters {
    /// Counters of the watcher of a cluster that `metrics` shows, each with the cluster's name.
    #[must_use]
    pub fn registered(metrics: &Metrics, cluster: &str) -> Self {
        let metrics = &metrics.labelled("cluster", cluster);
        let own = Self {
            answers: Evictions::registered(metrics),
            nodes: NodeCounters::registered(metrics),
            pods: PodTimes::registered(metrics),
            ..Self::default()
        };
        let help = "Directives answered";
        metrics.register("watcher_directives", help, own.directives.clone());
        let help = "Places planned on new nodes where it matters who has which, and pods besides";
        metrics.register("watcher_planned_pods", help, own.planned_pods.clone());
        let help = "Planned places that a pod of the planned shape has";
        metrics.register("watcher_realised_pods", help, own.realised_pods.clone());
        let help = "Pods planned on new nodes where any place was as good as another";
        metrics.register("watcher_free_pods", help, own.free_pods.clone());
        let help = "Evictions granted while draining";
        metrics.register("watcher_evictions", help, own.evictions.clone());
        let help = "Events dropped because too many were waiting";
        metrics.register("watcher_events_dropped", help, own.events_dropped.clone());
        let help = "Objects left out because they cannot be used";
        metrics.register("watcher_invalid_objects", help, own.left.clone());
        own
    }

    /// A directive was answered.
    pub fn directive(&self, status: DirectiveStatus) {
        let name = match status {
            DirectiveStatus::Done => "done",
            DirectiveStatus::Refused | DirectiveStatus::Unspecified => "refused",
            DirectiveStatus::Expired => "expired",
            DirectiveStatus::Failed => "failed",
        };
        self.directives.get_or_create(&vec![("status", name)]).inc();
    }

    /// The pods of a claim run.
    pub fn placed(&self, places: Places) {
        let add = |counter: &Counter, pods: usize| {
            counter.inc_by(u64::try_from(pods).unwrap_or(u64::MAX));
        };
        add(&self.planned_pods, places.planned);
        add(&self.realised_pods, places.realised);
        add(&self.free_pods, places.free);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_shown() {
        let metrics = Metrics::new();
        let counters = Counters::registered(&metrics, "prod");
        counters.placed(Places { planned: 3, realised: 2, free: 5 });
        counters.directive(DirectiveStatus::Done);
        let text = metrics.text();
        for line in [
            "longshore_watcher_planned_pods_total{cluster=\"prod\"} 3",
            "longshore_watcher_realised_pods_total{cluster=\"prod\"} 2",
            "longshore_watcher_free_pods_total{cluster=\"prod\"} 5",
            "longshore_watcher_directives_total{cluster=\"prod\",status=\"done\"} 1",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }
}
