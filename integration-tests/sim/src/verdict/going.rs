//! Why a claim goes, and how long its pods may take.
//!
//! Invariant: read from the claim alone. Whether EC2 has announced what a claim says that it has is
//! judged where the claim begins to go.

use jiff::SignedDuration;
use serde_json::Value;

/// Reason of a deletion that rests on an announcement of EC2.
pub(super) const INTERRUPTED: &str = "Interrupted";
/// Reason of a deletion that rests on what a node says of itself.
pub(super) const UNHEALTHY: &str = "Unhealthy";
/// What EC2 leaves an instance that it takes back, in milliseconds.
const NOTICE_MS: i64 = 120_000;
/// What a claim without a grace leaves.
const NO_END_MS: i64 = i64::MAX / 2;

/// Why a claim goes, as its condition says.
pub(super) fn reason_of(claim: &Value) -> String {
    let conditions = claim["status"]["conditions"].as_array().into_iter().flatten();
    let mut named = conditions.filter(|one| one["type"] == "DisruptionReason");
    let reason = named.next().and_then(|one| one["reason"].as_str());
    let annotation = claim["metadata"]["annotations"]["longshore.dev/deletion-reason"].as_str();
    reason.or(annotation).unwrap_or_default().to_owned()
}

/// The grace that a claim names, in milliseconds.
pub(super) fn grace_ms(claim: &Value) -> i64 {
    let grace = claim["spec"]["terminationGracePeriod"].as_str().unwrap_or_default();
    let grace = grace.parse::<SignedDuration>();
    grace.map_or(NO_END_MS, |grace| i64::try_from(grace.as_millis()).unwrap_or(NO_END_MS))
}

/// How long evictions may take before a claim's pods are deleted, in milliseconds: its grace, and
/// no longer than EC2 leaves its instance; nothing on a node that ails, which answers to nobody.
pub(super) fn evictions_ms(claim: &Value) -> i64 {
    let grace_ms = grace_ms(claim);
    match reason_of(claim).as_str() {
        INTERRUPTED => grace_ms.min(NOTICE_MS),
        UNHEALTHY => 0,
        _ => grace_ms,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn evictions_may_take_the_claims_grace_and_no_longer_than_ec2_leaves() {
        for (reason, grace, expected_ms) in [
            ("Drifted", json!("5m"), 300_000),
            (INTERRUPTED, json!("5m"), NOTICE_MS),
            (INTERRUPTED, json!("30s"), 30_000),
            (INTERRUPTED, json!(null), NOTICE_MS),
            ("Drifted", json!(null), NO_END_MS),
            (UNHEALTHY, json!("5m"), 0),
        ] {
            let condition = json!({ "type": "DisruptionReason", "reason": reason });
            let claim = json!({
                "spec": { "terminationGracePeriod": grace },
                "status": { "conditions": [condition] },
            });
            assert_eq!(evictions_ms(&claim), expected_ms, "{reason} {grace}");
        }
    }
}
