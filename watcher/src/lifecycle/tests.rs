//! Draining, initialisation and activity, by table.

mod deadlines;
mod kept;
mod quiet;

use k8s_openapi::api::core::v1::{Node, ObjectReference, Pod};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceSlice};
use serde_json::{Value, json};

use super::*;
use crate::api::NodeClaim;
use crate::index::{Now, Watched};

/// 2026-01-01T00:00:00Z in milliseconds.
pub(super) const NOW_MS: i64 = 1_767_225_600_000;

pub(super) fn apply<W: Watched + serde::de::DeserializeOwned>(index: &mut Index, object: Value) {
    let text = |key: &str| object["metadata"][key].as_str().map(str::to_owned);
    let (namespace, name) = (text("namespace"), text("name"));
    let reference = ObjectReference { namespace, name, ..ObjectReference::default() };
    let object = serde_json::from_value::<W>(object).unwrap();
    index.apply(reference, Ok(object));
    assert!(index.left().is_empty(), "{:?}", index.left());
}

fn met(kind: &str) -> Value {
    json!({ "type": kind, "status": "True", "reason": kind, "message": "",
            "lastTransitionTime": "2025-12-31T23:00:00Z" })
}

fn merge(base: &mut Value, extra: Value) {
    match (base, extra) {
        (Value::Object(base), Value::Object(extra)) => {
            for (key, value) in extra {
                merge(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, extra) => *base = extra,
    }
}

pub(super) fn claim(extra: Value) -> Value {
    let mut claim = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": { "name": "c1", "uid": "u1" },
        "spec": {
            "requirements": [],
            "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "d" },
            "resources": { "requests": { "cpu": "1", "nvidia.com/gpu": "1" } },
            "startupTaints": [{ "key": "cni", "effect": "NoSchedule" }],
        },
        "status": { "nodeName": "n1", "conditions": [met("Launched"), met("Registered")] },
    });
    merge(&mut claim, extra);
    claim
}

pub(super) fn node(extra: Value) -> Value {
    let mut node = json!({
        "metadata": {
            "name": "n1", "finalizers": ["karpenter.sh/termination"],
            "ownerReferences": [{
                "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": "c1", "uid": "u1" }],
        },
        "spec": {},
        "status": {
            "allocatable": { "cpu": "4", "nvidia.com/gpu": "1" },
            "conditions": [{ "type": "Ready", "status": "True" }],
        },
    });
    merge(&mut node, extra);
    node
}

fn cordoned() -> Value {
    json!({
        "metadata": { "labels": {
            "node.kubernetes.io/exclude-from-external-load-balancers": "karpenter" } },
        "spec": {
            "unschedulable": true,
            "taints": [{ "key": "karpenter.sh/disrupted", "effect": "NoSchedule" }],
        },
    })
}

fn deleted() -> Value {
    json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } })
}

fn pod(name: &str, extra: Value) -> Value {
    let mut pod = json!({
        "metadata": { "namespace": "default", "name": name, "uid": name },
        "spec": { "nodeName": "n1", "containers": [{ "name": "c" }] },
        "status": { "phase": "Running" },
    });
    merge(&mut pod, extra);
    pod
}

/// A drain of a node with these pods.
fn draining(claim_extra: Value, pods: &[Value]) -> Index {
    draining_since(0, claim_extra, pods)
}

/// The same, all of it first seen at this time.
fn draining_since(seen_ms: i64, claim_extra: Value, pods: &[Value]) -> Index {
    let mut index = Index::default();
    index.set_clock(at(seen_ms));
    let mut deleted = deleted();
    merge(&mut deleted, claim_extra);
    apply::<NodeClaim>(&mut index, claim(deleted));
    apply::<Node>(&mut index, node(cordoned()));
    for pod in pods {
        apply::<Pod>(&mut index, pod.clone());
    }
    index
}

/// A moment at which both clocks show the same.
fn at(now_ms: i64) -> Now {
    Now { wall_ms: now_ms, steady_ms: now_ms }
}

/// Drain steps as keys, but for those that only tell.
fn keys(index: &Index, now_ms: i64) -> Vec<String> {
    let steps = drain::steps(index, at(now_ms)).into_iter();
    let tells = |step: &Step| matches!(step, Step::NoteBlockers { .. } | Step::SayKept { .. });
    steps.filter(|step| !tells(step)).map(|step| step.key()).collect()
}

#[test]
fn a_claim_that_stays_is_not_drained() {
    let mut index = Index::default();
    apply::<NodeClaim>(&mut index, claim(json!({})));
    apply::<Node>(&mut index, node(json!({})));
    assert!(keys(&index, NOW_MS).is_empty());
}

#[test]
fn the_node_is_closed_before_any_pod_is_asked_to_leave() {
    let mut index = Index::default();
    apply::<NodeClaim>(&mut index, claim(deleted()));
    apply::<Node>(&mut index, node(json!({})));
    apply::<Pod>(&mut index, pod("p", json!({})));
    assert_eq!(keys(&index, NOW_MS), ["cordon/n1"]);
    apply::<Node>(&mut index, node(cordoned()));
    assert_eq!(keys(&index, NOW_MS), ["evict/p"]);
}

#[test]
fn who_stays_and_who_leaves() {
    let owner = |kind: &str| {
        json!({ "metadata": { "ownerReferences": [{
            "apiVersion": "apps/v1", "kind": kind, "name": "o", "uid": "o", "controller": true }] } })
    };
    let tolerant = json!({ "spec": { "tolerations": [{ "operator": "Exists" }] } });
    let stuck = json!({ "metadata": { "deletionTimestamp": "2025-12-31T23:58:00Z" } });
    let leaving = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:30Z" } });
    let until_later = json!({
        "metadata": { "annotations": { "karpenter.sh/do-not-disrupt": "10m" } },
        "status": { "startTime": "2025-12-31T23:55:00Z" },
    });
    let until_before = json!({
        "metadata": { "annotations": { "karpenter.sh/do-not-disrupt": "1m" } },
        "status": { "startTime": "2025-12-31T23:55:00Z" },
    });
    let evict_not =
        json!({ "metadata": { "annotations": { "karpenter.sh/do-not-evict": "true" } } });
    let table = [
        (owner("ReplicaSet"), vec!["evict/p"]),
        (owner("DaemonSet"), vec!["evict/p"]),
        (owner("Node"), vec!["drained/c1"]),
        (tolerant, vec!["drained/c1"]),
        (stuck, vec!["drained/c1"]),
        (leaving, vec![]),
        (until_later, vec!["blocked/c1/Pod/default/p"]),
        (until_before, vec!["evict/p"]),
        (evict_not, vec!["blocked/c1/Pod/default/p"]),
    ];
    for (extra, expected) in table {
        let index = draining(json!({}), &[pod("p", extra.clone())]);
        assert_eq!(keys(&index, NOW_MS), expected, "{extra}");
    }
}

#[test]
fn a_node_is_not_drained_while_something_on_it_cannot_be_read() {
    let unreadable = |name: &str, uid: &str| ObjectReference {
        name: Some(name.to_owned()),
        namespace: (uid != "n").then(|| "default".to_owned()),
        uid: Some(uid.to_owned()),
        ..ObjectReference::default()
    };
    let mut index = draining(json!({}), &[]);
    assert_eq!(keys(&index, NOW_MS), ["drained/c1"]);
    index.apply::<Pod>(unreadable("p", "p"), Err("no pod".to_owned()));
    assert_eq!(keys(&index, NOW_MS), ["blocked/c1/Pod/default/p"]);
    index.forget::<Pod>(&("default".to_owned(), "p".to_owned()));
    assert_eq!(keys(&index, NOW_MS), ["drained/c1"]);
    let mut on = |node| {
        let spoilt: Result<Pod, _> = Err("no pod".to_owned());
        index.apply_at(unreadable("p", "p"), spoilt, Some(node));
        keys(&index, NOW_MS)
    };
    assert_eq!(on("n1"), ["blocked/c1/Pod/default/p"]);
    assert_eq!(on("another"), ["drained/c1"], "it is not on this node");
    let mut index = Index::default();
    apply::<NodeClaim>(&mut index, claim(deleted()));
    assert_eq!(keys(&index, NOW_MS), ["drained/c1"]);
    index.apply::<Node>(unreadable("n1", "n"), Err("no node".to_owned()));
    assert_eq!(keys(&index, NOW_MS), ["blocked/c1/Node/n1"]);
}

#[test]
fn a_node_that_has_the_name_of_the_claims_first_is_another_claims() {
    let mut index = Index::default();
    let own = json!({ "status": { "providerID": "aws:///a/i-1" } });
    apply::<NodeClaim>(&mut index, claim(own));
    apply::<Node>(&mut index, node(json!({ "spec": { "providerID": "aws:///a/i-2" } })));
    let claim = index.claim("c1").unwrap().clone();
    assert!(index.node_of(&claim).is_none());
    apply::<Node>(&mut index, node(json!({ "spec": { "providerID": "aws:///a/i-1" } })));
    assert!(index.node_of(&claim).is_some());
}

#[test]
fn a_deleted_node_takes_its_claim_along_or_is_let_go() {
    let mut index = Index::default();
    apply::<Node>(&mut index, node(deleted()));
    assert_eq!(keys(&index, NOW_MS), ["release/n1"]);
    apply::<NodeClaim>(&mut index, claim(json!({})));
    assert_eq!(keys(&index, NOW_MS), ["delete/c1"]);
}

#[test]
fn what_a_node_waits_for_is_said() {
    let not_ready = json!({ "status": { "conditions": [{ "type": "Ready", "status": "False" }] } });
    let startup = json!({ "spec": { "taints": [{ "key": "cni", "effect": "NoSchedule" }] } });
    let ephemeral = json!({ "spec": { "taints": [
        { "key": "node.kubernetes.io/not-ready", "effect": "NoSchedule" }] } });
    let no_gpu = json!({ "status": { "allocatable": { "nvidia.com/gpu": "0" } } });
    let table = [
        (not_ready, "await/c1/NodeNotReady"),
        (startup, "await/c1/StartupTaintsExist"),
        (ephemeral, "await/c1/KnownEphemeralTaintsExist"),
        (no_gpu, "await/c1/ResourceNotRegistered"),
        (json!({}), "initialize/c1"),
    ];
    for (extra, expected) in table {
        let mut index = Index::default();
        apply::<NodeClaim>(&mut index, claim(json!({})));
        apply::<Node>(&mut index, node(extra));
        let keys: Vec<_> = initialize::steps(&index).iter().map(Step::key).collect();
        assert_eq!(keys, [expected]);
    }
}

#[test]
fn devices_come_with_the_slices_of_their_driver() {
    let mut index = Index::default();
    apply::<NodeClaim>(&mut index, claim(json!({})));
    apply::<Node>(
        &mut index,
        node(json!({ "status": { "allocatable": { "nvidia.com/gpu": "0" } } })),
    );
    let class = json!({ "metadata": { "name": "gpu.nvidia.com" }, "spec": { "selectors": [
        { "cel": { "expression": "device.driver == 'gpu.nvidia.com'" } }] } });
    apply::<DeviceClass>(&mut index, class);
    let keys = |index: &Index| initialize::steps(index).iter().map(Step::key).collect::<Vec<_>>();
    assert_eq!(keys(&index), ["await/c1/ResourceNotRegistered"]);
    let slice = |siblings: i64| {
        json!({ "metadata": { "name": "s" }, "spec": {
            "driver": "gpu.nvidia.com", "nodeName": "n1", "devices": [{ "name": "gpu-0" }],
            "pool": { "name": "n1", "generation": 1, "resourceSliceCount": siblings } } })
    };
    apply::<ResourceSlice>(&mut index, slice(2));
    assert_eq!(keys(&index), ["await/c1/ResourceNotRegistered"], "a slice is missing");
    apply::<ResourceSlice>(&mut index, slice(1));
    assert_eq!(keys(&index), ["initialize/c1"]);
}

#[test]
fn what_was_said_is_not_said_again() {
    let mut index = Index::default();
    let mut said = met("Initialized");
    said["status"] = json!("Unknown");
    said["reason"] = json!("NodeNotFound");
    said["message"] = json!("the node of the claim does not exist");
    let conditions = json!([met("Launched"), met("Registered"), said]);
    apply::<NodeClaim>(&mut index, claim(json!({ "status": { "conditions": conditions } })));
    assert!(initialize::steps(&index).is_empty());
}

#[test]
fn pod_events_are_written_once_in_a_while() {
    let mut index = Index::default();
    index.begin::<Pod>();
    index.end::<Pod>();
    apply::<NodeClaim>(&mut index, claim(json!({})));
    apply::<Node>(&mut index, node(json!({})));
    assert!(activity::steps(&index, NOW_MS).is_empty());
    index.set_clock(at(NOW_MS - 700));
    apply::<Pod>(&mut index, pod("p", json!({})));
    let at_ms = NOW_MS - 700;
    let touch = Step::Touch { claim: "c1".to_owned(), node: "n1".to_owned(), at_ms };
    assert_eq!(activity::steps(&index, NOW_MS), [touch]);
    let two_seconds_ago = "2025-12-31T23:59:58Z";
    for fresh in [
        json!({ "lastPodEventTime": two_seconds_ago }),
        json!({ "conditions": [{ "type": "Initialized", "status": "True",
            "lastTransitionTime": two_seconds_ago, "reason": "Initialized", "message": "" }] }),
    ] {
        apply::<NodeClaim>(&mut index, claim(json!({ "status": fresh })));
        assert!(activity::steps(&index, NOW_MS).is_empty(), "{fresh}");
        assert_eq!(activity::steps(&index, NOW_MS + 58_000).len(), 1, "{fresh}");
    }
    index.untouch("n1", at_ms - 1);
    assert_eq!(activity::steps(&index, NOW_MS + 58_000).len(), 1);
    index.untouch("n1", at_ms);
    assert!(activity::steps(&index, NOW_MS + 58_000).is_empty());
}

#[test]
fn pods_that_were_there_at_the_start_are_no_event() {
    let mut index = Index::default();
    index.begin::<Pod>();
    apply::<NodeClaim>(&mut index, claim(json!({})));
    apply::<Pod>(&mut index, pod("p", json!({})));
    index.end::<Pod>();
    assert!(activity::steps(&index, NOW_MS).is_empty());
    index.forget::<Pod>(&("default".to_owned(), "p".to_owned()));
    assert_eq!(activity::steps(&index, NOW_MS).len(), 1);
}

#[test]
fn a_claims_trace_ends_when_its_pods_run() {
    let mut index = Index::default();
    apply::<NodeClaim>(&mut index, claim(json!({})));
    let pending = json!({ "spec": { "nodeName": "" }, "status": { "phase": "Pending" } });
    for name in ["p", "q"] {
        apply::<Pod>(&mut index, pod(name, pending.clone()));
    }
    let planned = ["p", "q", "gone"].map(str::to_owned);
    index.plan_for("c1", &planned, false);
    apply::<Pod>(&mut index, pod("p", json!({})));
    assert!(counted(&index).is_empty(), "one waits");
    apply::<Pod>(&mut index, pod("q", json!({ "spec": { "nodeName": "elsewhere" } })));
    let running = |planned, realised, free| Step::Running {
        claim: "c1".to_owned(),
        places: Places { planned, realised, free },
    };
    assert_eq!(counted(&index), [running(2, 1, 0)]);
    apply::<Pod>(&mut index, pod("r", pending));
    assert!(counted(&index).is_empty(), "it may still come");
    apply::<Pod>(&mut index, pod("r", json!({})));
    assert_eq!(counted(&index), [running(2, 2, 0)], "it is like the one that went elsewhere");
    apply::<Pod>(&mut index, pod("s", json!({})));
    assert_eq!(counted(&index), [running(3, 2, 0)], "it was not planned here");
    index.plan_for("c1", &planned, true);
    assert_eq!(counted(&index), [running(0, 0, 2)], "any place is as good");
}

fn counted(index: &Index) -> Vec<Step> {
    let steps = activity::steps(index, NOW_MS).into_iter();
    steps.filter(|step| matches!(step, Step::Running { .. })).collect()
}

#[test]
fn a_node_has_started_when_only_our_own_taint_is_left() {
    let tainted =
        |key: &str| json!({ "spec": { "taints": [{ "key": key, "effect": "NoSchedule" }] } });
    let table = [
        (tainted("karpenter.sh/unregistered"), true),
        (tainted("example.com/dedicated"), true),
        (tainted("cni"), false),
        (tainted("node.kubernetes.io/not-ready"), false),
        (json!({ "status": { "conditions": [{ "type": "Ready", "status": "False" }] } }), false),
    ];
    let claim: NodeClaim = serde_json::from_value(claim(json!({}))).unwrap();
    for (extra, expected) in table {
        let text = extra.to_string();
        let node: Node = serde_json::from_value(node(extra)).unwrap();
        assert_eq!(initialize::has_started(&claim, &node), expected, "{text}");
    }
}
