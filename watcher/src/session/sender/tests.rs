//! The window, the order and resumption, without a network.

use super::*;
use longshore_proto::types::v1::object::Kind;
use longshore_proto::types::v1::{Namespace, Pod};

fn put(view: &mut View, uid: &str) {
    view.put(Kind::Pod(Pod { uid: uid.to_owned(), ..Pod::default() }));
}

fn welcome(window: u32) -> Welcome {
    Welcome { window, ..Welcome::default() }
}

fn ack(revision: u64, token: &'static [u8]) -> Ack {
    Ack { revision, resume_token: Bytes::from_static(token) }
}

fn next(sender: &mut Sender, view: &mut View) -> Option<Message> {
    sender.next(view, "")
}

#[test]
fn a_session_starts_with_a_snapshot_and_goes_on_with_steps_that_fit() {
    let (mut view, mut sender) = (View::default(), Sender::default());
    put(&mut view, "a");
    sender.welcome(&welcome(8), &mut view);
    let Some(Message::SnapshotChunk(chunk)) = next(&mut sender, &mut view) else { panic!() };
    assert!(chunk.last);
    assert_eq!((chunk.revision, chunk.changes.len()), (1, 1));
    assert_eq!(next(&mut sender, &mut view), None);
    put(&mut view, "b");
    let Some(Message::Delta(delta)) = next(&mut sender, &mut view) else { panic!() };
    assert_eq!((delta.base_revision, delta.revision), (1, 2));
}

#[test]
fn an_empty_view_is_one_last_chunk() {
    let (mut view, mut sender) = (View::default(), Sender::default());
    sender.welcome(&welcome(8), &mut view);
    let Some(Message::SnapshotChunk(chunk)) = next(&mut sender, &mut view) else { panic!() };
    assert!(chunk.last && chunk.changes.is_empty());
}

#[test]
fn a_big_snapshot_is_cut_into_chunks_that_fit_the_window() {
    let (mut view, mut sender) = (View::default(), Sender::default());
    for n in 0..5 {
        let labels = [("l".to_owned(), "x".repeat(CHUNK_BYTES_TARGET / 2))].into();
        view.put(Kind::Namespace(Namespace { name: format!("n{n}"), labels }));
    }
    sender.welcome(&welcome(2), &mut view);
    let mut seen = 0;
    let mut lasts = Vec::new();
    loop {
        let mut sent = 0;
        while let Some(Message::SnapshotChunk(chunk)) = next(&mut sender, &mut view) {
            sent += 1;
            seen += chunk.changes.len();
            lasts.push(chunk.last);
        }
        assert!(sent <= 2);
        if sent == 0 {
            break;
        }
        assert_eq!(sender.bookmark(&view).is_some(), lasts.ends_with(&[true]));
        (0..sent).for_each(|_| sender.acknowledge(ack(5, b"")));
    }
    assert_eq!((seen, lasts), (5, vec![false, false, true]));
}

#[test]
fn a_closed_window_holds_back_and_coalesces() {
    let (mut view, mut sender) = (View::default(), Sender::default());
    sender.welcome(&welcome(1), &mut view);
    assert!(next(&mut sender, &mut view).is_some());
    for uid in ["a", "b", "c"] {
        put(&mut view, uid);
        assert_eq!(next(&mut sender, &mut view), None);
    }
    assert_eq!(sender.bookmark(&view), None);
    sender.acknowledge(ack(0, b""));
    let Some(Message::Delta(delta)) = next(&mut sender, &mut view) else { panic!() };
    assert_eq!((delta.base_revision, delta.revision, delta.changes.len()), (0, 3, 3));
    assert!(sender.bookmark(&view).is_some());
}

#[test]
fn a_scheduler_that_remembers_gets_only_what_it_missed() {
    let (mut view, mut sender) = (View::default(), Sender::default());
    put(&mut view, "a");
    sender.welcome(&welcome(8), &mut view);
    next(&mut sender, &mut view);
    sender.acknowledge(ack(1, b"token"));
    put(&mut view, "b");
    next(&mut sender, &mut view);
    put(&mut view, "c");
    assert_eq!(sender.resume_token(), "token");
    let resumed = Welcome { resumed: true, resume_revision: 1, ..welcome(8) };
    sender.welcome(&resumed, &mut view);
    let Some(Message::Delta(delta)) = next(&mut sender, &mut view) else { panic!() };
    assert_eq!((delta.base_revision, delta.revision, delta.changes.len()), (1, 3, 2));
}

#[test]
fn a_scheduler_that_remembers_something_else_gets_everything() {
    let (mut view, mut sender) = (View::default(), Sender::default());
    put(&mut view, "a");
    sender.welcome(&welcome(8), &mut view);
    next(&mut sender, &mut view);
    sender.acknowledge(ack(1, b"token"));
    let resumed = Welcome { resumed: true, resume_revision: 7, ..welcome(8) };
    sender.welcome(&resumed, &mut view);
    assert!(matches!(next(&mut sender, &mut view), Some(Message::SnapshotChunk(_))));
    assert_eq!(sender.resume_token(), "");
}
