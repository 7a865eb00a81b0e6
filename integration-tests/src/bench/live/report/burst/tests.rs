//! The burst of a small recorded sample: what is drawn of it, and the drawing to the letter.

use super::super::super::cases::Goal;
use super::super::super::contender::Usage;
use super::super::super::figures::{Played, figures};
use super::super::super::recorder::seen::{ClaimState, Mark, NodeState, PodState, What};
use super::super::super::results::Origin;
use super::super::super::script::Span;
use super::super::super::world::HOST;
use super::timeline::{Event, Pods};
use super::*;

fn mark(at_ms: u64, what: What) -> Mark {
    Mark { at_ms, what }
}

fn pod(at_ms: u64, name: &str, is: PodState) -> Mark {
    mark(at_ms, What::Pod { name: name.to_owned(), is })
}

fn claim(at_ms: u64, name: &str) -> Mark {
    mark(at_ms, What::Claim { name: name.to_owned(), is: ClaimState::Made })
}

fn call(at_ms: u64, failed: bool) -> Mark {
    mark(at_ms, What::Cloud { api: "ec2:CreateFleet".to_owned(), failed })
}

fn node(at_ms: u64, name: &str, is: NodeState) -> Mark {
    mark(at_ms, What::Node { name: name.to_owned(), is })
}

fn evict(at_ms: u64, failed: bool) -> Mark {
    let (verb, resource) = ("create".to_owned(), "pods/eviction".to_owned());
    mark(at_ms, What::Api { verb, resource, failed })
}

/// Three pods from 2 s on. Everything is `slower` times as late as it could be; a call is refused,
/// a claim is made anew for it, and a pod moves once more when all run.
fn marks(slower: u64) -> Vec<Mark> {
    let at = |ms: u64| 2_000 + ms * slower;
    vec![
        node(500, "fargate", NodeState::Open),
        call(900, false),
        pod(at(0), "a", PodState::Waiting),
        pod(at(0), "b", PodState::Waiting),
        node(at(5), HOST.0, NodeState::Open),
        pod(at(100), "c", PodState::Waiting),
        claim(at(400), "x"),
        claim(at(400), "y"),
        call(at(450), true),
        call(at(900), false),
        claim(at(2_000), "z"),
        call(at(2_100), false),
        node(at(10_000), "x", NodeState::Joined),
        node(at(10_100), "x", NodeState::Ready),
        node(at(10_300), "x", NodeState::Open),
        pod(at(10_400), "a", PodState::Bound),
        pod(at(10_400), "b", PodState::Bound),
        pod(at(10_900), "a", PodState::Running),
        pod(at(11_000), "b", PodState::Running),
        node(at(12_000), "z", NodeState::Open),
        pod(at(12_100), "c", PodState::Bound),
        pod(at(12_900), "c", PodState::Running),
        evict(at(14_000), true),
        evict(at(14_500), false),
        pod(at(14_500), "c", PodState::Ending),
        pod(at(14_600), "d", PodState::Bound),
        pod(at(15_000), "d", PodState::Running),
    ]
}

fn run(contender: Contender, slower: u64, has_goal: bool) -> Run {
    let (marks, usage) = (marks(slower), Usage::default());
    let span = Span {
        name: "out".to_owned(),
        goal: Goal::Run(3),
        limit_s: 240,
        began_ms: 1_900,
        goal_ms: has_goal.then_some(2_000 + 12_900 * slower),
        end_ms: 2_000 + 45_000 * slower,
        is_settled: has_goal,
        running: 3,
        usage: [usage; 3],
        away: None,
    };
    let phases = vec![Played { contender, figures: figures(&marks, &span), span }];
    Run { phases, marks, ..Run::begun((CaseName::Hundred, 1, contender), &Origin::default()) }
}

#[test]
fn times_begin_with_the_first_pod_and_end_after_the_last_change() {
    let drawn = Timeline::of(&run(Contender::Longshore, 1, true)).unwrap();
    assert_eq!((drawn.goal_ms, drawn.length_ms), (Some(12_900), 17_000));
    let pods = |at_ms, pending, bound| Pods { at_ms, pending, bound };
    let expected = [
        pods(0, 2, 0),
        pods(100, 3, 0),
        pods(10_400, 1, 2),
        pods(10_900, 1, 2),
        pods(11_000, 1, 2),
        pods(12_100, 0, 3),
        pods(12_900, 0, 3),
        pods(14_500, 0, 2),
        pods(14_600, 0, 3),
        pods(15_000, 0, 3),
    ];
    assert_eq!(drawn.pods, expected);
    let events = |name: &str| {
        let lane = drawn.lanes.iter().find(|lane| lane.name == name).unwrap();
        lane.events.iter().map(|Event { at_ms, failed }| (*at_ms, *failed)).collect::<Vec<_>>()
    };
    assert_eq!(events("NodeClaims made"), [(400, false), (400, false), (2_000, false)]);
    let calls = [(450, true), (900, false), (2_100, false)];
    assert_eq!(events("CreateFleet calls"), calls, "one was before the first pod");
    assert_eq!(events("nodes Ready"), [(10_100, false), (12_000, false)], "each once");
    assert_eq!(events("evictions"), [(14_500, false)], "those that were granted");
}

#[test]
fn what_does_not_settle_is_drawn_to_its_end() {
    let drawn = Timeline::of(&run(Contender::Karpenter, 1, false)).unwrap();
    assert_eq!((drawn.goal_ms, drawn.length_ms), (None, 45_000));
}

#[test]
fn the_middle_run_is_drawn_and_other_cases_are_not() {
    let all = [4, 1, 2].map(|slower| run(Contender::Karpenter, slower, true));
    let all = all.each_ref();
    let drawn = middle(&all, Contender::Karpenter).unwrap();
    assert_eq!(drawn.phases[0].figures.goal_ms, Some(100 + 12_900 * 2));
    assert!(middle(&all, Contender::Longshore).is_none());
    let other = Run { case: CaseName::Drip, ..run(Contender::Karpenter, 1, true) };
    assert_eq!(svg(&[&other]), None);
    let begun = Run { phases: Vec::new(), ..run(Contender::Karpenter, 1, true) };
    assert_eq!(svg(&[&begun]), None, "it came nowhere");
}

#[test]
fn both_are_drawn_on_one_axis() {
    let both = [run(Contender::Karpenter, 2, true), run(Contender::Longshore, 1, true)];
    let drawn = svg(&both.each_ref()).unwrap();
    let place = |text: &str| drawn.find(text).unwrap_or_else(|| panic!("no {text}"));
    assert!(place("<g id=\"longshore\">") < place("<g id=\"karpenter\">"), "ours is above");
    assert!(drawn.contains("all run after 12.9 s") && drawn.contains("all run after 25.8 s"));
    for lane in ["NodeClaims made", "CreateFleet calls", "nodes Ready", "evictions"] {
        assert_eq!(drawn.matches(lane).count(), 2, "{lane}");
    }
    // The golden file is looked at when it changes: the new one lies where this says.
    if drawn != include_str!("sample.svg") {
        let new = std::env::temp_dir().join("longshore-burst-sample.svg");
        std::fs::write(&new, &drawn).unwrap();
        panic!("the drawing has changed: look at {}, and put it over sample.svg", new.display());
    }
}
