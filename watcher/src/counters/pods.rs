//! How long pods wait: for a node, and until they run.
//!
//! Invariant: measured when a change of a known pod is seen, from what the pod itself says; nothing
//! is kept for it. Only the watcher that works measures: its standbys see the same changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use longshore_proto::types::v1::{Pod, PodPhase};
use longshore_runtime::metrics::Metrics;
use longshore_runtime::metrics::series::durations;
use prometheus_client::metrics::histogram::Histogram;

use crate::index::pods::PodRow;

/// Histograms of pods. Clones measure together.
#[derive(Clone, Debug)]
pub struct PodTimes {
    works: Arc<AtomicBool>,
    bound: Histogram,
    provisioned: Histogram,
    started: Histogram,
}

impl Default for PodTimes {
    fn default() -> Self {
        let (bound, provisioned, started) = (durations(), durations(), durations());
        Self { works: Arc::default(), bound, provisioned, started }
    }
}

impl PodTimes {
    /// Histograms that `metrics` shows.
    #[must_use]
    pub fn registered(metrics: &Metrics) -> Self {
        let own = Self::default();
        let help = "Time from the creation of a pod until it is bound to a node";
        metrics.register_as("karpenter_pods_bound_duration_seconds", help, own.bound.clone());
        let help = "The same of pods that kube-scheduler had found no node for";
        let name = "karpenter_pods_provisioning_bound_duration_seconds";
        metrics.register_as(name, help, own.provisioned.clone());
        let help = "Time from the creation of a pod until it runs";
        metrics.register_as("karpenter_pods_startup_duration_seconds", help, own.started.clone());
        own
    }

    /// This watcher works, or no longer.
    pub fn works(&self, works: bool) {
        self.works.store(works, Ordering::Relaxed);
    }

    /// A pod has changed; `now_ms` is when that was seen, in milliseconds since 1970.
    pub fn see(&self, old: Option<&PodRow>, new: &Pod, now_ms: i64) {
        let Some(old) = old.filter(|_| self.works.load(Ordering::Relaxed)) else { return };
        let bound = old.node_name.is_empty() && !new.node_name.is_empty();
        let started = old.phase != PodPhase::Running && new.phase() == PodPhase::Running;
        if !bound && !started {
            return;
        }
        let Some(age_seconds) = age_seconds(new, now_ms) else { return };
        if bound {
            self.bound.observe(age_seconds);
        }
        if bound && old.unschedulable {
            self.provisioned.observe(age_seconds);
        }
        if started {
            self.started.observe(age_seconds);
        }
    }
}

/// How old a pod is, if it says when it was made. Clocks differ: never below zero.
fn age_seconds(pod: &Pod, now_ms: i64) -> Option<f64> {
    let made = pod.create_time.as_ref()?;
    let made_ms = made.seconds.saturating_mul(1000) + i64::from(made.nanos / 1_000_000);
    let age_ms = u64::try_from(now_ms.saturating_sub(made_ms)).unwrap_or(0);
    Some(std::time::Duration::from_millis(age_ms).as_secs_f64())
}

#[cfg(test)]
mod tests {
    use prost_types::Timestamp;

    use super::*;

    fn pod(node: &str, phase: PodPhase, unschedulable: bool) -> Pod {
        Pod {
            node_name: node.to_owned(),
            phase: phase.into(),
            unschedulable,
            create_time: Some(Timestamp { seconds: 100, nanos: 0 }),
            ..Pod::default()
        }
    }

    #[test]
    fn a_pod_is_measured_once_on_its_way() {
        let metrics = Metrics::new();
        let times = PodTimes::registered(&metrics);
        let waits = pod("", PodPhase::Pending, true);
        let placed = pod("n", PodPhase::Pending, true);
        let runs = pod("n", PodPhase::Running, false);
        let [waited, was_placed, ran] = [&waits, &placed, &runs].map(PodRow::from);
        times.see(Some(&waited), &placed, 200_000);
        assert!(metrics.text().contains("bound_duration_seconds_count 0"), "a standby");
        times.works(true);
        times.see(None, &placed, 103_000);
        times.see(Some(&waited), &placed, 103_000);
        times.see(Some(&was_placed), &placed, 104_000);
        times.see(Some(&was_placed), &runs, 107_500);
        times.see(Some(&ran), &runs, 108_000);
        let easy = PodRow::from(&pod("", PodPhase::Pending, false));
        times.see(Some(&easy), &pod("n", PodPhase::Pending, false), 99_000);
        let text = metrics.text();
        for line in [
            "karpenter_pods_bound_duration_seconds_count 2",
            "karpenter_pods_bound_duration_seconds_sum 3.0",
            "karpenter_pods_provisioning_bound_duration_seconds_count 1",
            "karpenter_pods_startup_duration_seconds_count 1",
            "karpenter_pods_startup_duration_seconds_sum 7.5",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }
}
