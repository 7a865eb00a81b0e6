//! Metrics and health over plain HTTP: `/metrics` in OpenMetrics text, `/healthz`, `/readyz`.
//!
//! Invariant: a registry belongs to one process and is passed, never global. A name is ours, with
//! `longshore_` before it, or exactly Karpenter's where it means the same.

pub mod series;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

use anyhow::Context;
use axum::Router;
use axum::http::{StatusCode, header};
use axum::routing::get;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::{Metric, Registry};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::pulse::{Late, Pulses};

/// A process's metrics, and what keeps it from being ready.
#[derive(Clone, Default)]
pub struct Metrics {
    registered: Arc<RwLock<Registered>>,
    unready: Arc<RwLock<Option<String>>>,
    /// What each metric that is registered from here on carries.
    label: Option<(&'static str, String)>,
}

#[derive(Default)]
struct Registered {
    registry: Registry,
    /// As samples show them, but for what histograms add to theirs.
    names: BTreeSet<String>,
}

impl Metrics {
    /// An empty registry.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same metrics; those that are registered by the handle carry a label.
    #[must_use]
    pub fn labelled(&self, key: &'static str, value: &str) -> Self {
        Self { label: Some((key, value.to_owned())), ..self.clone() }
    }

    /// Adds a metric of ours and returns it: its name gets `longshore_` before it.
    pub fn register<M: Metric + TypedMetric + Clone>(
        &self,
        name: &str,
        help: &str,
        metric: M,
    ) -> M {
        self.register_as(&format!("longshore_{name}"), help, metric)
    }

    /// Adds a metric under exactly this name and returns it.
    pub fn register_as<M: Metric + TypedMetric + Clone>(
        &self,
        name: &str,
        help: &str,
        metric: M,
    ) -> M {
        let counts = matches!(M::TYPE, MetricType::Counter);
        // Samples of counters end so by themselves.
        let plain = name.strip_suffix("_total").filter(|_| counts).unwrap_or(name);
        let mut known = self.registered.write().unwrap_or_else(PoisonError::into_inner);
        known.names.insert(if counts { format!("{plain}_total") } else { plain.to_owned() });
        let label = self.label.iter().cloned();
        let labels = label.map(|(key, value)| (Cow::Borrowed(key), Cow::Owned(value)));
        let registry = known.registry.sub_registry_with_labels(labels);
        registry.register(plain, help, metric.clone());
        metric
    }

    /// Shows which build this is; `commit` is empty where that is not known.
    pub fn register_build(&self, version: &str, commit: &str) {
        let help = "1, with what this program was built from";
        let build: series::Series<Gauge> = series::Series::default();
        build.with(&[("version", version), ("commit", commit)]).set(1);
        self.register_as("karpenter_build_info", help, build);
    }

    /// Names of all metrics, those without a value yet included; histograms without suffix.
    #[must_use]
    pub fn names(&self) -> BTreeSet<String> {
        self.registered.read().unwrap_or_else(PoisonError::into_inner).names.clone()
    }

    /// Says why the process is not ready, or that it is.
    pub fn set_unready(&self, why: Option<String>) {
        *self.unready.write().unwrap_or_else(PoisonError::into_inner) = why;
    }

    /// The metrics as OpenMetrics text.
    #[must_use]
    pub fn text(&self) -> String {
        let known = self.registered.read().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = prometheus_client::encoding::text::encode(&mut text, &known.registry);
        text
    }

    fn readiness(&self) -> (StatusCode, String) {
        let unready = self.unready.read().unwrap_or_else(PoisonError::into_inner);
        unready.as_ref().map_or_else(
            || (StatusCode::OK, "ready\n".to_owned()),
            |why| (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
        )
    }

    /// Serves the three pages until the token is cancelled.
    ///
    /// # Errors
    /// When the listener fails.
    pub async fn serve(
        self,
        listener: TcpListener,
        token: CancellationToken,
        pulses: Pulses,
    ) -> anyhow::Result<()> {
        let (text, ready) = (self.clone(), self);
        let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        let app = Router::new()
            .route(
                "/metrics",
                get(move || async move { ([(header::CONTENT_TYPE, content_type)], text.text()) }),
            )
            .route("/healthz", get(move || async move { health(pulses.late()) }))
            .route("/readyz", get(move || async move { ready.readiness() }));
        axum::serve(listener, app)
            .with_graceful_shutdown(token.cancelled_owned())
            .await
            .context("metrics server")
    }
}

/// What a process is worth in which something may have stalled.
fn health(late: Option<Late>) -> (StatusCode, String) {
    late.map_or_else(
        || (StatusCode::OK, "ok\n".to_owned()),
        |late| (StatusCode::SERVICE_UNAVAILABLE, format!("{late}\n")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::metrics::counter::Counter;

    #[test]
    fn registered_metrics_are_rendered_with_the_prefix() {
        let metrics = Metrics::new();
        let plans: Counter = metrics.register("plans", "Plans made", Counter::default());
        plans.inc();
        assert!(metrics.text().contains("longshore_plans_total 1"));
    }

    #[test]
    fn a_metric_may_have_a_name_of_another_program() {
        let metrics = Metrics::new();
        let labelled = metrics.labelled("cluster", "prod");
        let help = "Nodes";
        let created: Counter =
            labelled.register_as("karpenter_nodes_created_total", help, Counter::default());
        created.inc();
        let cost: Gauge =
            metrics.register_as("karpenter_nodepools_cost_total", help, Gauge::default());
        cost.set(3);
        metrics.register_build("1.0", "abc");
        let text = metrics.text();
        for line in [
            "karpenter_nodes_created_total{cluster=\"prod\"} 1",
            "karpenter_nodepools_cost_total 3",
            "karpenter_build_info{version=\"1.0\",commit=\"abc\"} 1",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        let names = metrics.names();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let wanted = [
            "karpenter_build_info",
            "karpenter_nodepools_cost_total",
            "karpenter_nodes_created_total",
        ];
        assert_eq!(names, wanted);
    }

    #[test]
    fn readiness_carries_the_reason() {
        let metrics = Metrics::new();
        metrics.set_unready(Some("no session".to_owned()));
        assert_eq!(metrics.readiness().0, StatusCode::SERVICE_UNAVAILABLE);
        metrics.set_unready(None);
        assert_eq!(metrics.readiness().0, StatusCode::OK);
    }

    #[test]
    fn what_has_stalled_is_not_healthy() {
        assert_eq!(health(None).0, StatusCode::OK);
        let lasted = std::time::Duration::from_secs(121);
        let (status, text) = health(Some(Late { name: "reconcile", lasted }));
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(text, "reconcile has not come round for 121 s\n");
    }
}
