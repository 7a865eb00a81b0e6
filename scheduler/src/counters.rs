//! What is counted, for metrics.
//!
//! Invariant: each happening is counted in one place, where it is dealt with.

mod clusters;

pub use clusters::{Clusters, Figures, OfCluster, PoolFigures, Standing};

use longshore_runtime::metrics::Metrics;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;

/// Counters of a scheduler. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// Clusters in which nodes are not ended that otherwise would be.
    pub frozen: Gauge,
    /// Nodes and instances that the breaker kept from ending, each once for as long as it is kept.
    pub held_back: Counter,
    /// What is told of each cluster.
    pub clusters: Clusters,
}

impl Counters {
    /// Counters that `metrics` shows.
    #[must_use]
    pub fn registered(metrics: &Metrics) -> Self {
        let own = Self { clusters: Clusters::registered(metrics), ..Self::default() };
        let help = "Clusters in which nodes are not ended that otherwise would be";
        metrics.register("scheduler_frozen_clusters", help, own.frozen.clone());
        let help = "Nodes and instances that seemed gone and that the breaker kept";
        metrics.register("scheduler_breaker_held_back", help, own.held_back.clone());
        own
    }
}

/// One more of a gauge, until it is dropped.
#[derive(Debug)]
pub struct OneMore(Gauge);

impl OneMore {
    /// One more of `gauge`.
    #[must_use]
    pub fn of(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for OneMore {
    fn drop(&mut self) {
        self.0.dec();
    }
}
