//! Laws of the view.

use super::*;
use longshore_proto::types::v1::{Namespace, Pod, PodShape};

fn namespace(name: &str, label: &str) -> Kind {
    let labels = [("l".to_owned(), label.to_owned())].into();
    Kind::Namespace(Namespace { name: name.to_owned(), labels })
}

fn pod(uid: &str) -> Kind {
    Kind::Pod(Pod { uid: uid.to_owned(), ..Pod::default() })
}

fn shape(id: &str) -> Kind {
    Kind::PodShape(PodShape { shape_id: id.to_owned(), ..PodShape::default() })
}

fn kinds(step: &Step) -> Vec<String> {
    step.changes
        .iter()
        .map(|c| match c.change.as_ref().unwrap() {
            Change::Upsert(o) => format!("+{}", reference::of(o.kind.as_ref().unwrap()).key),
            Change::Remove(r) => format!("-{}", r.key),
        })
        .collect()
}

#[test]
fn an_unchanged_object_is_no_change() {
    let mut view = View::default();
    assert!(view.put(namespace("a", "x")));
    assert!(!view.put(namespace("a", "x")));
    assert!(view.put(namespace("a", "y")));
    assert_eq!(view.revision(), 2);
    assert!(!view.remove(&Key::new(ObjectKind::Namespace, "b")));
    assert_eq!(view.revision(), 2);
}

#[test]
fn the_digest_depends_on_the_set_of_keys_alone() {
    let mut forward = View::default();
    let mut backward = View::default();
    for name in ["a", "b", "c"] {
        forward.put(namespace(name, "x"));
    }
    for name in ["c", "d", "b", "a"] {
        backward.put(namespace(name, "y"));
    }
    assert_ne!(forward.digest(), backward.digest());
    backward.remove(&Key::new(ObjectKind::Namespace, "d"));
    assert_eq!(forward.digest(), backward.digest());
}

#[test]
fn shapes_come_before_pods_and_leave_after_them() {
    let mut view = View::default();
    view.put(pod("p1"));
    view.put(shape("s1"));
    assert_eq!(kinds(&view.step(usize::MAX).unwrap()), ["+s1", "+p1"]);
    view.remove(&Key::new(ObjectKind::PodShape, "s1"));
    view.remove(&Key::new(ObjectKind::Pod, "p1"));
    view.put(shape("s2"));
    assert_eq!(kinds(&view.step(usize::MAX).unwrap()), ["+s2", "-p1", "-s1"]);
    assert_eq!(view.step(usize::MAX), None);
}

#[test]
fn steps_follow_on_from_each_other_whatever_their_size() {
    let mut view = View::default();
    for n in 0..5 {
        view.put(pod(&format!("p{n}")));
    }
    let mut told = 0;
    let mut seen = Vec::new();
    while let Some(step) = view.step(1) {
        assert_eq!(step.base_revision, told);
        assert!(step.revision > told);
        told = step.revision;
        seen.extend(kinds(&step));
    }
    assert_eq!(told, view.revision());
    assert_eq!(seen, ["+p0", "+p1", "+p2", "+p3", "+p4"]);
    assert!(view.is_clean());
}

#[test]
fn a_rewound_view_repeats_what_was_lost() {
    let mut view = View::default();
    view.put(pod("p0"));
    let first = view.step(usize::MAX).unwrap();
    view.put(pod("p1"));
    let second = view.step(usize::MAX).unwrap();
    view.put(pod("p2"));
    view.rewind(first.revision, second.keys);
    let again = view.step(usize::MAX).unwrap();
    assert_eq!((again.base_revision, again.revision), (first.revision, view.revision()));
    assert_eq!(kinds(&again), ["+p1", "+p2"]);
}

#[test]
fn a_snapshot_is_everything() {
    let mut view = View::default();
    view.put(pod("p0"));
    view.put(shape("s0"));
    let told = view.snapshot();
    let told: Vec<_> = told.iter().filter_map(|object| object.object().kind).collect();
    assert_eq!(told, [shape("s0"), pod("p0")]);
    assert!(view.is_clean());
    view.put(pod("p1"));
    assert_eq!(view.step(usize::MAX).unwrap().base_revision, 2);
}

#[test]
fn a_receiver_that_does_not_know_tombstones_is_sent_none() {
    let tombstone = |key: &str| {
        let row = longshore_proto::types::v1::UnreadableObject {
            key: key.to_owned(),
            ..Default::default()
        };
        Kind::Unreadable(row)
    };
    let key = |key: &str| Key::new(ObjectKind::Unreadable, key);
    let mut view = View::default();
    view.put(namespace("a", "1"));
    let plain = view.digest();
    view.put(tombstone("4/a"));
    assert!(!view.show_tombstones(true), "the receiver is taken to know them");
    assert!(view.show_tombstones(false));
    assert_eq!(view.digest(), plain);
    assert_eq!(view.snapshot().len(), 1);
    let revision = view.revision();
    assert!(view.put(tombstone("4/b")) && view.remove(&key("4/a")));
    assert!(view.is_clean() && view.revision() == revision, "nothing that it could miss");
    assert!(view.get(&key("4/b")).is_some(), "here they are known all the same");
    assert!(view.show_tombstones(true));
    assert_ne!(view.digest(), plain);
    assert_eq!(view.snapshot().len(), 2);
}
