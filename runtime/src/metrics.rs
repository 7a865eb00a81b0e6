//! Metrics and health over plain HTTP: `/metrics` in OpenMetrics text, `/healthz`, `/readyz`.
//!
//! Invariant: a registry belongs to one process and is passed, never global.

use std::sync::{Arc, PoisonError, RwLock};

use anyhow::Context;
use axum::Router;
use axum::http::{StatusCode, header};
use axum::routing::get;
use prometheus_client::registry::{Metric, Registry};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::pulse::{Late, Pulses};

/// A process's metrics, and what keeps it from being ready.
#[derive(Clone, Default)]
pub struct Metrics {
    registry: Arc<RwLock<Registry>>,
    unready: Arc<RwLock<Option<String>>>,
}

impl Metrics {
    /// An empty registry; metric names start with `longshore_`.
    #[must_use]
    pub fn new() -> Self {
        let registry = Registry::with_prefix("longshore");
        Self { registry: Arc::new(RwLock::new(registry)), unready: Arc::default() }
    }

    /// Adds a metric and returns it.
    pub fn register<M: Metric + Clone>(&self, name: &str, help: &str, metric: M) -> M {
        let mut registry = self.registry.write().unwrap_or_else(PoisonError::into_inner);
        registry.register(name, help, metric.clone());
        metric
    }

    /// Says why the process is not ready, or that it is.
    pub fn set_unready(&self, why: Option<String>) {
        *self.unready.write().unwrap_or_else(PoisonError::into_inner) = why;
    }

    /// The metrics as OpenMetrics text.
    #[must_use]
    pub fn text(&self) -> String {
        let registry = self.registry.read().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = prometheus_client::encoding::text::encode(&mut text, &registry);
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
