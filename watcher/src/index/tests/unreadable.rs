//! What stays in the view of objects that cannot be read.

use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use longshore_proto::types::v1::UnreadableObject;

use super::*;
use crate::api::{NodeOverlay, NodePool, Provisioner};

fn claim(spec: Value) -> Value {
    json!({ "metadata": { "name": "c1", "uid": "u1" }, "spec": spec })
}

fn good() -> Value {
    let class = json!({ "group": "g", "kind": "EC2NodeClass", "name": "default" });
    claim(json!({ "requirements": [], "nodeClassRef": class }))
}

fn put<W: Watched>(index: &mut Index, object: Value) {
    let reference: ObjectReference = serde_json::from_value(object["metadata"].clone()).unwrap();
    index.apply(reference, W::decode(&object.to_string()).map_err(|e| e.to_string()));
}

fn tombstone(index: &Index, key: &str) -> Option<UnreadableObject> {
    match index.view.get(&Key::new(ObjectKind::Unreadable, key)) {
        Some(Kind::Unreadable(row)) => Some(row.clone()),
        _ => None,
    }
}

fn has(index: &Index, kind: ObjectKind, key: &str) -> bool {
    index.view.get(&Key::new(kind, key)).is_some()
}

#[test]
fn an_unreadable_claim_stays_as_it_was_last_read_with_a_tombstone_beside_it() {
    let mut index = Index::default();
    put::<NodeClaim>(&mut index, good());
    put::<NodeClaim>(&mut index, claim(json!({ "requirements": "none" })));
    assert!(has(&index, ObjectKind::NodeClaim, "c1") && index.claim("c1").is_some());
    let row = tombstone(&index, "4/c1").unwrap();
    assert_eq!(row.about.unwrap().key, "c1");
    assert!(row.message.contains("cannot be read"), "{}", row.message);
    // A relist that still cannot read it changes nothing; one without it does.
    index.begin::<NodeClaim>();
    put::<NodeClaim>(&mut index, claim(json!({ "requirements": "none" })));
    assert_eq!(index.end::<NodeClaim>(), Relisted { seen: 1, gone: 0 });
    assert!(index.claim("c1").is_some() && tombstone(&index, "4/c1").is_some());
    put::<NodeClaim>(&mut index, good());
    assert_eq!(tombstone(&index, "4/c1"), None);
    put::<NodeClaim>(&mut index, claim(json!({})));
    index.forget::<NodeClaim>(&(String::new(), "c1".to_owned()));
    assert!(index.claim("c1").is_none() && tombstone(&index, "4/c1").is_none());
}

#[test]
fn what_was_never_readable_has_a_tombstone_alone() {
    let mut index = Index::default();
    put::<NodeClaim>(&mut index, claim(json!({})));
    assert!(tombstone(&index, "4/c1").is_some() && index.claim("c1").is_none());
    apply::<Pod>(&mut index, pod("a", "1", json!({})));
    let broken = json!({ "metadata": { "namespace": "default", "name": "a", "uid": "2" },
        "spec": { "containers": "none" } });
    put::<Pod>(&mut index, broken);
    assert!(index.pod("1").is_none(), "another pod has taken its name");
    assert!(tombstone(&index, "2/2").is_some());
    let budget = json!({ "metadata": { "namespace": "default", "name": "b" }, "spec": 1 });
    put::<PodDisruptionBudget>(&mut index, budget);
    assert!(tombstone(&index, "8/default/b").is_some());
}

#[test]
fn an_unreadable_pod_names_its_node_where_that_much_is_known() {
    let node = |index: &Index| tombstone(index, "2/1").map(|stone| stone.node_name);
    let broken = |extra: Value| {
        let meta = json!({ "namespace": "default", "name": "a", "uid": "1" });
        let mut pod = json!({ "metadata": meta, "spec": { "containers": [] } });
        merge(&mut pod, extra);
        pod
    };
    let wrong =
        json!({ "containers": [{ "name": "c", "resources": { "requests": { "cpu": "x" } } }] });
    let mut index = Index::default();
    // It decodes and makes no sense.
    let mut spec = wrong.clone();
    spec["nodeName"] = json!("n");
    put::<Pod>(&mut index, broken(json!({ "spec": spec })));
    assert_eq!(node(&index).as_deref(), Some("n"));
    put::<Pod>(&mut index, broken(json!({ "spec": wrong })));
    assert_eq!(node(&index), None, "it is on no node");
    // It does not decode, and was bound when it did.
    let spoilt = broken(json!({ "spec": { "containers": "none" } }));
    put::<Pod>(&mut index, spoilt.clone());
    assert_eq!(node(&index).as_deref(), Some(""), "on any, for all that is known");
    apply::<Pod>(&mut index, pod("a", "1", json!({ "spec": { "nodeName": "n" } })));
    put::<Pod>(&mut index, spoilt);
    assert_eq!(node(&index).as_deref(), Some("n"));
}

#[test]
fn a_rule_without_sense_makes_no_nodes_and_ends_none() {
    let pool = |requirement: Value| {
        let class = json!({ "group": "g", "kind": "EC2NodeClass", "name": "default" });
        let spec = json!({ "requirements": [requirement], "nodeClassRef": class });
        json!({ "metadata": { "name": "p" }, "spec": { "template": { "spec": spec } } })
    };
    let more =
        |than: &str| json!({ "key": "example.com/size", "operator": "Gt", "values": [than] });
    let mut index = Index::default();
    put::<NodePool>(&mut index, pool(more("1")));
    put::<NodePool>(&mut index, pool(json!(7)));
    assert!(has(&index, ObjectKind::NodePool, "p") && tombstone(&index, "5/p").is_some());
    put::<NodePool>(&mut index, pool(more("99999999999999999999")));
    assert!(!has(&index, ObjectKind::NodePool, "p") && tombstone(&index, "5/p").is_some());
    put::<NodePool>(&mut index, pool(more("2")));
    assert!(has(&index, ObjectKind::NodePool, "p") && tombstone(&index, "5/p").is_none());
    let overlay = json!({ "metadata": { "name": "o" },
        "spec": { "requirements": [], "capacity": { "example.com/fuse": "-4" } } });
    put::<NodeOverlay>(&mut index, overlay);
    assert_eq!(tombstone(&index, "11/o"), None, "it is told what is wrong with it");
}

#[test]
fn a_kind_that_is_no_longer_served_keeps_its_objects() {
    let mut index = Index::default();
    assert_eq!(index.missing::<NodePool>(), Missing::Empty, "never seen, and not needed");
    assert!(!index.unlisted().contains(&Source::NodePool));
    index.begin::<NodeClaim>();
    index.end::<NodeClaim>();
    put::<NodeClaim>(&mut index, good());
    index.begin::<NodeClaim>();
    assert_eq!(index.missing::<NodeClaim>(), Missing::Kept);
    assert!(index.claim("c1").is_some());
    assert_eq!(tombstone(&index, "4/").unwrap().about.unwrap().kind(), ObjectKind::NodeClaim);
    index.begin::<NodeClaim>();
    assert_eq!(index.end::<NodeClaim>(), Relisted { seen: 0, gone: 1 });
    assert!(index.claim("c1").is_none() && tombstone(&index, "4/").is_none());
    assert_eq!(
        index.missing::<NodeClaim>(),
        Missing::Kept,
        "that it was empty says nothing of now"
    );
    assert_eq!(index.missing::<Provisioner>(), Missing::Empty, "uninstalled when it was empty");
}

#[test]
fn a_kind_that_every_cluster_has_is_never_taken_for_empty() {
    let mut index = Index::default();
    for _ in 0..2 {
        index.begin::<Pod>();
        assert_eq!(index.missing::<Pod>(), Missing::Unknown, "nobody knows what runs");
        assert!(index.unlisted().contains(&Source::Pod));
    }
    index.begin::<Pod>();
    index.end::<Pod>();
    assert!(!index.unlisted().contains(&Source::Pod));
    assert_eq!(index.missing::<Pod>(), Missing::Kept);
    let whole_kind = format!("{}/", i32::from(ObjectKind::Pod));
    assert!(tombstone(&index, &whole_kind).is_some());
}
