//! When nodes that have joined take pods.

use super::super::opening::{GATHER_MS, GATHERED_MIN, OPEN_PATIENCE_MS, START_PATIENCE_MS};
use super::*;

#[test]
fn a_node_is_registered_when_it_may_take_pods_or_has_had_its_time() {
    let launched = Case::new().launch(LaunchPhase::Launched).instance(InstancePhase::Pending);
    let mut joined = launched.provided().node();
    let mut node = |fit_ms, age_ms| {
        let node = joined.nodes.get_mut("aws:///z/i-1").unwrap();
        (node.fit_ms, node.seen_ms) = (fit_ms, SESSION_MS - age_ms);
        joined.only()
    };
    assert_eq!(node(None, 0), None);
    assert_eq!(node(None, START_PATIENCE_MS - 1), None);
    assert!(node(None, START_PATIENCE_MS).is_some());
    assert!(node(Some(SESSION_MS), 0).is_some());
}

#[test]
fn a_fit_node_opens_when_a_plan_knows_it_and_it_is_its_turn() {
    let claim = |name: String| (name.clone(), NodeClaim { name, ..Default::default() });
    let mut claims = BTreeMap::from(["a", "b"].map(|name| claim(name.to_owned())));
    let case = Case::new();
    let opens =
        |pins_pods, claims: &BTreeMap<String, NodeClaim>, turns: &[(&str, i64)], session_ms| {
            let turns = turns.iter().map(|(name, turn)| (ClaimName::new(name), *turn)).collect();
            case.seen(|world| {
                let world = World { claims, turns: &turns, pins_pods, session_ms, ..*world };
                world.may_open(&claims["a"], &joined())
            })
        };
    assert!(!opens(false, &claims, &[], SESSION_MS), "no plan knows the node yet");
    assert!(opens(false, &claims, &[], SESSION_MS + OPEN_PATIENCE_MS), "no plan comes");
    assert!(opens(false, &claims, &[("a", 0), ("b", 0)], SESSION_MS));
    assert!(opens(false, &claims, &[("a", 2)], SESSION_MS), "b may be long in coming");
    let both = [("a", 2), ("b", 1)];
    assert!(!opens(false, &claims, &both, SESSION_MS), "b opens first");
    assert!(opens(true, &claims, &both, SESSION_MS), "pods find their nodes in any order");
    assert!(!opens(true, &claims, &[], SESSION_MS), "no plan has pods for it yet");
    assert!(opens(false, &claims, &both, SESSION_MS + OPEN_PATIENCE_MS));
    claims.get_mut("b").unwrap().register_time = Some(Timestamp::default());
    assert!(opens(false, &claims, &both, SESSION_MS), "b is open");
}

/// Whether a node that is fit since [`SESSION_MS`] opens beside these others.
fn opens_beside(others: &[Joined], any_order: bool, session_ms: i64) -> bool {
    let launched = Case::new().launch(LaunchPhase::Launched).instance(InstancePhase::Pending);
    let mut case = launched.provided().node();
    let own = case.claim.name.clone();
    let mut claims = BTreeMap::from([(own.clone(), case.claim.clone())]);
    for (at, node) in others.iter().enumerate() {
        let (name, provider_id) = (format!("other-{at}"), format!("aws:///z/o-{at}"));
        case.nodes.insert(provider_id.clone(), node.clone());
        claims.insert(name.clone(), NodeClaim { name, provider_id, ..Default::default() });
    }
    case.seen(|world| {
        let world = World { claims: &claims, any_order, session_ms, ..*world };
        let due = steps(&world);
        due.iter().any(|due| matches!(&due.step, Step::Direct { claim, .. } if *claim == own))
    })
}

#[test]
fn fit_nodes_wait_a_moment_for_many_that_are_about_to_be_fit() {
    let coming = Joined { fit_ms: None, ..joined() };
    let others = |coming_count: usize, fit_count: usize| -> Vec<Joined> {
        let fit = std::iter::repeat_n(joined(), fit_count);
        std::iter::repeat_n(coming.clone(), coming_count).chain(fit).collect()
    };
    let opens = |others: &[Joined]| opens_beside(others, true, SESSION_MS);
    assert!(!opens(&others(GATHERED_MIN, 0)));
    assert!(opens(&others(GATHERED_MIN - 1, 0)), "few are coming");
    assert!(!opens(&others(2 * GATHERED_MIN, GATHERED_MIN)));
    assert!(opens(&others(2 * GATHERED_MIN, 2 * GATHERED_MIN)), "most are fit");
    let many = others(GATHERED_MIN, 0);
    assert!(opens_beside(&many, false, SESSION_MS), "pods go where they are told");
    assert!(!opens_beside(&many, true, SESSION_MS + GATHER_MS - 1));
    assert!(opens_beside(&many, true, SESSION_MS + GATHER_MS), "it has waited for long enough");
    let broken = Joined { seen_ms: SESSION_MS - START_PATIENCE_MS, ..coming.clone() };
    assert!(opens(&vec![broken; GATHERED_MIN]), "nobody waits for what does not become fit");
}
