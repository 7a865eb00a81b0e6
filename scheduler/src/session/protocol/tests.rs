//! Tables over the order of Sync messages.

use super::*;

fn chunk(revision: u64, last: bool) -> cluster::SyncRequest {
    let chunk = cluster::SnapshotChunk { revision, changes: vec![ObjectChange::default()], last };
    cluster::SyncRequest { message: Some(Message::SnapshotChunk(chunk)) }
}

fn delta(base_revision: u64, revision: u64) -> cluster::SyncRequest {
    let delta = cluster::Delta { base_revision, revision, ..Default::default() };
    cluster::SyncRequest { message: Some(Message::Delta(delta)) }
}

#[test]
fn a_snapshot_is_applied_when_whole_and_deltas_follow_it() {
    let mut receiver = Receiver::default();
    assert!(matches!(receiver.receive(chunk(7, false)), Ok(Step::Acknowledge { revision: 7 })));
    let Ok(Step::Reset { revision: 7, changes }) = receiver.receive(chunk(7, true)) else {
        panic!("the last chunk completes the snapshot");
    };
    assert_eq!(changes.len(), 2);
    assert!(matches!(receiver.receive(delta(7, 8)), Ok(Step::Apply { revision: 8, .. })));
    assert_eq!(receiver.revision(), Some(8));
}

#[test]
fn a_gap_leads_to_resync_and_deltas_are_ignored_until_the_snapshot() {
    let mut receiver = Receiver::default();
    receiver.receive(chunk(1, true)).unwrap();
    assert!(matches!(receiver.receive(delta(2, 3)), Ok(Step::Resync { .. })));
    assert!(matches!(receiver.receive(delta(3, 4)), Ok(Step::Acknowledge { revision: 4 })));
    assert!(matches!(receiver.receive(chunk(9, true)), Ok(Step::Reset { revision: 9, .. })));
}

#[test]
fn a_delta_that_does_not_grow_is_a_gap() {
    let mut receiver = Receiver::default();
    receiver.receive(chunk(5, true)).unwrap();
    assert!(matches!(receiver.receive(delta(5, 5)), Ok(Step::Resync { .. })));
}

#[test]
fn mixed_snapshots_and_late_hellos_end_the_stream() {
    let mut receiver = Receiver::default();
    receiver.receive(chunk(1, false)).unwrap();
    assert!(receiver.receive(chunk(2, true)).is_err());
    let hello = cluster::SyncRequest { message: Some(Message::Hello(cluster::Hello::default())) };
    assert!(Receiver::default().receive(hello).is_err());
}

#[test]
fn hello_is_checked_field_by_field() {
    let good = cluster::Hello {
        cluster_id: "a".to_owned(),
        session_epoch: 1,
        protocol_version: PROTOCOL_VERSION,
        ..Default::default()
    };
    let refused = [
        cluster::Hello { protocol_version: PROTOCOL_VERSION + 2, ..good.clone() },
        cluster::Hello { cluster_id: String::new(), ..good.clone() },
        cluster::Hello { session_epoch: 0, ..good.clone() },
    ];
    let request = |hello| Some(cluster::SyncRequest { message: Some(Message::Hello(hello)) });
    assert!(hello(request(good)).is_ok());
    for wrong in refused {
        assert!(hello(request(wrong)).is_err());
    }
    assert!(hello(None).is_err());
    assert!(hello(Some(delta(1, 2))).is_err());
}

#[test]
fn a_snapshot_that_never_ends_is_refused() {
    let mut receiver = Receiver::default();
    let endless = || {
        let changes = vec![ObjectChange::default(); 100_000];
        let chunk = cluster::SnapshotChunk { revision: 1, changes, last: false };
        cluster::SyncRequest { message: Some(Message::SnapshotChunk(chunk)) }
    };
    let refused = (0..20).find_map(|_| receiver.receive(endless()).err()).unwrap();
    let reason = longshore_proto::reason::of_status(&refused).unwrap().0;
    assert_eq!(reason, "OVERLOADED");
}
