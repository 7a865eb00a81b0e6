//! What is written on claims.

use longshore_proto::types::v1::object::Kind;
use longshore_proto::types::v1::{NodeClass, Object, ObjectChange, object_change};

use super::*;

#[test]
fn a_node_made_from_nothing_counts_as_made_from_what_there_is_unless_it_has_drifted() {
    let mut pool =
        NodePool { name: "p".to_owned(), drift_hash: "1-p".to_owned(), ..NodePool::default() };
    let class = NodeClass {
        name: "EC2NodeClass/c".to_owned(),
        drift_hash: "1-c".to_owned(),
        ..NodeClass::default()
    };
    let mut claim = NodeClaim {
        name: "n".to_owned(),
        pool: "p".to_owned(),
        node_class: "EC2NodeClass/c".to_owned(),
        provider_id: "aws:///a/i-1".to_owned(),
        ..NodeClaim::default()
    };
    let noted = |pool: &NodePool, claim: &NodeClaim| {
        let objects = [
            Kind::NodePool(pool.clone()),
            Kind::NodeClass(class.clone()),
            Kind::NodeClaim(claim.clone()),
        ];
        let upsert = |kind| object_change::Change::Upsert(Object { kind: Some(kind) });
        let changes = objects.map(|kind| ObjectChange { change: Some(upsert(kind)) });
        let mut state = ClusterState::new("c".to_owned(), 0);
        state.apply(changes.into(), 0);
        assert_eq!(state.drift_notes(), Vec::new(), "a claim that was not measured yet");
        state.refresh_drift(&RegionState::default());
        state.drift_notes()
    };
    let adopted = noted(&pool, &claim);
    assert_eq!(adopted.len(), 1);
    assert_eq!((adopted[0].drift_hash.as_str(), &adopted[0].drifted), ("1-p/1-c", &None));

    claim.drift_reason = "NodePoolDrifted".to_owned();
    assert_eq!(noted(&pool, &claim), Vec::new(), "it stays drifted, and is not made new by a name");

    claim.drift_hash = "1-p/1-c".to_owned();
    let mended = noted(&pool, &claim).remove(0);
    assert_eq!((mended.drift_hash.as_str(), mended.drifted.unwrap().status), ("", Some(false)));

    pool.drift_hash = "1-q".to_owned();
    claim.drift_reason.clear();
    let drifted = noted(&pool, &claim).remove(0).drifted.unwrap();
    assert_eq!((drifted.status, drifted.reason.as_str()), (Some(true), "NodePoolDrifted"));

    pool.drift_hash.clear();
    assert_eq!(noted(&pool, &claim), Vec::new(), "a watcher of the version before");
}
