//! Metrics of one name that labels tell apart, and that go when what they are about has gone.
//!
//! Invariant: never more than [`SERIES_MAX`] of one name, whatever is named in the labels. What is
//! beyond is counted into a metric that nobody sees.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::{MetricType, TypedMetric};

/// Most series of one name: three thousand pools with a few resources each. A registry that grows
/// with every pool there ever was is a leak.
pub const SERIES_MAX: usize = 20_000;

/// Upper bounds of durations, in seconds: from an answer of the planner to a slow drain. Fewer than
/// Karpenter has, since each is a series.
const DURATIONS_SECONDS: [f64; 16] = [
    0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0,
];

/// A histogram of durations, in seconds.
#[must_use]
pub fn durations() -> Histogram {
    Histogram::new(DURATIONS_SECONDS)
}

/// A number as gauges have it.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "exact up to 9e15; more is as good as that")]
pub const fn number(amount: i64) -> f64 {
    amount as f64
}

/// Dollars of millionths of a dollar.
#[must_use]
pub fn usd(micro_usd: i64) -> f64 {
    number(micro_usd) / 1e6
}

/// Labels of a series, in the order in which they are shown.
pub type Labels = Vec<(&'static str, String)>;

/// Metrics of one name by their labels. Clones share them.
pub struct Series<M> {
    by_labels: Arc<RwLock<BTreeMap<Labels, M>>>,
    new: fn() -> M,
}

impl<M> Clone for Series<M> {
    fn clone(&self) -> Self {
        Self { by_labels: Arc::clone(&self.by_labels), new: self.new }
    }
}

impl<M: Default> Default for Series<M> {
    fn default() -> Self {
        Self::made_by(M::default)
    }
}

impl<M> fmt::Debug for Series<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Series").finish_non_exhaustive()
    }
}

impl Series<Histogram> {
    /// Histograms of durations, in seconds.
    #[must_use]
    pub fn of_durations() -> Self {
        Self::made_by(durations)
    }
}

impl<M> Series<M> {
    /// No series yet; `new` makes each.
    fn made_by(new: fn() -> M) -> Self {
        Self { by_labels: Arc::default(), new }
    }

    /// Puts `new` in place of all series whose first label is this one.
    pub fn replace(
        &self,
        key: &'static str,
        value: &str,
        new: impl IntoIterator<Item = (Labels, M)>,
    ) {
        let first = (key, value.to_owned());
        let mut all = self.by_labels.write().unwrap_or_else(PoisonError::into_inner);
        let own = all.range(vec![first.clone()]..).map(|(labels, _)| labels);
        let own: Vec<Labels> = own.take_while(|it| it.first() == Some(&first)).cloned().collect();
        for labels in &own {
            all.remove(labels);
        }
        let new = new.into_iter().filter(|(labels, _)| labels.first() == Some(&first));
        let room = SERIES_MAX.saturating_sub(all.len());
        all.extend(new.take(room));
    }

    /// Drops all series whose first label is this one.
    pub fn drop_all(&self, key: &'static str, value: &str) {
        self.replace(key, value, []);
    }

    /// Values of the first label.
    #[must_use]
    pub fn firsts(&self) -> BTreeSet<String> {
        let all = self.by_labels.read().unwrap_or_else(PoisonError::into_inner);
        all.keys().filter_map(|labels| labels.first()).map(|(_, value)| value.clone()).collect()
    }
}

impl<M: Clone> Series<M> {
    /// The metric with these labels.
    #[must_use]
    pub fn with(&self, labels: &[(&'static str, &str)]) -> M {
        let labels: Labels =
            labels.iter().map(|(key, value)| (*key, (*value).to_owned())).collect();
        let known = self.by_labels.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(metric) = known.get(&labels) {
            return metric.clone();
        }
        drop(known);
        let mut all = self.by_labels.write().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= SERIES_MAX {
            return (self.new)();
        }
        all.entry(labels).or_insert_with(self.new).clone()
    }
}

impl<M: TypedMetric> TypedMetric for Series<M> {
    const TYPE: MetricType = M::TYPE;
}

impl<M: EncodeMetric + TypedMetric> EncodeMetric for Series<M> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let all = self.by_labels.read().unwrap_or_else(PoisonError::into_inner);
        all.iter().try_for_each(|(labels, metric)| metric.encode(encoder.encode_family(labels)?))
    }

    fn metric_type(&self) -> MetricType {
        M::TYPE
    }

    fn is_empty(&self) -> bool {
        self.by_labels.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::metrics::counter::Counter;

    use super::*;
    use crate::metrics::Metrics;

    #[test]
    fn what_has_gone_is_shown_no_more() {
        let metrics = Metrics::new();
        let nodes: Series<Counter> =
            metrics.register_as("karpenter_nodes_created_total", "Nodes", Series::default());
        nodes.with(&[("nodepool", "a")]).inc();
        nodes.with(&[("nodepool", "b")]).inc_by(2);
        nodes.with(&[("nodepool", "b")]).inc();
        let text = metrics.text();
        assert!(text.contains("karpenter_nodes_created_total{nodepool=\"a\"} 1"), "{text}");
        assert!(text.contains("karpenter_nodes_created_total{nodepool=\"b\"} 3"), "{text}");
        nodes.drop_all("nodepool", "b");
        let text = metrics.text();
        assert!(text.contains("nodepool=\"a\"") && !text.contains("nodepool=\"b\""), "{text}");
        assert_eq!(nodes.firsts(), BTreeSet::from(["a".to_owned()]));
    }

    #[test]
    fn what_is_replaced_is_that_of_the_first_label_alone() {
        let series: Series<Counter> = Series::default();
        for cluster in ["a", "b", "ba"] {
            for pool in ["x", "y"] {
                series.with(&[("cluster", cluster), ("nodepool", pool)]).inc();
            }
        }
        let of = |pool: &str| vec![("cluster", "b".to_owned()), ("nodepool", pool.to_owned())];
        series.replace("cluster", "b", [(of("z"), Counter::default())]);
        let known = series.by_labels.read().unwrap();
        let shown: Vec<String> =
            known.keys().map(|labels| format!("{}/{}", labels[0].1, labels[1].1)).collect();
        assert_eq!(shown, ["a/x", "a/y", "b/z", "ba/x", "ba/y"]);
    }

    #[test]
    fn labels_without_end_take_no_memory_without_end() {
        let series: Series<Counter> = Series::default();
        for name in 0..2 * SERIES_MAX {
            series.with(&[("nodepool", &name.to_string())]).inc();
        }
        let known = series.by_labels.read().unwrap().len();
        assert_eq!(known, SERIES_MAX);
    }
}
