//! Evictions that were asked for, by Karpenter's names.
//!
//! Invariant: each answer of the API server is counted once, by its HTTP status.

use longshore_runtime::metrics::Metrics;
use longshore_runtime::metrics::series::Series;
use prometheus_client::metrics::counter::Counter;

use crate::patch::code;

/// Why a pod is evicted of whose node nobody says why it goes, in Karpenter's words.
const UNSAID: &str = "Forceful Termination";

/// Counters of evictions. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Evictions {
    requests: Series<Counter>,
    drained: Series<Counter>,
}

impl Evictions {
    /// Counters that `metrics` shows.
    #[must_use]
    pub fn registered(metrics: &Metrics) -> Self {
        let own = Self::default();
        let help = "Evictions asked for, by the status that the API server answered";
        metrics.register_as("karpenter_pods_eviction_requests_total", help, own.requests.clone());
        let help = "Pods evicted, by the reason for which their node goes";
        metrics.register_as("karpenter_pods_drained_total", help, own.drained.clone());
        own
    }

    /// The API server has answered; `reason` is why the node goes, empty when nobody said.
    pub fn answered<T>(&self, answer: &kube::Result<T>, reason: &str) {
        let code = match answer {
            Ok(_) => Some(200),
            Err(error) => code(error),
        };
        let code = code.map_or_else(|| "none".to_owned(), |code| code.to_string());
        self.requests.with(&[("code", &code)]).inc();
        if answer.is_ok() {
            let reason = if reason.is_empty() { UNSAID } else { reason };
            self.drained.with(&[("reason", reason)]).inc();
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn answers_are_counted_by_status_and_pods_by_reason() {
        let metrics = Metrics::new();
        let evictions = Evictions::registered(&metrics);
        let full = Status { code: 429, ..Status::default() };
        evictions.answered(&kube::Result::Ok(()), "Empty");
        evictions.answered(&kube::Result::Ok(()), "");
        evictions.answered(&kube::Result::<()>::Err(kube::Error::Api(Box::new(full))), "Empty");
        let text = metrics.text();
        for line in [
            "karpenter_pods_eviction_requests_total{code=\"200\"} 2",
            "karpenter_pods_eviction_requests_total{code=\"429\"} 1",
            "karpenter_pods_drained_total{reason=\"Empty\"} 1",
            "karpenter_pods_drained_total{reason=\"Forceful Termination\"} 1",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }
}
