//! Why a claim goes, and how long its pods may take.
//!
//! Invariant: read from the claim, and from EC2 when it takes the instance back. Whether EC2 has
//! announced what a claim says that it has is judged where the claim begins to go.

use jiff::SignedDuration;
use serde_json::Value;

/// Reason of a deletion that rests on an announcement of EC2.
pub(super) const INTERRUPTED: &str = "Interrupted";
/// Reason of a deletion that rests on what a node says of itself.
pub(super) const UNHEALTHY: &str = "Unhealthy";
/// What EC2 leaves from when an announcement is acted on, in milliseconds, where it has not said
/// when it takes the instance back.
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

/// When the evictions of a claim that goes since then are over and its pods may be deleted: with
/// its grace, and no later than EC2 takes back an instance whose end it has announced, however late
/// the claim begins to go; at once on a node that ails, which answers to nobody.
pub(super) fn evictions_end_ms(claim: &Value, since_ms: i64, reclaimed_ms: Option<i64>) -> i64 {
    let grace_ends_ms = since_ms.saturating_add(grace_ms(claim));
    match reason_of(claim).as_str() {
        INTERRUPTED => grace_ends_ms.min(reclaimed_ms.unwrap_or(since_ms + NOTICE_MS)),
        UNHEALTHY => since_ms,
        _ => grace_ends_ms,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn evictions_may_take_the_claims_grace_and_no_longer_than_ec2_leaves() {
        let since_ms = 1_000_000;
        for (reason, grace, reclaimed_ms, expected_ms) in [
            ("Drifted", json!("5m"), None, 300_000),
            (INTERRUPTED, json!("5m"), None, NOTICE_MS),
            (INTERRUPTED, json!("30s"), None, 30_000),
            (INTERRUPTED, json!(null), None, NOTICE_MS),
            // The API server did not answer for half a minute.
            (INTERRUPTED, json!(null), Some(90_000), 90_000),
            (INTERRUPTED, json!("30s"), Some(90_000), 30_000),
            ("Drifted", json!("5m"), Some(90_000), 300_000),
            ("Drifted", json!(null), None, NO_END_MS),
            (UNHEALTHY, json!("5m"), None, 0),
        ] {
            let condition = json!({ "type": "DisruptionReason", "reason": reason });
            let claim = json!({
                "spec": { "terminationGracePeriod": grace },
                "status": { "conditions": [condition] },
            });
            let reclaimed_ms = reclaimed_ms.map(|left_ms: i64| since_ms + left_ms);
            let end_ms = evictions_end_ms(&claim, since_ms, reclaimed_ms);
            assert_eq!(end_ms - since_ms, expected_ms, "{reason} {grace} {reclaimed_ms:?}");
        }
    }
}
