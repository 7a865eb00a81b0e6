//! Traces as tests and the demo see them: received over OTLP, looked at, drawn.
//!
//! Invariant: spans arrive the way any collector would get them; nothing is read from a process.

pub mod receiver;
pub mod waterfall;

use std::collections::{BTreeMap, BTreeSet};

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, Span};

/// One span with the service that recorded it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanRecord {
    /// Trace, 32 hexadecimal digits.
    pub trace_id: String,
    /// Span, 16 hexadecimal digits.
    pub span_id: String,
    /// Parent span; empty for a root.
    pub parent_id: String,
    /// Name.
    pub name: String,
    /// `service.name` of the process.
    pub service: String,
    /// Start, in nanoseconds since 1970.
    pub start_ns: u64,
    /// End, in nanoseconds since 1970.
    pub end_ns: u64,
    /// Attributes as text.
    pub attributes: BTreeMap<String, String>,
}

/// Name of the attribute that holds EC2's request id.
pub const REQUEST_ID: &str = "aws.request_id";

/// All spans of what was received, in order of start.
#[must_use]
pub fn spans(received: &[ResourceSpans]) -> Vec<SpanRecord> {
    let mut spans: Vec<_> = received
        .iter()
        .flat_map(|resource| {
            let service = service(resource);
            let scopes = resource.scope_spans.iter().flat_map(|scope| &scope.spans);
            scopes.map(move |span| record(span, &service))
        })
        .collect();
    spans.sort_by(|a, b| (a.start_ns, &a.span_id).cmp(&(b.start_ns, &b.span_id)));
    spans
}

/// The spans of one trace.
#[must_use]
pub fn of_trace(spans: &[SpanRecord], trace_id: &str) -> Vec<SpanRecord> {
    spans.iter().filter(|span| span.trace_id == trace_id).cloned().collect()
}

/// The trace that shows most: with an EC2 request id, then by services, then by spans.
#[must_use]
pub fn fullest(spans: &[SpanRecord]) -> Option<String> {
    let ids: BTreeSet<&str> = spans.iter().map(|span| span.trace_id.as_str()).collect();
    let rank = |id: &&str| {
        let trace = of_trace(spans, id);
        (has_request_id(&trace), services(&trace).len(), trace.len())
    };
    ids.into_iter().max_by_key(rank).map(ToOwned::to_owned)
}

/// Services that took part.
#[must_use]
pub fn services(spans: &[SpanRecord]) -> BTreeSet<String> {
    spans.iter().map(|span| span.service.clone()).collect()
}

/// True when a span carries EC2's request id.
#[must_use]
pub fn has_request_id(spans: &[SpanRecord]) -> bool {
    spans.iter().any(|span| span.attributes.get(REQUEST_ID).is_some_and(|id| !id.is_empty()))
}

/// What was received, as OTLP JSON, cut down to one trace.
///
/// # Errors
/// When it cannot be written as JSON.
pub fn otlp_json(received: &[ResourceSpans], trace_id: &str) -> serde_json::Result<String> {
    let mut kept = received.to_vec();
    for resource in &mut kept {
        for scope in &mut resource.scope_spans {
            scope.spans.retain(|span| hex(&span.trace_id) == trace_id);
        }
        resource.scope_spans.retain(|scope| !scope.spans.is_empty());
    }
    kept.retain(|resource| !resource.scope_spans.is_empty());
    serde_json::to_string_pretty(&serde_json::json!({ "resourceSpans": kept }))
}

fn record(span: &Span, service: &str) -> SpanRecord {
    let attributes = span.attributes.iter().map(|attribute| {
        let value = attribute.value.as_ref().and_then(|value| value.value.as_ref());
        (attribute.key.clone(), value.map(text).unwrap_or_default())
    });
    SpanRecord {
        trace_id: hex(&span.trace_id),
        span_id: hex(&span.span_id),
        parent_id: hex(&span.parent_span_id),
        name: span.name.clone(),
        service: service.to_owned(),
        start_ns: span.start_time_unix_nano,
        end_ns: span.end_time_unix_nano,
        attributes: attributes.collect(),
    }
}

fn service(resource: &ResourceSpans) -> String {
    let attributes = resource.resource.iter().flat_map(|resource| &resource.attributes);
    let mut named = attributes.filter(|attribute| attribute.key == "service.name");
    let value = named.next().and_then(|attribute| attribute.value.as_ref()?.value.as_ref());
    value.map(text).unwrap_or_default()
}

fn text(value: &Value) -> String {
    match value {
        Value::StringValue(text) => text.clone(),
        Value::BoolValue(value) => value.to_string(),
        Value::IntValue(value) => value.to_string(),
        Value::DoubleValue(value) => value.to_string(),
        other @ (Value::ArrayValue(_)
        | Value::KvlistValue(_)
        | Value::BytesValue(_)
        | Value::StringValueStrindex(_)) => format!("{other:?}"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
