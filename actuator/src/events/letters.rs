//! Messages of interruption queues, by Karpenter's names.
//!
//! Invariant: each that is received is counted once, whatever it is about, and once more when it is
//! deleted.

use std::time::Duration;

use longshore_proto::capacity::v1::InterruptionKind;
use longshore_runtime::metrics::Metrics;
use longshore_runtime::metrics::series::{Series, durations};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::Histogram;

/// Counters of messages. Clones count together.
#[derive(Clone, Debug)]
pub struct Letters {
    received: Series<Counter>,
    deleted: Counter,
    waited: Histogram,
}

impl Default for Letters {
    fn default() -> Self {
        Self { received: Series::default(), deleted: Counter::default(), waited: durations() }
    }
}

impl Letters {
    /// Counters that `metrics` shows.
    #[must_use]
    pub fn registered(metrics: &Metrics) -> Self {
        let own = Self::default();
        let help = "Messages received from interruption queues, by what they announce";
        let name = "karpenter_interruption_received_messages_total";
        metrics.register_as(name, help, own.received.clone());
        let help = "Messages deleted from interruption queues";
        let name = "karpenter_interruption_deleted_messages_total";
        metrics.register_as(name, help, own.deleted.clone());
        let help = "Time from an announcement of EC2 until it is read";
        let name = "karpenter_interruption_message_queue_duration_seconds";
        metrics.register_as(name, help, own.waited.clone());
        own
    }

    /// A message was received: what it announces, and how many milliseconds ago that was; nothing
    /// when it is about nothing of ours.
    pub fn received(&self, announced: Option<(InterruptionKind, i64)>) {
        let kind = announced.map_or("no_op", |(kind, _)| message_type(kind));
        self.received.with(&[("message_type", kind)]).inc();
        if let Some((_, ago_ms)) = announced {
            let ago = Duration::from_millis(u64::try_from(ago_ms).unwrap_or(0));
            self.waited.observe(ago.as_secs_f64());
        }
    }

    /// A message was deleted.
    pub fn deleted(&self) {
        self.deleted.inc();
    }
}

/// A kind as Karpenter's metrics have it, which tell two changes of state apart.
const fn message_type(kind: InterruptionKind) -> &'static str {
    match kind {
        InterruptionKind::Spot => "spot_interrupted",
        InterruptionKind::Rebalance => "rebalance_recommendation",
        InterruptionKind::StateChange => "state_change",
        InterruptionKind::ScheduledChange => "scheduled_change",
        InterruptionKind::Unspecified => "no_op",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_counted_by_kind() {
        let metrics = Metrics::new();
        let letters = Letters::registered(&metrics);
        letters.received(Some((InterruptionKind::Spot, 2_000)));
        letters.received(None);
        letters.deleted();
        let text = metrics.text();
        for line in [
            "karpenter_interruption_received_messages_total{message_type=\"spot_interrupted\"} 1",
            "karpenter_interruption_received_messages_total{message_type=\"no_op\"} 1",
            "karpenter_interruption_deleted_messages_total 1",
            "karpenter_interruption_message_queue_duration_seconds_sum 2.0",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }
}
