//! When a node counts as one that may be consolidated.

use super::*;
use crate::api::NodePool;

const MINUTE_MS: i64 = 60_000;

/// A claim of pool p, in service since an hour before NOW_MS.
fn in_service(conditions: &[Value]) -> Value {
    let mut all = vec![met("Launched"), met("Registered"), met("Initialized")];
    all.extend_from_slice(conditions);
    claim(json!({
        "metadata": { "labels": { "karpenter.sh/nodepool": "p" } },
        "status": { "conditions": all },
    }))
}

fn pool(after: &str) -> Value {
    json!({
        "metadata": { "name": "p" },
        "spec": {
            "disruption": { "consolidateAfter": after },
            "template": { "spec": {
                "requirements": [],
                "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "d" } } },
        },
    })
}

fn cluster(after: &str, conditions: &[Value]) -> Index {
    let mut index = Index::default();
    apply::<NodePool>(&mut index, pool(after));
    apply::<NodeClaim>(&mut index, in_service(conditions));
    apply::<Node>(&mut index, node(json!({})));
    index
}

fn said(index: &Index, now_ms: i64) -> Option<bool> {
    activity::steps(index, now_ms).into_iter().find_map(|step| {
        if let Step::SetConsolidatable { holds, .. } = step { Some(holds) } else { None }
    })
}

#[test]
fn a_node_that_has_been_quiet_for_long_is_marked_and_a_pod_ends_it() {
    let opened_ms = NOW_MS - 60 * MINUTE_MS;
    let mut index = cluster("10m", &[]);
    assert_eq!(said(&index, opened_ms + 14 * MINUTE_MS), None);
    assert_eq!(said(&index, opened_ms + 15 * MINUTE_MS), Some(true));
    index.begin::<Pod>();
    index.end::<Pod>();
    index.set_clock(at(NOW_MS));
    apply::<Pod>(&mut index, pod("p", json!({})));
    assert_eq!(said(&index, NOW_MS), None, "pods came: the clock is written first");
    let marked = cluster("10m", &[met("Consolidatable")]);
    assert_eq!(said(&marked, NOW_MS), None, "it says so already");
}

#[test]
fn the_mark_goes_when_its_pool_asks_for_more_quiet() {
    let marked = |after| cluster(after, &[met("Consolidatable")]);
    assert_eq!(said(&marked("Never"), NOW_MS), Some(false));
    assert_eq!(said(&marked("2h"), NOW_MS), Some(false));
    assert_eq!(said(&marked("1h"), NOW_MS), None);
    assert_eq!(said(&cluster("Never", &[]), NOW_MS), None);
}

#[test]
fn the_clock_is_written_as_often_as_it_is_needed() {
    let opened_ms = NOW_MS - 60 * MINUTE_MS;
    for (after, pause_ms) in
        [("0s", 60_000), ("Never", 60_000), ("30s", 5_000), ("2m", 20_000), ("2h", 60_000)]
    {
        let mut index = cluster(after, &[]);
        index.begin::<Pod>();
        index.end::<Pod>();
        index.set_clock(at(opened_ms));
        apply::<Pod>(&mut index, pod("p", json!({})));
        assert_eq!(activity::steps(&index, opened_ms + pause_ms - 1), [], "{after}");
        let steps = activity::steps(&index, opened_ms + pause_ms);
        assert!(matches!(steps[..], [Step::Touch { .. }]), "{after}: {steps:?}");
    }
}
