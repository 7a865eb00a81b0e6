//! Longshore's own share of the time to capacity, read from its traces.
//!
//! Invariant: measured from the first span of the pod's trace to the start of the call to EC2.

use std::collections::BTreeMap;

use super::summary::Share;
use crate::trace::SpanRecord;

/// Name of the watcher's span that begins when pending pods are seen.
const PENDING: &str = "watcher.pod_pending";
/// Name of the actuator's span around the call to EC2.
const CREATE_FLEET: &str = "ec2.create_fleet";

/// How many launches such a call was for.
const ASKED: &str = "ec2.asked";

/// Median and 99th percentile over all launches that a pending pod asked for.
#[must_use]
pub fn share(spans: &[SpanRecord]) -> Share {
    let named = |name: &'static str| spans.iter().filter(move |span| span.name == name);
    let pending: BTreeMap<&str, u64> =
        named(PENDING).map(|span| (span.trace_id.as_str(), span.start_ns)).collect();
    let mut waits_ms: Vec<u64> = named(CREATE_FLEET)
        .filter_map(|span| {
            let since_ns = pending.get(span.trace_id.as_str())?;
            let wait_ms = span.start_ns.saturating_sub(*since_ns) / 1_000_000;
            Some(std::iter::repeat_n(wait_ms, launches(span)))
        })
        .flatten()
        .collect();
    waits_ms.sort_unstable();
    let at = |percent: usize| {
        let index = (waits_ms.len() * percent).div_ceil(100).saturating_sub(1);
        waits_ms.get(index).copied().unwrap_or_default()
    };
    Share { launches: waits_ms.len(), p50_ms: at(50), p99_ms: at(99) }
}

fn launches(span: &SpanRecord) -> usize {
    span.attributes.get(ASKED).and_then(|text| text.parse().ok()).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(trace: &str, name: &str, start_ms: u64) -> SpanRecord {
        SpanRecord {
            trace_id: trace.to_owned(),
            span_id: format!("{trace}{name}{start_ms}"),
            parent_id: String::new(),
            name: name.to_owned(),
            service: String::new(),
            start_ns: start_ms * 1_000_000,
            end_ns: start_ms * 1_000_000,
            attributes: BTreeMap::new(),
        }
    }

    #[test]
    fn percentiles_are_over_launches_with_a_pending_pod() {
        let mut spans = vec![span("a", PENDING, 100), span("b", CREATE_FLEET, 5)];
        spans.extend((1..=100).map(|wait| span("a", CREATE_FLEET, 100 + wait)));
        let share = share(&spans);
        assert_eq!((share.launches, share.p50_ms, share.p99_ms), (100, 50, 99));
        let mut many = span("a", CREATE_FLEET, 300);
        many.attributes.insert(ASKED.to_owned(), "200".to_owned());
        spans.push(many);
        let share = super::share(&spans);
        assert_eq!((share.launches, share.p50_ms), (300, 200), "one call for two hundred");
    }
}
