//! When time is up for pods and drains, by clocks that may differ.

use super::*;

#[test]
fn a_pod_is_not_stuck_because_the_own_clock_is_ahead() {
    let mut index = Index::default();
    apply::<NodeClaim>(&mut index, claim(deleted()));
    apply::<Node>(&mut index, node(cordoned()));
    let ahead_ms = NOW_MS + 5 * 60_000;
    index.set_clock(at(ahead_ms));
    let leaving = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:30Z" } });
    apply::<Pod>(&mut index, pod("p", leaving));
    assert!(keys(&index, ahead_ms).is_empty(), "it has been leaving for no time");
    let kept = ["blocked/c1/Pod/default/p"];
    assert_eq!(keys(&index, ahead_ms + 90_000), kept, "it is late, and still waited for");
    assert_eq!(keys(&index, ahead_ms + 91_000), ["drained/c1"]);
}

#[test]
fn past_the_deadline_pods_are_deleted_with_the_grace_that_is_left() {
    let grace = json!({ "spec": { "terminationGracePeriod": "60s" } });
    let protected =
        json!({ "metadata": { "annotations": { "karpenter.sh/do-not-disrupt": "true" } } });
    let index = draining(grace, &[pod("p", protected)]);
    assert_eq!(keys(&index, NOW_MS), ["deadline/c1", "blocked/c1/Pod/default/p"]);
    let forced = |now_ms| {
        drain::steps(&index, at(now_ms)).into_iter().find_map(|step| {
            if let Step::ForceDelete { grace_seconds, .. } = step {
                Some(grace_seconds)
            } else {
                None
            }
        })
    };
    assert_eq!(forced(NOW_MS + 30_000), None);
    assert_eq!(forced(NOW_MS + 31_000), Some(29));
    assert_eq!(forced(NOW_MS + 90_000), Some(1));
}

#[test]
fn a_deadline_is_not_past_because_the_own_clock_is_ahead_or_jumps() {
    let grace = json!({ "spec": { "terminationGracePeriod": "60s" } });
    let index = draining_since(NOW_MS, grace, &[pod("p", json!({}))]);
    let forced = |wall_ms, seen_ms| {
        let now = Now { wall_ms, steady_ms: NOW_MS + seen_ms };
        matches!(drain::steps(&index, now).last(), Some(Step::ForceDelete { .. }))
    };
    let ahead_ms = NOW_MS + 10 * 60_000;
    assert!(!forced(ahead_ms, 0) && !forced(ahead_ms, 30_000), "seen for less than 60 s less 30 s");
    assert!(forced(ahead_ms, 31_000) && forced(NOW_MS + 31_000, 31_000));
    assert!(!forced(NOW_MS, 31_000), "by the API server's clock there is time");
}

#[test]
fn the_deadline_of_a_drain_that_never_began_is_taken_off() {
    let stays = |noted: &str| {
        let mut index = Index::default();
        let noted =
            json!({ "metadata": { "annotations": { names::TERMINATION_TIMESTAMP: noted } } });
        apply::<NodeClaim>(&mut index, claim(noted));
        apply::<Node>(&mut index, node(json!({})));
        keys(&index, NOW_MS)
    };
    assert_eq!(stays("2025-12-31T23:58:59Z"), ["deadline/c1"]);
    assert!(stays("2025-12-31T23:59:30Z").is_empty(), "its claim is about to be deleted");
    assert!(stays("2026-01-01T00:02:00Z").is_empty(), "a spot instance has two minutes");
    assert!(stays("soon").is_empty(), "whoever wrote that");
    let begun = json!({ "metadata": { "annotations": {
        names::TERMINATION_TIMESTAMP: "2025-12-31T23:00:00Z" } } });
    let steps = keys(&draining(begun, &[]), NOW_MS);
    assert!(!steps.contains(&"deadline/c1".to_owned()), "{steps:?}");
}
