//! Equal questions have equal answers, byte for byte: whichever thread asks, at the same time as
//! others or not, and in whichever order objects come.
//!
//! Invariant: nothing of the answer is left out of the comparison but the time that planning took.
//! A described world has no plan id and no trace.

use longshore_proto::planning::v1::ComputePlanResponse;
use prost::Message as _;

use super::super::{Question, compute};
use crate::random::{self, Random};
use longshore_proto::types::v1;

/// Worlds; each is planned four times.
const WORLDS: u64 = 250;

fn question(seed: u64) -> Question {
    let mut random = Random::new(seed);
    let catalogue = random::catalogue(&mut random);
    let size = (random.below(5), random.below(25));
    let objects = random::objects(&mut random, size);
    let count = |number: u64, random: &mut Random| v1::PodCount {
        shape_id: format!("s-{number}"),
        count: u32::try_from(random.below(6)).unwrap(),
    };
    Question {
        pods: (0..4).map(|number| count(number, &mut random)).collect(),
        objects: objects.into_iter().map(|kind| v1::Object { kind: Some(kind) }).collect(),
        catalogue,
        now_ms: 3_600_000,
        explain: vec!["s-0".to_owned()],
        ..Question::default()
    }
}

fn shuffled(mut question: Question, random: &mut Random) -> Question {
    random.shuffle(&mut question.objects);
    random.shuffle(&mut question.pods);
    random.shuffle(&mut question.catalogue.types);
    question.catalogue.types.iter_mut().for_each(|kind| random.shuffle(&mut kind.offerings));
    question
}

fn bytes(question: &Question) -> Vec<u8> {
    let answer = compute(question).unwrap();
    ComputePlanResponse { plan_micros: 0, ..answer }.encode_to_vec()
}

/// All worlds, each in an order of this round's own.
fn round(number: u64) -> Vec<Vec<u8>> {
    let mut random = Random::new(WORLDS + number);
    (0..WORLDS).map(|seed| bytes(&shuffled(question(seed), &mut random))).collect()
}

#[test]
fn a_thousand_plans_do_not_depend_on_thread_or_order() {
    let first: Vec<Vec<u8>> = (0..WORLDS).map(|seed| bytes(&question(seed))).collect();
    let distinct: std::collections::BTreeSet<&Vec<u8>> = first.iter().collect();
    assert!(distinct.len() > 200, "the worlds are all alike");
    assert!(first == round(0), "another order on the same thread");
    let (one, two) = std::thread::scope(|scope| {
        let (one, two) = (scope.spawn(|| round(1)), scope.spawn(|| round(2)));
        (one.join().unwrap(), two.join().unwrap())
    });
    for (seed, plan) in first.iter().enumerate() {
        assert!(*plan == one[seed] && *plan == two[seed], "world {seed} on two threads");
    }
}

/// Plans the same worlds and asks the check.
#[test]
fn plans_of_all_worlds_pass_the_check() {
    let broken = (0..WORLDS).filter_map(|seed| {
        let answer = compute(&question(seed)).unwrap();
        (!answer.violations.is_empty()).then_some((seed, answer.violations))
    });
    assert_eq!(broken.collect::<Vec<_>>(), Vec::new());
}

#[test]
fn counts_of_one_shape_in_two_parts_add_up() {
    let mut split = question(3);
    split.pods = [4, 3].map(|count| v1::PodCount { shape_id: "s-0".to_owned(), count }).to_vec();
    let mut whole = split.clone();
    whole.pods = vec![v1::PodCount { shape_id: "s-0".to_owned(), count: 7 }];
    assert!(bytes(&split) == bytes(&whole));
}
