//! Figures of a short timeline, by hand.

use super::super::contender::Usage;
use super::super::recorder::seen::{ClaimState, NodeState};
use super::*;

fn mark(at_ms: u64, what: What) -> Mark {
    Mark { at_ms, what }
}

fn pod(at_ms: u64, is: PodState) -> Mark {
    mark(at_ms, What::Pod { name: "a".to_owned(), is })
}

fn cloud(at_ms: u64, api: &str) -> Mark {
    mark(at_ms, What::Cloud { api: api.to_owned(), failed: false })
}

fn api(at_ms: u64, verb: &str, resource: &str, failed: bool) -> Mark {
    mark(at_ms, What::Api { verb: verb.to_owned(), resource: resource.to_owned(), failed })
}

fn held(at_ms: u64, instances: u64, micro_usd_per_hour: u64) -> Mark {
    mark(at_ms, What::Capacity(Capacity { instances, micro_usd_per_hour }))
}

fn instance(at_ms: u64, is_alive: bool) -> Mark {
    let (id, offering) = ("i-1".to_owned(), "m5.large spot us-east-1a".to_owned());
    mark(at_ms, What::Instance { id, offering, is_alive })
}

/// A pod comes at 1.1 s, runs at 13 s, and is evicted at 15 s for a cheaper node.
fn timeline() -> Vec<Mark> {
    vec![
        api(500, "patch", "nodes", false),
        held(900, 1, 40),
        pod(1_100, PodState::Waiting),
        api(1_200, "create", "nodeclaims", false),
        api(1_250, "create", "events", false),
        cloud(1_500, CREATE_FLEET),
        instance(1_600, true),
        held(1_600, 2, 100),
        cloud(2_500, CREATE_FLEET),
        api(2_600, "update", "leases", false),
        pod(13_000, PodState::Running),
        api(15_000, "create", EVICTION, true),
        api(15_100, "create", EVICTION, false),
        pod(15_100, PodState::Ending),
        instance(16_000, false),
        held(16_000, 1, 40),
        mark(16_100, What::Node { name: "n".to_owned(), is: NodeState::Gone }),
        mark(16_200, What::Claim { name: "c".to_owned(), is: ClaimState::Gone }),
        cloud(20_000, "sqs:ReceiveMessage"),
        pod(60_000, PodState::Waiting),
    ]
}

fn span(goal_ms: Option<u64>) -> Span {
    let usage = |cpu_ms| Usage { cpu_ms, peak_rss_bytes: cpu_ms * 1_000 };
    Span {
        name: "out".to_owned(),
        goal: Goal::Run(1),
        limit_s: 240,
        began_ms: 1_000,
        goal_ms,
        end_ms: 50_000,
        is_settled: goal_ms.is_some(),
        running: 1,
        usage: [usage(10), usage(30), usage(100)],
        away: None,
    }
}

#[test]
fn what_happened_in_the_phase_counts() {
    let found = figures(&timeline(), &span(Some(13_000)));
    assert_eq!((found.first_call_ms, found.last_call_ms), (Some(400), Some(1_400)));
    assert_eq!(found.calls_to_goal, 2);
    assert_eq!((found.goal_ms, found.goal_less_boot_ms), (Some(12_000), Some(2_000)));
    assert_eq!(found.at_goal, Capacity { instances: 2, micro_usd_per_hour: 100 });
    assert_eq!(found.at_end, Capacity { instances: 1, micro_usd_per_hour: 40 });
    assert_eq!(found.settled_ms, Some(15_200));
    assert_eq!((found.launches, found.evictions, found.events), (1, 1, 1));
    assert_eq!((found.writes, found.cpu_ms), ([1, 3], [20, 90]));
    assert_eq!(found.peak_rss_bytes, 100_000);
    assert_eq!(found.cloud.get(CREATE_FLEET), Some(&2));
    assert_eq!(found.api.get("create pods/eviction (refused)"), Some(&1));
    assert!(!found.api.contains_key("patch nodes"), "it was before the phase");
}

#[test]
fn what_was_not_reached_has_no_figure() {
    let found = figures(&timeline(), &span(None));
    assert_eq!((found.goal_ms, found.goal_less_boot_ms, found.settled_ms), (None, None, None));
    assert_eq!(found.at_goal, Capacity { instances: 1, micro_usd_per_hour: 40 });
}

#[test]
fn launches_ahead_of_the_first_pod_are_counted_from_the_beginning() {
    let marks = [cloud(1_300, CREATE_FLEET), pod(2_000, PodState::Waiting)];
    let found = figures(&marks, &span(Some(13_000)));
    assert_eq!(found.first_call_ms, Some(300));
}

fn named(at_ms: u64, name: &str, is: PodState) -> Mark {
    mark(at_ms, What::Pod { name: name.to_owned(), is })
}

#[test]
fn pods_are_away_until_others_run() {
    let marks = [
        named(10, "a", PodState::Running),
        named(11, "b", PodState::Running),
        named(1_100, "a", PodState::Ending),
        named(1_200, "c", PodState::Running),
        named(1_300, "b", PodState::Ending),
        named(1_400, "c", PodState::Ending),
        named(1_500, "d", PodState::Running),
        named(60_000, "d", PodState::Ending),
    ];
    let goal = Goal::Replaced(2);
    let span = Span { goal, away: Some(1), ..span(None) };
    assert_eq!(figures(&marks, &span).away, Some(1), "two at once, of which one may be");
    assert_eq!(figures(&marks[..4], &span).away, Some(0));
    assert_eq!(figures(&marks, &Span { away: None, ..span }).away, None);
}

#[test]
fn instances_count_for_as_long_as_they_are_there() {
    let span = Span { goal: Goal::Elapse(1), end_ms: 11_000, ..span(None) };
    let marks = [held(900, 1, 40), held(3_000, 3, 120), held(10_000, 0, 0), held(20_000, 9, 9)];
    assert_eq!(figures(&marks, &span).instance_ms, Some(2_000 + 3 * 7_000));
    assert_eq!(figures(&[], &span).instance_ms, Some(0));
    assert_eq!(figures(&marks, &self::span(None)).instance_ms, None);
}
