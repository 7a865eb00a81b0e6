//! The second opinion on what a plan takes away.
//!
//! Invariant: each planted mistake is the only one of its plan.

use longshore_core::answer::Plan;
use longshore_core::check::{Rule, check};
use longshore_core::explain::{HoldRule, explain_nodes};
use longshore_core::ids::ClaimName;
use longshore_core::plan;
use longshore_core::question::{PlanInput, Spared};

use super::scenario;

#[test]
fn a_disruption_is_checked_against_budgets_and_promises() {
    let text = "
        now 2h
        type m.small cpu 4 mem 16Gi pods 20 od 0.10
        pool default after 0s budget 1
        shape job cpu 1 mem 1Gi
        pods job 1 on n1
        pods job 1 on n2
        pods job 1 on n3 hold ever
        pdb job app job allowed 1
        node n1 type m.small pool default
        node n2 type m.small pool default
        node n3 type m.small pool default
    ";
    let scenario = scenario::read(text);
    let input = scenario.input(0..scenario.changes.len());
    let answer = plan(&input);
    assert_eq!(check(&answer, &input), Vec::new());
    assert_eq!(answer.disruptions.len(), 1, "one within the budget");
    let rules = |answer: &Plan| -> Vec<Rule> {
        check(answer, &input).into_iter().map(|violation| violation.rule).collect()
    };
    let mut two = answer.clone();
    let mut again = two.disruptions[0].clone();
    let other = if again.nodes[0].as_str() == "n1" { "n2" } else { "n1" };
    again.nodes[0] = other.into();
    two.disruptions.push(again);
    assert!(rules(&two).contains(&Rule::NodeBudget));
    assert!(rules(&two).contains(&Rule::DisruptionBudget));
    let mut held = answer.clone();
    held.disruptions[0].nodes[0] = "n3".into();
    assert!(rules(&held).contains(&Rule::Disruptable));
    let mut lost = answer;
    lost.disruptions[0].moves.clear();
    assert!(rules(&lost).contains(&Rule::Complete));
}

#[test]
fn what_moves_to_save_money_is_checked_against_what_may_within_the_hour() {
    let input = |evictions: i64| {
        let text = "
            now 2h
            type m.small cpu 4 mem 16Gi pods 20 od 0.10
            pool default after 0s evictions LEFT
            shape job cpu 500m mem 1Gi
            pods job 2 on n1
            pods job 3 on n2
            node n1 type m.small pool default
            node n2 type m.small pool default
        ";
        let scenario = scenario::read(&text.replace("LEFT", &evictions.to_string()));
        scenario.input(0..scenario.changes.len())
    };
    let answer = plan(&input(2));
    assert_eq!(answer.disruptions.len(), 1, "two pods move");
    assert_eq!(check(&answer, &input(2)), Vec::new());
    let found = check(&answer, &input(1));
    assert_eq!(found.iter().map(|it| it.rule).collect::<Vec<_>>(), [Rule::NodeBudget]);
    assert!(plan(&input(1)).disruptions.is_empty());
}

#[test]
fn of_more_nodes_than_one_plan_tries_each_has_its_turn() {
    let input = |now: &str| {
        let mut text = format!(
            "
            now {now}
            type m.large cpu 4 mem 16Gi pods 20 od 0.40
            type m.small cpu 2 mem 8Gi pods 20 od 0.10
            type m.tiny cpu 1 mem 4Gi pods 20 od 0.02
            pool default after 0s budget 1
            shape large cpu 3800m mem 12Gi
            shape tiny cpu 500m mem 1Gi
            "
        );
        let mut node = |name: &str, kind: &str, pod: &str| {
            text += &format!("pods {pod} 1 on {name}\nnode {name} type {kind} pool default\n");
        };
        (10..70).for_each(|number| node(&format!("n{number}"), "m.large", "large"));
        node("small", "m.small", "tiny");
        let scenario = scenario::read(&text);
        scenario.input(0..scenario.changes.len())
    };
    let before = plan(&input("7260s"));
    assert!(before.disruptions.is_empty(), "it saves less than any other");
    assert_eq!(before.wake_ms, Some(7_290_000), "others are tried then");
    let after = plan(&input("7290s"));
    let gone = after.disruptions.iter().flat_map(|it| &it.nodes);
    let gone: Vec<&str> = gone.map(|node| node.as_str()).collect();
    assert_eq!(gone, ["small"]);
}

/// What keeps the node of a claim.
fn kept(input: &PlanInput, plan: &Plan, claim: &ClaimName) -> Vec<HoldRule> {
    let mut answers = explain_nodes(input, plan).into_iter();
    let answer = answers.find(|answer| answer.claim == *claim).unwrap();
    answer.holds.into_iter().map(|hold| hold.rule).collect()
}

#[test]
fn the_turn_of_a_node_that_is_left_alone_is_anothers() {
    let text = "
        now 2h
        type m.small cpu 4 mem 16Gi pods 20 od 0.10
        pool default budget 1
        shape job cpu 3 mem 1Gi
        pods job 1 on n1
        pods job 1 on n2
        node n1 type m.small pool default state drifted
        node n2 type m.small pool default state drifted
    ";
    let scenario = scenario::read(text);
    let mut input = scenario.input(0..scenario.changes.len());
    let going = |answer: &Plan| -> Vec<String> {
        let nodes = answer.disruptions.iter().flat_map(|it| &it.nodes);
        nodes.map(ToString::to_string).collect()
    };
    let first = plan(&input);
    assert_eq!(going(&first).len(), 1, "one within the budget");
    let until_ms = input.now_ms + 60_000;
    let claim = |node: &str| {
        let mut claims = input.world.claims.values();
        let own = claims.find(|claim| claim.name.as_str().contains(node));
        own.map(|claim| claim.name.clone()).unwrap()
    };
    let spared = claim(&going(&first)[0]);
    input.spared.insert(spared.clone(), Spared::UntilMs(until_ms));
    let second = plan(&input);
    assert_eq!(going(&second).len(), 1);
    assert_ne!(going(&second), going(&first));
    assert!(second.wake_ms.is_some_and(|at_ms| at_ms <= until_ms), "{:?}", second.wake_ms);
    assert_eq!(kept(&input, &second, &spared), [HoldRule::CalledOff { for_ms: 60_000 }]);
    input.spared.insert(spared.clone(), Spared::Unreadable);
    let third = plan(&input);
    assert_eq!((going(&third), third.wake_ms), (going(&second), first.wake_ms));
    assert_eq!(kept(&input, &third, &spared), [HoldRule::Unreadable]);
}
