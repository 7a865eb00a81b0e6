//! W3C trace context across gRPC metadata and across fields of messages and objects.
//!
//! Invariant: a missing or malformed context is no error; the trace then starts here.

use std::collections::BTreeMap;

use opentelemetry::Context;
use opentelemetry::propagation::{Extractor, Injector, TextMapPropagator};
use opentelemetry::trace::TraceContextExt;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tonic::metadata::{MetadataKey, MetadataMap, MetadataValue};
use tonic::service::Interceptor;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

const TRACEPARENT: &str = "traceparent";

/// `traceparent` of a span; empty when it is not part of a trace.
#[must_use]
pub fn traceparent_of(span: &Span) -> String {
    let mut carrier = BTreeMap::new();
    TraceContextPropagator::new().inject_context(&span.context(), &mut FieldCarrier(&mut carrier));
    carrier.remove(TRACEPARENT).unwrap_or_default()
}

/// `traceparent` of the current span; empty when it is not part of a trace.
#[must_use]
pub fn current_traceparent() -> String {
    traceparent_of(&Span::current())
}

/// Makes the span a child of the context in `traceparent`; does nothing when that is empty.
pub fn set_parent(span: &Span, traceparent: &str) {
    if let Some(context) = parse(traceparent) {
        // Fails only when no telemetry layer is installed; there is nothing to connect then.
        let _ = span.set_parent(context);
    }
}

/// Adds a link to the context in `traceparent`; does nothing when that is empty.
pub fn add_link(span: &Span, traceparent: &str) {
    if let Some(context) = parse(traceparent) {
        span.add_link(context.span().span_context().clone());
    }
}

/// Makes the span a child of the caller's, as gRPC metadata names it.
pub fn set_parent_from(span: &Span, metadata: &MetadataMap) {
    if let Some(value) = metadata.get(TRACEPARENT).and_then(|value| value.to_str().ok()) {
        set_parent(span, value);
    }
}

/// Client interceptor that sends the current span's context along.
#[derive(Clone, Copy, Debug, Default)]
pub struct InjectContext;

impl Interceptor for InjectContext {
    fn call(
        &mut self,
        mut request: tonic::Request<()>,
    ) -> Result<tonic::Request<()>, tonic::Status> {
        inject(request.metadata_mut());
        Ok(request)
    }
}

/// Writes the current span's context into gRPC metadata.
pub fn inject(metadata: &mut MetadataMap) {
    let mut carrier = BTreeMap::new();
    let context = Span::current().context();
    TraceContextPropagator::new().inject_context(&context, &mut FieldCarrier(&mut carrier));
    for (key, value) in carrier {
        let key = MetadataKey::from_bytes(key.as_bytes());
        if let (Ok(key), Ok(value)) = (key, MetadataValue::try_from(value)) {
            metadata.insert(key, value);
        }
    }
}

fn parse(traceparent: &str) -> Option<Context> {
    let mut carrier = BTreeMap::from([(TRACEPARENT.to_owned(), traceparent.to_owned())]);
    let context = TraceContextPropagator::new().extract(&FieldCarrier(&mut carrier));
    context.span().span_context().is_valid().then_some(context)
}

struct FieldCarrier<'a>(&'a mut BTreeMap<String, String>);

impl Injector for FieldCarrier<'_> {
    fn set(&mut self, key: &str, value: String) {
        if !value.is_empty() {
            self.0.insert(key.to_owned(), value);
        }
    }
}

impl Extractor for FieldCarrier<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(String::as_str).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_contexts_are_parsed() {
        assert!(parse("").is_none());
        assert!(parse("00-zz").is_none());
        assert!(parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").is_some());
    }
}
