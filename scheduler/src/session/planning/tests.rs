//! When the planner is asked again, and when a plan has been overtaken.

use longshore_core::answer::{Placement, Plan};
use longshore_core::world::pod::Pod;
use longshore_core::world::shape::PodShape;
use longshore_core::world::view::{Change, ClusterView};

use super::*;

fn proposal(told: &[&str], fit: &[&str]) -> Proposal {
    let turns = fit.iter().map(|claim| (ClaimName::new(claim), 0)).collect();
    Proposal {
        plan_id: String::new(),
        plan: Arc::new(Plan { turns, ..Plan::default() }),
        closed: BTreeMap::new(),
        opening: told.iter().map(|claim| ClaimName::new(claim)).collect(),
        tainted: BTreeSet::new(),
        certain: Vec::new(),
        ahead: 0,
        awaited: BTreeSet::new(),
        kept: BTreeMap::new(),
        drift_hashes: BTreeMap::new(),
        holds: None,
        figures: crate::counters::Figures::default(),
        span: tracing::Span::none(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_planner_that_fails_is_asked_again_by_itself_and_ever_later() {
    let entropy = longshore_runtime::entropy::Entropy::seeded(1);
    let platform = Platform { entropy, ..Platform::system() };
    let mut planning = Planning::new(1, Settings::default(), &platform);
    let mut wait = || {
        planning.failed(&JobError::Panicked("no such shelf".to_owned()));
        planning.want("");
        planning.wake_at().unwrap() - Instant::now()
    };
    let waits: Vec<Duration> = (0..12).map(|_| wait()).collect();
    assert!(waits.iter().all(|wait| *wait >= FAILED_AGAIN.minimum / 2), "{waits:?}");
    assert!(waits.iter().max() > Some(&(4 * FAILED_AGAIN.minimum)), "{waits:?}");
}

#[test]
fn a_plan_is_overtaken_when_a_node_opens_that_it_held_for_unfit() {
    let mut planning = Planning::new(1, Settings::default(), &Platform::system());
    assert!(!planning.has_overtaken(&proposal(&[], &[])));
    planning.opens("a");
    assert!(planning.has_overtaken(&proposal(&[], &["b"])));
    assert!(!planning.has_overtaken(&proposal(&[], &["a"])), "it was seen fit");
    assert!(!planning.has_overtaken(&proposal(&["a"], &[])), "it was told before");
}

#[tokio::test(start_paused = true)]
async fn what_may_wait_is_held_for_longer_behind_others() {
    for (ahead, until_ms) in [(0, 100), (600, 300)] {
        let mut planning = Planning::new(1, Settings::default(), &Platform::system());
        planning.cadence.stir(Stir::Arrival, "");
        planning.cadence.stir(Stir::Arrival, "");
        let proposal = Proposal { certain: vec![true, false], ahead, ..proposal(&[], &[]) };
        let until = Duration::from_millis(until_ms);
        assert_eq!(planning.holds(&proposal), Some((vec![false, true], until)));
    }
}

/// How many of `others`, pods of priority 5, are ahead of one of `priority` whose node may wait.
fn ahead(others: &[Target], priority: i32) -> usize {
    let (mut view, mut plan) = (ClusterView::new(), Plan::default());
    let held = (Target::New(0), priority);
    for (at, (target, priority)) in
        others.iter().map(|it| (it.clone(), 5)).chain([held]).enumerate()
    {
        let (id, uid) = (priority.to_string(), PodUid::new(&at.to_string()));
        let shape = ShapeId::new(&id);
        let of = PodShape { id: shape.clone(), priority, ..PodShape::default() };
        view.apply(Change::Shape(of));
        view.apply(Change::Pod(Pod { uid: uid.clone(), shape, ..Pod::default() }));
        plan.placements.push(Placement { pod: uid, target });
    }
    proposal::ahead(&plan, &view.snapshot(), &[false, true])
}

#[test]
fn ahead_is_what_has_a_place_already_and_is_not_of_less_priority() {
    let claim = Target::Claim(ClaimName::new("c"));
    for (others, priority, expected) in [
        (vec![], 5, 0),
        (vec![claim.clone(), Target::New(1), Target::New(0)], 5, 2),
        (vec![claim.clone(), Target::New(1)], 4, 2),
        (vec![claim, Target::New(1)], 6, 0),
    ] {
        assert_eq!(ahead(&others, priority), expected, "{others:?}");
    }
}

/// Fails on waiting pods of one shape.
fn poisoned(input: PlanInput, coming: &foresight::Coming) -> (PlanInput, Plan) {
    let poison = ShapeId::new("poison");
    assert!(input.world.pending().all(|(shape, _)| *shape != poison), "no such item");
    foresight::plan(input, coming)
}

#[test]
fn what_the_planner_fails_on_is_found_and_the_rest_is_planned() {
    let mut view = ClusterView::new();
    for id in ["a", "poison", "z"] {
        view.apply(Change::Shape(PodShape { id: id.into(), ..PodShape::default() }));
        let pod =
            Pod { uid: PodUid::new(id), shape: id.into(), unschedulable: true, ..Pod::default() };
        view.apply(Change::Pod(pod));
    }
    let input = PlanInput { world: view.snapshot(), ..PlanInput::default() };
    let found = proposal::at_fault(&input, &Default::default(), poisoned);
    let mut quarantine = Quarantine::default();
    quarantine.hold(found, &input.world, "no such item");
    let mut coming = Default::default();
    let (input, left_out) = quarantine.applied(input, &mut coming);
    let (plan_id, span) = (String::new(), tracing::Span::none());
    let drift_hashes = BTreeMap::new();
    let looks = false;
    let asked = Asked { input, coming, plan_id, looks, span, left_out, drift_hashes };
    let plan = proposal::propose(asked, poisoned).unwrap().plan;
    let told: Vec<_> =
        plan.unplaced.iter().map(|it| (it.shape.as_str(), it.reason.code())).collect();
    assert_eq!(told[1], ("poison", "PLANNER_FAILS"), "{told:?}");
    assert_eq!(told.len(), 3, "the others are planned, and there is no pool: {told:?}");
}
