//! What a drain waits for, in which order, and what is said of it.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use longshore_proto::types::v1::BlockingRule;

use super::*;
use crate::lifecycle::drain::Volumes;

fn of_daemon_set() -> Value {
    json!({ "metadata": { "ownerReferences": [{
        "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "o", "uid": "o", "controller": true }] } })
}

fn critical() -> Value {
    json!({ "spec": { "priorityClassName": "system-cluster-critical" } })
}

#[test]
fn pods_leave_by_tiers_those_of_daemon_sets_last() {
    let mut critical_daemon = of_daemon_set();
    merge(&mut critical_daemon, critical());
    let mut pods = vec![
        pod("web", json!({})),
        pod("dns", critical()),
        pod("logs", of_daemon_set()),
        pod("net", critical_daemon),
    ];
    for first in ["evict/web", "evict/dns", "evict/logs", "evict/net"] {
        assert_eq!(keys(&draining(json!({}), &pods), NOW_MS), [first]);
        pods.remove(0);
    }
    assert_eq!(keys(&draining(json!({}), &pods), NOW_MS), ["drained/c1"]);
}

/// Replica number `number` of a StatefulSet.
fn replica(number: u32, extra: Value) -> Value {
    let mut replica = pod(&format!("db-{number}"), extra);
    let owner = json!([{ "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "s",
                         "controller": true }]);
    merge(&mut replica, json!({ "metadata": { "ownerReferences": owner } }));
    replica
}

#[test]
fn replicas_of_a_stateful_set_leave_one_after_the_other_the_last_first() {
    let pods = [1, 9, 10].map(|number| replica(number, json!({})));
    let mut index =
        draining_since(NOW_MS, json!({}), &[&pods[..], &[pod("web", json!({}))]].concat());
    index.set_clock(at(NOW_MS));
    assert_eq!(keys(&index, NOW_MS), ["evict/db-10", "evict/web"]);
    let next = |uid: &str, extra: Value| {
        let mut next = replica(10, json!({ "metadata": { "uid": uid } }));
        merge(&mut next, extra);
        next
    };
    let ending = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:30Z" } });
    apply::<Pod>(&mut index, next("db-10", ending));
    assert_eq!(keys(&index, NOW_MS), ["evict/web"], "it has yet to end");
    index.forget::<Pod>(&("default".to_owned(), "db-10".to_owned()));
    assert_eq!(keys(&index, NOW_MS + 100), ["evict/web"], "the next of its name comes");
    apply::<Pod>(
        &mut index,
        next("new", json!({ "spec": { "nodeName": "n2" }, "status": { "phase": "Pending" } })),
    );
    assert_eq!(keys(&index, NOW_MS + 60_000), ["evict/web"], "it is not up");
    apply::<Pod>(&mut index, next("new", json!({ "spec": { "nodeName": "n2" } })));
    assert_eq!(keys(&index, NOW_MS + 61_000), ["evict/db-9", "evict/web"]);
}

#[test]
fn no_order_among_replicas_keeps_a_node_for_long() {
    let pods = [replica(0, json!({})), replica(1, json!({}))];
    let both = ["evict/db-0", "evict/db-1"];
    let index = draining_since(NOW_MS, json!({}), &pods);
    assert_eq!(keys(&index, NOW_MS), ["evict/db-1"]);
    assert_eq!(keys(&index, NOW_MS + 600_000), both, "it has waited for long enough");
    let short = json!({ "spec": { "terminationGracePeriod": "5m" } });
    let steps = keys(&draining_since(NOW_MS, short, &pods), NOW_MS);
    assert!(both.iter().all(|step| steps.iter().any(|it| it == step)), "time is short: {steps:?}");
    let kept = json!({ "metadata": { "annotations": { "karpenter.sh/do-not-disrupt": "true" } } });
    let pods = [replica(0, json!({})), replica(1, kept)];
    let steps = keys(&draining_since(NOW_MS, json!({}), &pods), NOW_MS);
    assert!(steps.contains(&both[0].to_owned()), "what stays is not waited for: {steps:?}");
}

#[test]
fn a_node_that_served_is_drained_no_sooner_than_load_balancers_know() {
    let served = json!({ "status": { "conditions": [met("Initialized")] } });
    let index = draining_since(NOW_MS, served, &[]);
    assert!(keys(&index, NOW_MS + 4_000).is_empty());
    let rests = [4_000, 4_400, 5_000].map(|ms| rest(&index, at(NOW_MS + ms)).as_millis());
    assert_eq!(rests, [1_000, 600, 1_000], "it is looked at when they do");
    assert_eq!(keys(&index, NOW_MS + 5_000), ["drained/c1"]);
    let index = draining_since(NOW_MS, json!({}), &[]);
    assert_eq!(keys(&index, NOW_MS), ["drained/c1"], "it never took pods");
}

/// A claim `data` of volume `v`, and that attached to n1.
fn attach(index: &mut Index) {
    let claim = json!({
        "metadata": { "namespace": "default", "name": "data" }, "spec": { "volumeName": "v" } });
    apply::<PersistentVolumeClaim>(index, claim);
    let attachment = json!({ "metadata": { "name": "csi-1" }, "spec": {
        "attacher": "ebs.csi.aws.com", "nodeName": "n1", "source": { "persistentVolumeName": "v" } } });
    apply::<VolumeAttachment>(index, attachment);
}

fn volumes(index: &Index, now_ms: i64) -> Option<Volumes> {
    drain::steps(index, at(now_ms)).into_iter().find_map(|step| {
        if let Step::MarkDrained { volumes, .. } = step { Some(volumes) } else { None }
    })
}

#[test]
fn volumes_of_pods_that_have_left_are_waited_for() {
    let mut index = draining_since(NOW_MS, json!({}), &[]);
    attach(&mut index);
    assert_eq!(volumes(&index, NOW_MS), Some(Volumes::Attached("v".to_owned())));
    let waits = |status: &str| {
        json!({ "type": "VolumesDetached", "status": status, "reason": "r", "message": "v",
                "lastTransitionTime": "2026-01-01T00:00:00Z" })
    };
    let drained = json!({ "type": "Drained", "status": "True", "reason": "Drained", "message": "",
                          "lastTransitionTime": "2026-01-01T00:00:00Z" });
    let said = json!({ "status": { "conditions": [drained, waits("Unknown")] } });
    let mut index = draining_since(NOW_MS, said, &[]);
    attach(&mut index);
    assert_eq!(volumes(&index, NOW_MS), None, "that has been said");
    assert_eq!(keys(&index, NOW_MS), ["blocked/c1/VolumeAttachment/csi-1"]);
    assert_eq!(volumes(&index, NOW_MS + 361_000), Some(Volumes::GivenUp("v".to_owned())));
    index.forget::<VolumeAttachment>(&(String::new(), "csi-1".to_owned()));
    assert_eq!(volumes(&index, NOW_MS), Some(Volumes::Detached));
    let over = json!({ "status": { "conditions": [drained_at(), waits("False")] } });
    assert!(keys(&draining_since(NOW_MS, over, &[]), NOW_MS).is_empty(), "it is over");
}

fn drained_at() -> Value {
    met("Drained")
}

#[test]
fn volumes_of_pods_that_stay_hold_no_node_and_no_kubelet_that_is_gone_is_waited_for() {
    let stays = json!({ "spec": {
        "tolerations": [{ "operator": "Exists" }],
        "volumes": [{ "name": "d", "persistentVolumeClaim": { "claimName": "data" } }] } });
    let mut index = draining(json!({}), &[]);
    attach(&mut index);
    apply::<Pod>(&mut index, pod("agent", stays));
    assert_eq!(volumes(&index, NOW_MS), Some(Volumes::Detached));
    let mut index = draining(json!({}), &[]);
    attach(&mut index);
    let mut gone = cordoned();
    merge(
        &mut gone,
        json!({ "status": { "conditions": [{ "type": "Ready", "status": "Unknown" }] } }),
    );
    apply::<Node>(&mut index, node(gone));
    assert_eq!(volumes(&index, NOW_MS), Some(Volumes::Detached));
}

/// Rules and objects of what the scheduler is to be told.
fn told(index: &Index, now_ms: i64) -> Option<Vec<(BlockingRule, String)>> {
    drain::steps(index, at(now_ms)).into_iter().find_map(|step| {
        if let Step::NoteBlockers { blockers, .. } = step {
            Some(blockers.iter().map(|it| (it.rule(), it.object.clone())).collect())
        } else {
            None
        }
    })
}

#[test]
fn what_keeps_a_node_is_told_once_and_said_when_it_lasts() {
    let web = |extra| pod("web", extra);
    let mut index = draining_since(NOW_MS, json!({}), &[web(json!({}))]);
    assert_eq!(told(&index, NOW_MS), None, "nothing does yet");
    index.set_clock(at(NOW_MS));
    index.refuse_eviction("web", BlockingRule::Budget, "the budget allows none");
    let expected = vec![(BlockingRule::Budget, "Pod/default/web".to_owned())];
    assert_eq!(told(&index, NOW_MS), Some(expected));
    let said = |index: &Index, now_ms| {
        drain::steps(index, at(now_ms)).into_iter().find_map(|step| {
            if let Step::SayKept { kind, message, .. } = step {
                Some((kind, message))
            } else {
                None
            }
        })
    };
    assert_eq!(said(&index, NOW_MS + 9_000), None);
    let message = "Pod/default/web: the budget allows none".to_owned();
    assert_eq!(said(&index, NOW_MS + 10_000), Some(("Drained", message.clone())));
    for step in drain::steps(&index, at(NOW_MS)) {
        if let Step::NoteBlockers { claim, blockers } = step {
            index.set_blockers(&claim, blockers);
        }
    }
    assert_eq!(told(&index, NOW_MS), None, "the scheduler knows");
    let known = json!({ "type": "Drained", "status": "Unknown", "reason": "Draining",
                        "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z" });
    let mut again = deleted();
    merge(&mut again, json!({ "status": { "conditions": [known] } }));
    apply::<NodeClaim>(&mut index, claim(again));
    assert_eq!(told(&index, NOW_MS), None, "and does when the claim is seen again");
    assert_eq!(said(&index, NOW_MS + 10_000), None, "the claim says so");
    index.grant_eviction("web");
    assert_eq!(told(&index, NOW_MS), Some(Vec::new()), "nothing keeps it any longer");
}

#[test]
fn a_pod_is_stuck_only_when_it_should_have_ended() {
    let ends = json!({
        "metadata": { "deletionTimestamp": "2026-01-01T00:00:30Z" },
        "spec": { "terminationGracePeriodSeconds": 30 },
    });
    let index = draining_since(NOW_MS, json!({}), &[pod("web", ends)]);
    assert_eq!(told(&index, NOW_MS + 35_000), None);
    let expected = vec![(BlockingRule::Stuck, "Pod/default/web".to_owned())];
    assert_eq!(told(&index, NOW_MS + 36_000), Some(expected));
}
