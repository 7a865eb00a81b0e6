//! What the planner fails on is found by trying, and left out.

use longshore_core::vocabulary::pool::NodePool;
use longshore_core::world::pod::Pod;
use longshore_core::world::shape::PodShape;
use longshore_core::world::view::Change;

use super::*;

/// Two waiting pods of each of eight shapes, and two pools.
fn input() -> PlanInput {
    let mut view = ClusterView::new();
    for shape in 0..8 {
        let id: ShapeId = format!("s{shape}").as_str().into();
        view.apply(Change::Shape(PodShape { id: id.clone(), ..PodShape::default() }));
        for pod in 0..2 {
            let uid = PodUid::new(&format!("s{shape}-{pod}"));
            view.apply(Change::Pod(Pod { uid, shape: id.clone(), ..Pod::default() }));
        }
    }
    for pool in ["a", "b"] {
        view.apply(Change::Pool(NodePool { name: pool.into(), ..NodePool::default() }));
    }
    PlanInput { world: view.snapshot(), ..PlanInput::default() }
}

fn shape(id: &str) -> Suspect {
    Suspect::Shape(id.into())
}

fn waits(input: &PlanInput, id: &str) -> bool {
    !waiting(&input.world, &id.into()).is_empty()
}

#[test]
fn what_is_at_fault_is_found_and_nothing_else() {
    let input = input();
    let one = find(&input, |tried| waits(tried, "s5"));
    assert_eq!(one, [shape("s5")].into());
    let either = find(&input, |tried| waits(tried, "s0") || waits(tried, "s7"));
    assert_eq!(either, [shape("s0"), shape("s7")].into());
    let pool = find(&input, |tried| tried.world.pools.contains_key("b"));
    assert_eq!(pool, [Suspect::Pool("b".into())].into());
    let together = find(&input, |tried| waits(tried, "s1") && waits(tried, "s2"));
    assert_eq!(together.len(), 1, "{together:?}");
}

#[test]
fn what_does_not_fail_again_or_always_fails_is_nobodys_fault() {
    let input = input();
    assert!(find(&input, |_| false).is_empty());
    assert!(find(&input, |_| true).is_empty());
}

#[test]
fn what_is_left_out_is_told_and_nothing_goes_by_choice_meanwhile() {
    let (input, mut quarantine) = (input(), Quarantine::default());
    let found = [shape("s5"), Suspect::Pool("b".into())].into();
    quarantine.hold(found, &input.world, "index out of bounds");
    let mut coming = Coming::from([("s5".into(), 3), ("s6".into(), 1)]);
    let (less, left_out) = quarantine.applied(input.clone(), &mut coming);
    assert!(!less.consolidates && !waits(&less, "s5") && waits(&less, "s6"));
    assert!(!less.world.pools.contains_key("b"));
    assert_eq!(coming.keys().collect::<Vec<_>>(), [&ShapeId::new("s6")]);
    let (mut plan, mut closed) = (Plan::default(), BTreeMap::new());
    left_out.tell(&mut plan, &mut closed);
    assert_eq!(plan.unplaced[0].pods, [PodUid::new("s5-0"), PodUid::new("s5-1")]);
    assert_eq!(plan.unplaced[0].reason.code(), "PLANNER_FAILS");
    assert!(closed.contains_key("b"));
}

#[tokio::test(start_paused = true)]
async fn another_object_and_another_time_are_another_chance() {
    let (input, mut quarantine) = (input(), Quarantine::default());
    let pool = Suspect::Pool("b".into());
    quarantine.hold([shape("s5"), pool].into(), &input.world, "");
    let mut view = ClusterView::of(Arc::clone(&input.world));
    view.apply(Change::Pool(NodePool { name: "b".into(), weight: 7, ..NodePool::default() }));
    let changed = PlanInput { world: view.snapshot(), ..input.clone() };
    let (less, _) = quarantine.applied(changed, &mut Coming::default());
    assert!(less.world.pools.contains_key("b") && !waits(&less, "s5"));
    tokio::time::advance(LEFT_OUT_FOR).await;
    let (whole, _) = quarantine.applied(input, &mut Coming::default());
    assert!(waits(&whole, "s5") && whole.consolidates);
}

#[test]
fn what_is_gone_keeps_nothing_from_going() {
    let (input, mut quarantine) = (input(), Quarantine::default());
    quarantine.hold([shape("s5")].into(), &input.world, "");
    let world = without(&input.world, [shape("s5")].iter());
    let (whole, _) = quarantine.applied(PlanInput { world, ..input }, &mut Coming::default());
    assert!(whole.consolidates);
}

#[test]
fn a_search_ends_after_so_many_trials() {
    let (input, trials) = (input(), std::cell::Cell::new(0));
    let many = |_: &PlanInput| {
        trials.set(trials.get() + 1);
        trials.get() != 2
    };
    assert!(find(&input, many).len() <= 10 && trials.get() <= TRIALS_MAX);
    let mut search = Search { input: &input, fails: |_: &PlanInput| true, trials: TRIALS_MAX };
    assert_eq!(search.fails_without(&[]), None);
    assert_eq!(search.at_fault(), None);
}
