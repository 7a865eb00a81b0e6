//! What is done about calls for several launches, by table.

use std::sync::Arc;

use longshore_proto::capacity::v1::InstancePhase;
use longshore_proto::types::v1::{CapacityType, Launch};

use super::*;
use crate::cloud::{TAG_CLUSTER, TAG_NAME, TAG_POOL};
use crate::ledger::{Draft, Move, batch_id, unclaimed_id};
use crate::reconcile::{reconcile, tag_key};

const NOW_MS: i64 = 10_000_000;

struct World {
    book: Book,
    inventory: Inventory,
    busy: BTreeSet<String>,
    waiting: BTreeSet<String>,
    batch_id: String,
}

fn launch(id: &str) -> LaunchRecord {
    let launch =
        Launch { launch_id: id.to_owned(), claim: format!("of-{id}"), ..Launch::default() };
    LaunchRecord::new(launch, "c", i64::MAX, NOW_MS - 1)
}

impl World {
    /// Launches a, b and c, asked for in one call.
    fn asked() -> Self {
        let records = ["a", "b", "c"].map(launch);
        let batch_id = batch_id(&records);
        let (busy, waiting) = (BTreeSet::new(), BTreeSet::new());
        let (book, inventory) = (Book::default(), Inventory::default());
        let mut world = Self { book, inventory, busy, waiting, batch_id: batch_id.clone() };
        let batch = BatchRecord {
            batch_id: batch_id.clone(),
            launch_ids: ["a", "b", "c"].map(str::to_owned).to_vec(),
            made_ms: NOW_MS,
            ..BatchRecord::default()
        };
        let mut draft = Draft::default();
        draft.batches.insert(batch_id.clone(), Some(Arc::new(batch)));
        records.into_iter().for_each(|record| draft.put(record));
        world.book.absorb(draft);
        for id in ["a", "b", "c"] {
            world.step(id, &Move::AskTogether(CapacityType::Spot, batch_id.clone()));
        }
        world
    }

    fn step(&mut self, id: &str, step: &Move) {
        let mut draft = Draft::default();
        draft.step(&self.book, id, step, NOW_MS).unwrap();
        self.book.absorb(draft);
    }

    fn launched(&mut self, id: &str, instance_id: &str) {
        let (instance_id, ec2_request_id) = (instance_id.to_owned(), String::new());
        self.step(id, &Move::Launched { instance_id, ec2_request_id });
    }

    fn refused(&mut self, id: &str) {
        self.step(id, &Move::Refused { exhausted: false });
    }

    /// EC2 shows an instance of the call, with these tags besides.
    fn shows(&mut self, id: &str, more: &[(&str, &str)]) {
        let call = self.batch_id.clone();
        let tags = [(TAG_BATCH, call.as_str()), (TAG_CLUSTER, "c"), (TAG_POOL, "p")];
        let tags = tags.iter().chain(more).map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        let phase = InstancePhase::Running;
        let seen = Instance { phase, tags: tags.collect(), ..Instance::unseen(id) };
        self.inventory.observe(&self.book, seen);
    }

    fn actions(&mut self) -> Vec<Action> {
        self.actions_at(NOW_MS)
    }

    fn actions_at(&mut self, now_ms: i64) -> Vec<Action> {
        let listed = self.inventory.iter().map(|found| found.instance_id.clone()).collect();
        self.inventory.settle(&self.book, &listed);
        let situation = Situation { now_ms, busy: &self.busy, waiting: &self.waiting };
        reconcile(&self.book, &self.inventory, &situation)
    }
}

fn launches(id: &str) -> Action {
    Action::Launch(id.to_owned())
}

fn end(instance_id: &str) -> Action {
    Action::Terminate { instance_id: instance_id.to_owned(), launch_id: "a".to_owned() }
}

#[test]
fn one_launch_stands_for_all_that_wait_and_an_instance_is_left_to_them() {
    let mut world = World::asked();
    world.shows("i-1", &[]);
    assert_eq!(world.actions(), [launches("a")]);
    world.launched("a", "i-2");
    assert_eq!(world.actions(), [launches("b")]);
    world.busy.insert("c".to_owned());
    assert_eq!(world.actions(), [], "somebody works on it");
    world.busy.clear();
    world.waiting.insert("b".to_owned());
    assert_eq!(world.actions(), [], "it rests");
    world.launched("b", "i-3");
    assert!(undecided(&world.book, world.inventory.get("i-1").unwrap()));
}

#[test]
fn a_call_that_was_not_recorded_whole_was_never_made() {
    let mut world = World::asked();
    let batch = world.book.batches.remove(&world.batch_id);
    assert_eq!(world.actions(), ["a", "b", "c"].map(|id| Action::Unasked(id.to_owned())));
    let key = Key::Batch(world.batch_id.clone());
    world.book.unreadable.insert(key, "garbage".to_owned());
    world.shows("i-1", &[]);
    assert_eq!(world.actions(), [], "what cannot be read may have been made");
    world.book.unreadable.clear();
    world.book.batches.extend(batch.map(|batch| (world.batch_id.clone(), batch)));
    world.book.launches.remove("b");
    world.book.unreadable.insert(Key::Launch("b".to_owned()), "garbage".to_owned());
    assert_eq!(world.actions(), [], "b may have any of the instances");
}

#[test]
fn an_instance_that_nobody_waits_for_goes_to_one_that_needs_it_or_ends() {
    let mut world = World::asked();
    world.launched("a", "i-1");
    world.launched("b", "i-2");
    world.refused("c");
    ["i-1", "i-2"].iter().for_each(|id| world.shows(id, &[(TAG_LAUNCH, "known")]));
    ["i-3", "i-4"].iter().for_each(|id| world.shows(id, &[]));
    let instance_id = "i-3".to_owned();
    let given = Move::Launched { instance_id, ec2_request_id: String::new() };
    let given = Action::Record("c".to_owned(), given);
    assert_eq!(world.actions(), [launches("c"), given, end("i-4")]);
    world.busy.insert("c".to_owned());
    assert_eq!(world.actions(), [end("i-3"), end("i-4")], "c is asked for already");
    world.waiting.insert("i-3".to_owned());
    world.busy.insert("i-4".to_owned());
    assert_eq!(world.actions(), []);
}

#[test]
fn what_is_ended_as_surplus_is_known_to_be_nobodys_and_everything_else_is_taken_in() {
    for forgotten in ["b", ""] {
        let mut world = World::asked();
        world.launched("a", "i-1");
        world.refused("c");
        world.step("c", &Move::Cancel);
        if forgotten.is_empty() {
            world.launched("b", "i-2");
            world.book.batches.clear();
        } else {
            world.book.launches.remove(forgotten);
        }
        world.shows("i-3", &[]);
        let actions = world.actions();
        let imports = actions.iter().filter_map(|action| {
            let Action::Import(record) = action else { return None };
            Some((record.launch_id(), record.adopted, record.claim()))
        });
        let unclaimed = unclaimed_id("i-3");
        assert_eq!(imports.collect::<Vec<_>>(), [(unclaimed.as_str(), false, "")]);
        assert!(!actions.iter().any(|action| matches!(action, Action::Terminate { .. })));
    }
}

#[test]
fn tags_are_written_until_ec2_shows_them() {
    let mut world = World::asked();
    for (launch, instance) in [("a", "i-1"), ("b", "i-2"), ("c", "i-3")] {
        world.launched(launch, instance);
    }
    assert_eq!(world.actions(), [], "not listed yet");
    world.shows("i-1", &[]);
    world.shows("i-2", &[(TAG_NAME, "somebody's")]);
    world.shows("i-3", &[(TAG_LAUNCH, "c")]);
    let tag = |instance_id: &str, launch_id: &str| Action::Tag {
        instance_id: instance_id.to_owned(),
        launch_id: launch_id.to_owned(),
    };
    assert_eq!(world.actions(), [tag("i-1", "a"), tag("i-2", "b")]);
    world.busy.insert(tag_key("i-1"));
    world.waiting.insert(tag_key("i-2"));
    assert_eq!(world.actions(), []);
    world.busy.clear();
    world.step("a", &Move::Terminate { traceparent: String::new() });
    let ended = Action::Terminate { instance_id: "i-1".to_owned(), launch_id: "a".to_owned() };
    assert_eq!(world.actions(), [ended], "what ends needs no name");
}

#[test]
fn a_call_is_forgotten_when_it_is_long_over_and_nothing_of_it_is_unclear() {
    let mut world = World::asked();
    let later = NOW_MS + KEEP_FINISHED_MS;
    assert_eq!(world.actions_at(later), [launches("a")], "not while anybody waits");
    for (launch, instance) in [("a", "i-1"), ("b", "i-2"), ("c", "i-3")] {
        world.launched(launch, instance);
    }
    assert_eq!(world.actions_at(later - 1), []);
    let forget = [Action::ForgetBatch(world.batch_id.clone())];
    assert_eq!(world.actions_at(later), forget);
    world.shows("i-4", &[]);
    assert_eq!(world.actions_at(later), [end("i-4")]);
}
