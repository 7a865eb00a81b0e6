//! Objects in, view out.

mod devices;
mod times;
mod unreadable;

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::CSINode;
use longshore_proto::types::v1::object_change::Change;
use serde_json::{Value, json};

use super::*;

fn apply<W: Watched>(index: &mut Index, object: Value) {
    let meta = &object["metadata"];
    let text = |key: &str| meta[key].as_str().map(str::to_owned);
    let reference = ObjectReference {
        kind: Some(format!("{:?}", W::SOURCE)),
        namespace: text("namespace"),
        name: text("name"),
        ..ObjectReference::default()
    };
    let object = W::decode(&object.to_string()).map_err(|e| e.to_string());
    index.apply(reference, object);
}

fn pod(name: &str, uid: &str, extra: Value) -> Value {
    let mut pod = json!({
        "metadata": { "namespace": "default", "name": name, "uid": uid, "labels": { "app": "a" } },
        "spec": { "containers": [{ "name": "c", "resources": { "requests": { "cpu": "1" } } }] },
    });
    merge(&mut pod, extra);
    pod
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

fn name(name: &str) -> Name {
    ("default".to_owned(), name.to_owned())
}

/// The next step as lines: `+kind key` and `-kind key`.
fn step(index: &mut Index) -> Vec<String> {
    let Some(step) = index.settled().step(usize::MAX) else { return Vec::new() };
    let line = |c: &longshore_proto::types::v1::ObjectChange| match c.change.as_ref().unwrap() {
        Change::Upsert(o) => {
            let kind = o.kind.as_ref().unwrap();
            format!("+{:?}", longshore_proto::reference::of(kind).kind())
        }
        Change::Remove(r) => format!("-{:?}", r.kind()),
    };
    step.changes.iter().map(line).collect()
}

fn shape_count(index: &Index) -> usize {
    index.shapes.len()
}

#[test]
fn pods_of_one_workload_share_a_shape_that_lives_as_long_as_they_do() {
    let mut index = Index::default();
    apply::<Pod>(&mut index, pod("a", "1", json!({})));
    apply::<Pod>(&mut index, pod("b", "2", json!({})));
    assert_eq!(shape_count(&index), 1);
    assert_eq!(step(&mut index).len(), 3);
    index.forget::<Pod>(&name("a"));
    assert_eq!(shape_count(&index), 1);
    index.forget::<Pod>(&name("b"));
    assert_eq!(shape_count(&index), 0);
    assert_eq!(step(&mut index), ["-Pod", "-Pod", "-PodShape"]);
}

#[test]
fn a_finished_pod_is_gone() {
    let mut index = Index::default();
    apply::<Pod>(&mut index, pod("a", "1", json!({})));
    step(&mut index);
    apply::<Pod>(&mut index, pod("a", "1", json!({ "status": { "phase": "Succeeded" } })));
    assert!(index.pod("1").is_none());
    assert_eq!(step(&mut index), ["-Pod", "-PodShape"]);
}

#[test]
fn a_pod_made_anew_under_its_old_name_replaces_the_old_one() {
    let mut index = Index::default();
    apply::<Pod>(&mut index, pod("a", "1", json!({ "spec": { "nodeName": "n" } })));
    apply::<Pod>(&mut index, pod("a", "2", json!({})));
    assert!(index.pod("1").is_none());
    assert_eq!(index.pods_on("n").count(), 0);
    assert_eq!(&*index.pod_named(&name("a")).unwrap().row.uid, "2");
}

#[test]
fn a_bound_pod_is_found_on_its_node() {
    let mut index = Index::default();
    apply::<Pod>(&mut index, pod("a", "1", json!({})));
    assert_eq!(index.take_fresh_pending(), ["1"]);
    assert_eq!(index.waiting().count(), 1);
    apply::<Pod>(&mut index, pod("a", "1", json!({ "spec": { "nodeName": "n" } })));
    assert_eq!(index.pods_on("n").count(), 1);
    assert_eq!(index.waiting().count(), 0);
    assert!(index.take_fresh_pending().is_empty());
    index.forget::<Pod>(&name("a"));
    assert_eq!(index.pods_on("n").count(), 0);
    apply::<Pod>(&mut index, pod("b", "2", json!({})));
    index.forget::<Pod>(&name("b"));
    assert_eq!(index.waiting().count(), 0);
}

#[test]
fn what_a_relist_does_not_name_is_gone() {
    let mut index = Index::default();
    for (name, uid) in [("a", "1"), ("b", "2")] {
        apply::<Pod>(&mut index, pod(name, uid, json!({})));
    }
    index.begin::<Pod>();
    apply::<Pod>(&mut index, pod("b", "2", json!({})));
    assert!(index.unlisted().contains(&Source::Pod));
    index.end::<Pod>();
    assert!(!index.unlisted().contains(&Source::Pod));
    assert!(index.pod("1").is_none());
    assert!(index.pod("2").is_some());
}

#[test]
fn an_unreadable_object_is_left_out_and_back_once_mended() {
    let mut index = Index::default();
    let bad = json!({ "spec": { "containers": [
        { "name": "c", "resources": { "requests": { "cpu": "-1" } } }] } });
    apply::<Pod>(&mut index, pod("a", "1", bad));
    apply::<Pod>(&mut index, pod("b", "2", json!({})));
    let left: Vec<_> = index.left().values().map(|l| l.fault.to_string()).collect();
    assert_eq!(
        left,
        ["Pod/default/a: spec.containers[c].resources.requests[cpu]: \"-1\" is negative; \
          resources are zero or more"]
    );
    assert!(index.pod("2").is_some());
    apply::<Pod>(&mut index, pod("a", "1", json!({})));
    assert!(index.left().is_empty());
    assert!(index.pod("1").is_some());
}

#[test]
fn an_undecodable_object_is_left_out() {
    let mut index = Index::default();
    apply::<Pod>(&mut index, pod("a", "1", json!({ "spec": { "containers": "none" } })));
    let left: Vec<_> = index.left().values().collect();
    assert!(left[0].fault.to_string().starts_with("Pod/default/a: spec: cannot be read:"));
}

#[test]
fn a_pod_follows_its_volumes() {
    let mut index = Index::default();
    let volumes = json!({ "spec": { "volumes": [
        { "name": "v", "persistentVolumeClaim": { "claimName": "data" } }] } });
    apply::<Pod>(&mut index, pod("a", "1", volumes));
    let shape = |index: &mut Index| {
        let id = index.pod("1").unwrap().row.shape_id.clone();
        match index.settled().get(&Key::new(ObjectKind::PodShape, id)) {
            Some(Kind::PodShape(shape)) => shape.clone(),
            other => panic!("no shape but {other:?}"),
        }
    };
    let before = shape(&mut index);
    assert_eq!(
        before.unschedulable_reason,
        "PersistentVolumeClaim default/data does not exist; create it"
    );
    apply::<PersistentVolumeClaim>(
        &mut index,
        json!({
            "metadata": { "namespace": "default", "name": "data" },
            "spec": { "volumeName": "pv" }, "status": { "phase": "Bound" },
        }),
    );
    apply::<PersistentVolume>(
        &mut index,
        json!({
            "metadata": { "name": "pv" },
            "spec": { "nodeAffinity": { "required": { "nodeSelectorTerms": [{ "matchExpressions": [
                { "key": "topology.ebs.csi.aws.com/zone", "operator": "In", "values": ["a"] }] }] } } },
        }),
    );
    index.settled();
    let after = shape(&mut index);
    assert_eq!(after.unschedulable_reason, "");
    assert_eq!(after.volume_terms[0].requirements[0].key, "topology.kubernetes.io/zone");
    assert_ne!(before.shape_id, after.shape_id);
    assert_eq!(shape_count(&index), 1);
}

#[test]
fn a_namespace_selector_follows_the_namespaces() {
    let mut index = Index::default();
    let affinity = json!({ "spec": { "affinity": { "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [{
            "topologyKey": "kubernetes.io/hostname",
            "labelSelector": { "matchLabels": { "app": "a" } },
            "namespaceSelector": { "matchLabels": { "team": "t" } } }] } } } });
    apply::<Pod>(&mut index, pod("a", "1", affinity));
    let namespaces = |index: &mut Index| {
        index.settled();
        let id = index.pod("1").unwrap().row.shape_id.clone();
        match index.view.get(&Key::new(ObjectKind::PodShape, id)) {
            Some(Kind::PodShape(shape)) => {
                let term = shape.required_anti_affinity[0].clone();
                (term.namespaces, term.selector.is_some())
            }
            other => panic!("no shape but {other:?}"),
        }
    };
    assert_eq!(namespaces(&mut index), (vec![], false));
    let labelled = json!({ "metadata": { "name": "x", "labels": { "team": "t" } } });
    apply::<Namespace>(&mut index, labelled);
    assert_eq!(namespaces(&mut index), (vec!["x".to_owned()], true));
}

#[test]
fn a_node_has_what_its_csi_node_says_in_whichever_order_they_come() {
    let node = json!({ "metadata": { "name": "n" }, "status": { "allocatable": { "cpu": "2" } } });
    let drivers = json!([
        { "name": "ebs.csi.aws.com", "nodeID": "i-1", "allocatable": { "count": 25 } },
        { "name": "efs.csi.aws.com", "nodeID": "i-1" },
    ]);
    let csi = json!({ "metadata": { "name": "n" }, "spec": { "drivers": drivers } });
    let limit = |index: &Index| match index.view.get(&Key::new(ObjectKind::Node, "n")) {
        Some(Kind::Node(node)) => node.allocatable.as_ref().unwrap().extended.clone(),
        _ => BTreeMap::new(),
    };
    let expected = BTreeMap::from([("attachable-volumes-ebs.csi.aws.com".to_owned(), 25)]);
    let mut index = Index::default();
    apply::<Node>(&mut index, node.clone());
    assert_eq!(limit(&index), BTreeMap::new());
    apply::<CSINode>(&mut index, csi.clone());
    assert_eq!(limit(&index), expected);
    apply::<Node>(&mut index, node.clone());
    assert_eq!(limit(&index), expected);
    index.forget::<CSINode>(&(String::new(), "n".to_owned()));
    assert_eq!(limit(&index), BTreeMap::new());
    let mut other = Index::default();
    apply::<CSINode>(&mut other, csi);
    apply::<Node>(&mut other, node);
    assert_eq!(limit(&other), expected);
}

#[test]
fn a_daemon_set_that_claims_devices_weighs_on_no_node() {
    let set = |spec: Value| {
        json!({
            "metadata": { "namespace": "default", "name": "d" },
            "spec": { "selector": {}, "template": { "spec": spec } },
        })
    };
    let mut index = Index::default();
    apply::<DaemonSet>(&mut index, set(json!({ "containers": [] })));
    assert_eq!(step(&mut index), ["+PodShape", "+DaemonSet"]);
    let claims = json!([{ "name": "gpu", "resourceClaimName": "g" }]);
    apply::<DaemonSet>(&mut index, set(json!({ "containers": [], "resourceClaims": claims })));
    assert_eq!(step(&mut index), ["-DaemonSet", "-PodShape"]);
}
