//! Our objects beside Karpenter's: docs/karpenter-objects.md, held against both definitions.
//!
//! Solves: which fields does only one of the two know, which checks the API server otherwise, and
//! which fields does nothing of ours act on? What is known of Karpenter's definitions is in
//! objects/karpenter.txt, made from the published ones; ours are generated from their types.
//! `UPDATE_EXPECT=1` rewrites that file, and then, once more, the page.
//!
//! Invariant: every difference has a note that says what it means for a manifest, and every note a
//! difference.

mod acted;
mod difference;
mod facts;
mod notes;
mod page;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use expect_test::expect_file;
use longshore_watcher::api::Kind;

use self::difference::differences;
use self::facts::{Facts, Object};
use self::notes::NOTES;

/// The kinds that both have, as the page lists them.
const KINDS: [Kind; 4] = [Kind::NodePool, Kind::NodeClaim, Kind::NodeOverlay, Kind::EC2NodeClass];
const TOP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const PART: &str = "karpenter-crds";

/// What is known of Karpenter's objects.
fn theirs() -> Facts {
    Facts::read(include_str!("objects/karpenter.txt"))
}

/// The same of ours.
fn ours() -> Facts {
    of_definitions(String::new(), |kind| kind.file_content().unwrap())
}

fn of_definitions(version: String, text: impl Fn(Kind) -> String) -> Facts {
    let object = |kind: Kind| Object::of(&serde_saphyr::from_str(&text(kind)).unwrap());
    let objects = KINDS.map(|kind| (kind.name().to_owned(), object(kind)));
    Facts { version, objects: objects.into() }
}

#[test]
fn the_page_says_what_the_definitions_say() {
    let page = page::text(&theirs(), &ours());
    expect_file!["../../../docs/karpenter-objects.md"].assert_eq(&page);
}

#[test]
fn facts_are_those_of_the_published_definitions() {
    let folder = published();
    let text = |kind: Kind| fs::read_to_string(folder.join(kind.file_name())).unwrap();
    let facts = of_definitions(version(PART), text);
    expect_file!["objects/karpenter.txt"].assert_eq(&facts.to_string());
    assert_eq!(facts, Facts::read(&facts.to_string()));
    assert_eq!(version(PART), version("karpenter"), "two versions in tools/parts/versions");
}

/// Where the published definitions are.
fn published() -> PathBuf {
    let output = Command::new(Path::new(TOP).join("tools/setup.sh")).args(["--dir", PART]).output();
    let folder = PathBuf::from(String::from_utf8(output.unwrap().stdout).unwrap().trim());
    assert!(folder.join(".complete").exists(), "run `tools/setup.sh {PART}`, a second's work");
    folder
}

/// Version of a part.
fn version(part: &str) -> String {
    let versions = fs::read_to_string(Path::new(TOP).join("tools/parts/versions")).unwrap();
    let mut lines = versions.lines().map(|line| line.split_whitespace());
    let mut words = lines.find(|words| words.clone().next() == Some(part)).unwrap();
    words.nth(1).unwrap().to_owned()
}

#[test]
fn every_difference_has_one_note_and_every_note_a_difference() {
    let found = differences(&theirs(), &ours());
    for difference in &found {
        let notes = NOTES.iter().filter(|note| note.is_about(difference)).count();
        assert_eq!(notes, 1, "{notes} notes in objects/notes.rs about {difference:?}");
    }
    for note in NOTES {
        let meant = found.iter().any(|difference| note.is_about(difference));
        assert!(meant, "nothing differs any more: {note:?}");
    }
}

#[test]
fn what_nothing_acts_on_has_one_note_and_every_note_is_true() {
    for (kind, project) in acted::PROJECTED {
        let object = &ours().objects[kind.name()];
        let unused = acted::unused(kind, object, project);
        let all = notes::unused();
        let notes: Vec<_> = all.iter().filter(|note| note.kind == kind.name()).collect();
        let notes_of = |field: &&String| notes.iter().filter(|note| note.covers(field)).count();
        let wanting: Vec<&String> = unused.iter().filter(|field| notes_of(field) != 1).collect();
        assert!(wanting.is_empty(), "{kind}: no note in objects/notes.rs, or two: {wanting:?}");
        for note in notes {
            let mut covered = object.leaves().filter(|field| note.covers(field)).peekable();
            assert!(covered.peek().is_some(), "no such field: {note:?}");
            let acted = covered.find(|field| !unused.contains(*field));
            assert_eq!(acted, None, "this is acted on after all: {note:?}");
        }
    }
}
