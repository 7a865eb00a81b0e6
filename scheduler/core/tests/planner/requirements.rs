//! Laws of the requirement algebra.
//!
//! Invariant: a requirement is a set over "a few values, and absent"; every law is checked against
//! that set.

use longshore_core::requirement::{Operator, Requirement};
use longshore_core::requirements::Requirements;
use proptest::prelude::*;

/// Values that tell requirements apart: words, integers around the bounds, and what is no integer.
const VALUES: [Option<&str>; 9] = [
    None,
    Some("a"),
    Some("b"),
    Some("c"),
    Some("1"),
    Some("2"),
    Some("3"),
    Some("4"),
    Some("1.5"),
];

fn requirement() -> impl Strategy<Value = Requirement> {
    let words =
        prop::collection::btree_set(prop::sample::select(vec!["a", "b", "1", "2", "3"]), 0..4);
    let number = (0..5_i64).prop_map(|n| n.to_string());
    prop_oneof![
        words.clone().prop_map(|v| Requirement::new(Operator::In, v).unwrap()),
        words.prop_map(|v| Requirement::new(Operator::NotIn, v).unwrap()),
        Just(Requirement::exists()),
        Just(Requirement::does_not_exist()),
        number.clone().prop_map(|n| Requirement::new(Operator::Gt, [n]).unwrap()),
        number.clone().prop_map(|n| Requirement::new(Operator::Lt, [n]).unwrap()),
        number.clone().prop_map(|n| Requirement::new(Operator::Gte, [n]).unwrap()),
        number.prop_map(|n| Requirement::new(Operator::Lte, [n]).unwrap()),
    ]
}

proptest! {
    #[test]
    fn intersection_is_that_of_the_sets(a in requirement(), b in requirement(), c in requirement()) {
        let both = a.intersect(&b);
        for value in VALUES {
            prop_assert_eq!(both.allows(value), a.allows(value) && b.allows(value));
        }
        prop_assert_eq!(&both, &b.intersect(&a));
        prop_assert_eq!(both.intersect(&c), a.intersect(&b.intersect(&c)));
        prop_assert_eq!(both.intersect(&a), both);
    }

    #[test]
    fn emptiness_and_cover_never_lie(a in requirement(), b in requirement()) {
        if a.is_empty() {
            prop_assert!(VALUES.iter().all(|value| !a.allows(*value)));
        }
        if a.covers(&b) {
            prop_assert!(VALUES.iter().all(|value| !b.allows(*value) || a.allows(*value)));
        }
        prop_assert!(a.covers(&a.intersect(&b)));
        if let Some(example) = a.example() {
            prop_assert!(a.allows(Some(&example)));
        }
    }

    #[test]
    fn clauses_say_the_same_again(a in requirement(), b in requirement()) {
        let both = a.intersect(&b);
        let mut again: Option<Requirement> = None;
        for clause in both.clauses() {
            let part = Requirement::new(clause.operator, clause.values).unwrap();
            again = Some(again.map_or(part.clone(), |again| again.intersect(&part)));
        }
        let again = again.unwrap();
        for value in VALUES {
            prop_assert_eq!(again.allows(value), both.allows(value), "{:?}", value);
        }
    }
}

/// Requirements that single clauses cannot spell: bounds with exceptions, sets with absence.
fn mixed() -> impl Strategy<Value = Requirement> {
    prop::collection::vec(requirement(), 1..4)
        .prop_map(|parts| parts.into_iter().reduce(|both, part| both.intersect(&part)).unwrap())
}

fn conjunction() -> impl Strategy<Value = Requirements> {
    let keys = prop::sample::select(vec!["team", "level", "topology.kubernetes.io/zone"]);
    let entries = prop::collection::vec((keys, requirement()), 0..4);
    entries.prop_map(|all| all.into_iter().map(|(key, r)| (key.to_owned(), r)).collect())
}

proptest! {
    #[test]
    fn mixed_requirements_obey_the_laws_of_sets(a in mixed(), b in mixed(), c in mixed()) {
        prop_assert_eq!(a.intersect(&b), b.intersect(&a));
        prop_assert_eq!(a.intersect(&b).intersect(&c), a.intersect(&b.intersect(&c)));
        prop_assert_eq!(a.intersect(&a), a.clone());
        prop_assert!(a.covers(&a) && a.covers(&a.intersect(&b)));
        prop_assert_eq!(a.overlaps(&b), b.overlaps(&a));
        let shared = VALUES.iter().any(|value| a.allows(*value) && b.allows(*value));
        prop_assert!(a.overlaps(&b) || !shared);
        if a.covers(&b) && b.covers(&c) {
            prop_assert!(a.covers(&c));
        }
        if let Some(value) = a.single() {
            prop_assert!(a.allows(Some(value)) && !a.allows_absent());
        }
        if let Some(listed) = a.listed() {
            prop_assert!(listed.iter().all(|value| a.allows(Some(value))));
        }
    }

    #[test]
    fn conjunctions_do_not_depend_on_order(a in conjunction(), b in conjunction()) {
        let both = a.and(&b);
        prop_assert_eq!(&both, &b.and(&a));
        prop_assert_eq!(both.and(&a), both.clone());
        prop_assert!(both.is_contradictory() || a.cover(&both) && b.cover(&both));
    }

    #[test]
    fn labels_decide_as_equalities_do(
        wanted in conjunction(),
        team in prop::option::of(prop::sample::select(vec!["a", "1", "3", "1.5"])),
    ) {
        let labels: longshore_core::labels::Labels =
            team.iter().map(|value| ("team".to_owned(), (*value).to_owned())).collect();
        let known = Requirements::from_labels(&labels);
        prop_assert_eq!(wanted.allow(&labels), wanted.cover(&known));
        if wanted.allow(&labels) {
            prop_assert!(wanted.conflict_with_offer(&known).is_none());
        }
    }
}

fn of(key: &str, operator: Operator, values: &[&str]) -> Requirements {
    [(key.to_owned(), Requirement::new(operator, values).unwrap())].into_iter().collect()
}

#[test]
fn undefined_keys_are_allowed_when_well_known_or_when_absence_is() {
    let nothing = Requirements::new();
    let allowed = |wanted: &Requirements| wanted.conflict_with_offer(&nothing).is_none();
    assert!(allowed(&of("topology.kubernetes.io/zone", Operator::In, &["a"])));
    assert!(!allowed(&of("team", Operator::In, &["a"])));
    assert!(!allowed(&of("team", Operator::Exists, &[])));
    assert!(!allowed(&of("team", Operator::Gt, &["1"])));
    assert!(allowed(&of("team", Operator::NotIn, &["a"])));
    assert!(allowed(&of("team", Operator::DoesNotExist, &[])));
    // Existing nodes define what they define.
    assert!(!of("topology.kubernetes.io/zone", Operator::In, &["a"]).allow(&Default::default()));
}

#[test]
fn negative_requirements_never_conflict_with_each_other() {
    let not_a = of("team", Operator::NotIn, &["a"]);
    let absent = of("team", Operator::DoesNotExist, &[]);
    assert!(not_a.conflict_with_offer(&absent).is_none());
    assert!(absent.conflict_with_offer(&not_a).is_none());
    assert!(absent.conflict_with_offer(&of("team", Operator::Exists, &[])).is_some());
}

#[test]
fn numbers_compare_as_numbers_and_words_never_do() {
    let more = Requirement::new(Operator::Gt, ["9"]).unwrap();
    assert!(more.allows(Some("10")));
    assert!(!more.allows(Some("9")));
    assert!(!more.allows(Some("ten")));
    assert!(!more.allows(None));
    assert!(Requirement::new(Operator::Gt, ["ten"]).is_err());
    let none = Requirement::new(Operator::Gt, [i64::MAX.to_string()]).unwrap();
    assert!(none.is_empty());
}

#[test]
fn min_values_survive_an_intersection() {
    let a = Requirement::exists().with_min_values(Some(2));
    let b = Requirement::one_of(["x", "y", "z"]).with_min_values(Some(3));
    assert_eq!(a.intersect(&b).min_values, Some(3));
}

#[test]
fn legacy_keys_mean_the_same_label() {
    let mut requirements = Requirements::new();
    requirements.add("beta.kubernetes.io/arch", Requirement::equals("arm64"));
    assert_eq!(requirements.get("kubernetes.io/arch").and_then(Requirement::single), Some("arm64"));
}
