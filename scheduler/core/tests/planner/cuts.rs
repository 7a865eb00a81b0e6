//! A refused plan is cut down to what stands.
//!
//! Invariant: what comes out passes the check, and nothing is in it that was not in the plan.

use std::collections::BTreeSet;

use longshore_core::answer::{Placement, Plan, Target};
use longshore_core::bound::LowerBound;
use longshore_core::check::{Rule, check, cut};
use longshore_core::ids::PodUid;
use longshore_core::plan;
use longshore_core::question::PlanInput;

use super::checks::anything;
use super::random::Random;
use super::scenario;

fn planned(text: &str) -> (PlanInput, Plan) {
    let read = scenario::read(text);
    let input = read.input(0..read.changes.len());
    let answer = plan(&input);
    assert_eq!(check(&answer, &input), Vec::new(), "{text}");
    (input, answer)
}

/// Workloads without rules about each other on nodes that are launched, that are there, and that
/// go.
const PLAIN: &str = "
    now 2h
    type m.large cpu 2 mem 8Gi pods 20 od 0.10 zones a,b
    type m.xlarge cpu 4 mem 16Gi pods 40 od 0.20 zones a,b
    pool default after 0s
    pool keep taint keep
    shape web cpu 1900m mem 1Gi
    pods web 5
    shape job cpu 500m mem 1Gi tolerate keep
    pods job 1 on n1
    pods job 1 on n2
    node n1 type m.large pool default
    node n2 type m.large pool default
    node n3 type m.xlarge pool keep taint keep
";

fn at(count: usize, random: &mut Random) -> usize {
    usize::try_from(random.below(count.max(1) as u64)).unwrap()
}

#[test]
fn a_sound_plan_is_left_as_it_is() {
    let (input, answer) = planned(PLAIN);
    assert!(answer.launches.len() > 2 && !answer.disruptions.is_empty(), "{answer:?}");
    assert_eq!(cut(answer.clone(), &input), (answer, Vec::new()));
}

#[test]
fn a_launch_that_is_not_on_offer_goes_and_the_others_stay() {
    let (input, answer) = planned(PLAIN);
    for index in 0..answer.launches.len() {
        let mut wrong = answer.clone();
        wrong.launches[index].candidates[0].price_micro_usd_per_hour -= 1;
        let (left, found) = cut(wrong, &input);
        assert_eq!(check(&left, &input), Vec::new());
        assert!(found.iter().any(|violation| violation.rule == Rule::Target));
        let mut launches = answer.launches.clone();
        let lost = launches.remove(index);
        assert_eq!(left.launches, launches);
        assert_eq!(left.disruptions, answer.disruptions);
        assert_eq!(left.unplaced.len(), 1);
        assert_eq!(left.unplaced[0].pods, lost.pods);
        assert_eq!(left.unplaced[0].reason.code(), "PLACE_REFUSED");
        let places = |plan: &Plan| plan.placements.len();
        assert_eq!(places(&left), places(&answer) - lost.pods.len());
        let price = answer.launch_price_micro_usd_per_hour - lost.price();
        assert_eq!(left.launch_price_micro_usd_per_hour, price);
        // The fleet was told with the right price, the launch had another.
        let fleet = answer.fleet_price_micro_usd_per_hour - (lost.price() - 1);
        assert_eq!(left.fleet_price_micro_usd_per_hour, fleet);
    }
}

#[test]
fn a_bound_without_proof_is_left_out_and_nothing_else() {
    let (input, answer) = planned(PLAIN);
    let mut wrong = answer.clone();
    wrong.bound.cost_micro_usd_per_hour += 1_000_000;
    let (left, found) = cut(wrong, &input);
    assert!(!found.is_empty() && found.iter().all(|violation| violation.rule == Rule::Bound));
    assert_eq!(left, Plan { bound: LowerBound::default(), gap_ppm: 0, ..answer });
}

#[test]
fn a_disruption_without_a_place_for_its_pods_goes_and_its_node_stays() {
    let (input, answer) = planned(PLAIN);
    let moving = answer.disruptions.iter().position(|d| !d.moves.is_empty()).unwrap();
    let mut wrong = answer.clone();
    wrong.disruptions[moving].moves.clear();
    let (left, found) = cut(wrong, &input);
    assert!(found.iter().any(|violation| violation.rule == Rule::Complete));
    let mut disruptions = answer.disruptions.clone();
    let kept = disruptions.remove(moving);
    assert!(kept.replacements.is_empty(), "{kept:?}");
    assert_eq!((&left.disruptions, &left.placements), (&disruptions, &answer.placements));
    assert_eq!((&left.launches, &left.unplaced), (&answer.launches, &answer.unplaced));
    let fleet = answer.fleet_price_micro_usd_per_hour + kept.saving_micro_usd_per_hour;
    assert_eq!(left.fleet_price_micro_usd_per_hour, fleet);
}

#[test]
fn what_was_to_replace_a_node_that_stays_is_not_launched() {
    let text = "
        now 3h
        type c.large cpu 2 mem 4Gi pods 29 od 0.085 zones b
        pool default
        node n0 type c.large zone b pool default expire 2h
        shape spare cpu 900m mem 700Mi
        buffer b shape spare replicas 1
    ";
    let (input, answer) = planned(text);
    assert_eq!(answer.disruptions[0].replacements, [0]);
    assert_eq!(answer.standing(|_| true), [true]);
    let mut wrong = answer;
    wrong.disruptions[0].moves.push(Placement { pod: "gone".into(), target: Target::New(0) });
    let (left, found) = cut(wrong, &input);
    assert!(!found.is_empty());
    assert_eq!((left.disruptions, left.launches), (Vec::new(), Vec::new()));
}

#[test]
fn launches_over_a_limit_go_from_the_last() {
    let text = format!(
        "{PLAIN}\npool small weight 5 limit nodes=1 taint s\nshape s cpu 1900m tolerate s select karpenter.sh/nodepool=small\npods s 2"
    );
    let (input, answer) = planned(&text);
    let mut wrong = answer.clone();
    let own = wrong.launches.iter().position(|launch| launch.pool.as_str() == "small").unwrap();
    let more = wrong.launches[own].clone();
    let standing = longshore_core::answer::NewNode { pods: Vec::new(), standing: true, ..more };
    wrong.launches.push(standing);
    let (left, found) = cut(wrong, &input);
    assert!(found.iter().any(|violation| violation.rule == Rule::Limits), "{found:?}");
    assert_eq!((left.launches, left.placements), (answer.launches, answer.placements));
}

/// Spoils a plan somewhere.
fn spoil(plan: &mut Plan, input: &PlanInput, random: &mut Random) {
    let launch = at(plan.launches.len(), random);
    let placement = at(plan.placements.len(), random);
    let disruption = at(plan.disruptions.len(), random);
    let names: Vec<_> = input.world.nodes.keys().collect();
    match random.below(9) {
        0 if !plan.placements.is_empty() => drop(plan.placements.remove(placement)),
        1 if !plan.placements.is_empty() && !names.is_empty() => {
            let node = names[at(names.len(), random)].clone();
            plan.placements[placement].target = Target::Node(node);
        }
        2 if !plan.placements.is_empty() => {
            plan.placements[placement].target = Target::New(launch);
        }
        3 if !plan.launches.is_empty() => plan.launches[launch].candidates.clear(),
        4 if !plan.launches.is_empty() => plan.launches.push(plan.launches[launch].clone()),
        5 if !plan.disruptions.is_empty() => plan.disruptions[disruption].moves.clear(),
        6 if !plan.disruptions.is_empty() => {
            plan.disruptions.push(plan.disruptions[disruption].clone());
        }
        7 => {
            let (pod, target) = (PodUid::from("nobody"), Target::New(launch + 1));
            plan.placements.push(Placement { pod, target });
        }
        _ => plan.bound.cost_micro_usd_per_hour = i64::MAX,
    }
}

#[test]
fn whatever_is_spoilt_what_is_left_passes_and_was_in_the_plan() {
    let mut random = Random::new(11);
    for round in 0..600 {
        let text = anything(&mut random);
        let (input, answer) = planned(&text);
        let mut wrong = answer.clone();
        for _ in 0..=random.below(3) {
            spoil(&mut wrong, &input, &mut random);
        }
        let refused = !check(&wrong, &input).is_empty();
        let (left, found) = cut(wrong.clone(), &input);
        assert_eq!(check(&left, &input), Vec::new(), "round {round}\n{text}");
        assert_eq!(!found.is_empty(), refused, "round {round}\n{text}");
        assert!(left.launches.len() <= wrong.launches.len());
        let had: BTreeSet<&PodUid> = wrong.places().map(|step| &step.pod).collect();
        assert!(left.places().all(|step| had.contains(&step.pod)), "round {round}\n{text}");
        for placement in left.placements.iter().filter(|p| p.target.name().is_some()) {
            assert!(wrong.placements.contains(placement), "round {round}\n{text}");
        }
        for launch in &left.launches {
            let known = |other: &longshore_core::answer::NewNode| {
                other.candidates == launch.candidates && other.requests == launch.requests
            };
            assert!(wrong.launches.iter().any(known), "round {round}\n{text}");
        }
    }
}
