//! What plans minimise: the formula by hand, and random weights on random worlds.
//!
//! Invariant: weights decide, prices are told; what weighs nothing changes nothing.

use longshore_core::answer::{NewNode, Plan};
use longshore_core::capacity_group::CapacityGroup;
use longshore_core::catalogue::{CapacityType, InstanceType, Offering};
use longshore_core::check::{Rule, check};
use longshore_core::labels;
use longshore_core::offers::{LaunchQuery, Objective, launch_candidates};
use longshore_core::plan;
use longshore_core::question::PlanInput;
use longshore_core::requirements::Requirements;
use longshore_core::resources::Resources;

use super::mixtures;
use super::random::Random;
use super::scenario;

/// Worlds that are tried.
const WORLDS: u64 = 200;

fn kind(name: &str) -> InstanceType {
    InstanceType { name: name.into(), ..InstanceType::default() }
}

fn offering(capacity_type: CapacityType, price_micro_usd_per_hour: i64) -> Offering {
    Offering {
        zone: "a".into(),
        zone_id: "id-a".into(),
        capacity_type,
        price_micro_usd_per_hour,
        available: true,
        reservation: None,
        group: CapacityGroup::default(),
        interruptions_per_million_hours: None,
    }
}

fn weights() -> Objective {
    Objective {
        node_fee_micro_usd_per_hour: 1_000,
        interruption_cost_micro_usd: 3_000_000,
        spot_interruptions_per_million_hours: 70,
        family_performance_percent: [("m7i".to_owned(), 110), ("slow".to_owned(), 50)].into(),
    }
}

#[test]
fn a_cost_is_price_fee_and_interruptions_by_performance_rounded_up() {
    let spot = offering(CapacityType::Spot, 30_000);
    // $3 times 70 in a million hours are 210 micro-dollars an hour.
    assert_eq!(weights().cost(&kind("m5.large"), &spot), 30_000 + 1_000 + 210);
    // 31 210 / 1.10 = 28 372.72…
    assert_eq!(weights().cost(&kind("m7i.large"), &spot), 28_373);
    let own = Offering { interruptions_per_million_hours: Some(7), ..spot.clone() };
    assert_eq!(weights().cost(&kind("m5.large"), &own), 30_000 + 1_000 + 21);
    let on_demand = offering(CapacityType::OnDemand, 30_000);
    assert_eq!(weights().cost(&kind("m5.large"), &on_demand), 31_000, "it is not interrupted");
    let mut labelled = kind("m5.large");
    labelled.labels.insert(labels::INSTANCE_FAMILY.to_owned(), "slow".to_owned());
    assert_eq!(weights().cost(&labelled, &on_demand), 62_000, "a label says more than a name");
    assert_eq!(Objective::default().cost(&labelled, &own), 30_000);
}

#[test]
fn candidates_of_a_claim_are_ordered_by_cost_and_cut_by_price() {
    let mut catalogue = longshore_core::catalogue::Catalogue::default();
    for (name, price) in [("m5.large", 100), ("m7i.large", 105), ("slow.large", 90), ("x.x", 200)] {
        let offerings = vec![offering(CapacityType::OnDemand, price)];
        catalogue.put(InstanceType { offerings, ..kind(name) });
    }
    let objective = Objective { node_fee_micro_usd_per_hour: 0, ..weights() };
    let query = LaunchQuery {
        requirements: &Requirements::new(),
        requests: &Resources::default(),
        zones: None,
        max_price_micro_usd_per_hour: Some(105),
        objective: &objective,
    };
    let found = launch_candidates(query, &catalogue);
    let names: Vec<&str> = found.iter().map(|found| found.instance_type.as_str()).collect();
    assert_eq!(names, ["m7i.large", "m5.large", "slow.large"]);
    let costs: Vec<i64> = found.iter().map(|found| found.cost_micro_usd_per_hour).collect();
    assert_eq!(costs, [96, 100, 180]);
}

fn random_weights(random: &mut Random) -> Objective {
    let mut number = |below: u64| i64::try_from(random.below(below)).unwrap();
    Objective {
        node_fee_micro_usd_per_hour: number(3) * number(100_000),
        interruption_cost_micro_usd: number(2) * number(500_000_000),
        spot_interruptions_per_million_hours: number(2_000),
        family_performance_percent: [
            ("m".to_owned(), 70 + number(60)),
            ("c".to_owned(), 70 + number(60)),
        ]
        .into(),
    }
}

fn input(seed: u64) -> PlanInput {
    let read = scenario::read(&mixtures::world(&mut Random::new(seed)));
    read.input(0..read.changes.len())
}

fn total(plan: &Plan, each: fn(&NewNode) -> i64) -> i64 {
    plan.launches.iter().map(each).sum()
}

#[test]
fn plans_by_random_weights_pass_the_check_and_lie_above_their_bound() {
    let (mut random, mut differ) = (Random::new(3), 0);
    for seed in 0..WORLDS {
        let plain = input(seed);
        let weighed = PlanInput { objective: random_weights(&mut random), ..plain.clone() };
        let answer = plan(&weighed);
        let weights = &weighed.objective;
        assert_eq!(check(&answer, &weighed), Vec::new(), "seed {seed}: {weights:?}");
        assert!(answer.gap_ppm >= 0, "seed {seed}: {weights:?}");
        assert_eq!(total(&answer, NewNode::cost), answer.launch_cost_micro_usd_per_hour);
        assert_eq!(total(&answer, NewNode::price), answer.launch_price_micro_usd_per_hour);
        let ceiling = |node: &NewNode| {
            let prices = node.candidates.iter().map(|c| c.price_micro_usd_per_hour);
            prices.max() == Some(node.max_price_micro_usd_per_hour)
        };
        assert!(answer.launches.iter().all(ceiling), "seed {seed}: a candidate above its ceiling");
        differ += u32::from(plan(&plain).launches.len() != answer.launches.len());
    }
    assert!(differ > 10, "weights decide something: {differ}");
}

#[test]
fn weights_that_weigh_nothing_change_nothing() {
    let idle = Objective {
        interruption_cost_micro_usd: 100_000_000,
        family_performance_percent: [("m".to_owned(), 100), ("c".to_owned(), 100)].into(),
        ..Objective::default()
    };
    for seed in 0..WORLDS {
        let plain = input(seed);
        let answer = plan(&plain);
        assert_eq!(answer.launch_cost_micro_usd_per_hour, answer.launch_price_micro_usd_per_hour);
        let weighed = PlanInput { objective: idle.clone(), ..plain };
        assert_eq!(plan(&weighed), answer, "seed {seed}");
    }
}

#[test]
fn a_plan_by_other_weights_is_found() {
    let text = "type m.large cpu 2 mem 8Gi pods 29 od 0.10\npool default\n\
        shape web cpu 2 mem 1Gi\npods web 2\n";
    let read = scenario::read(text);
    let plain = read.input(0..read.changes.len());
    let answer = plan(&plain);
    let found = |answer: &Plan, objective: Objective| {
        let input = PlanInput { objective, ..plain.clone() };
        check(answer, &input).iter().map(|violation| violation.rule).collect::<Vec<_>>()
    };
    assert_eq!(found(&answer, Objective::default()), []);
    let fee = Objective { node_fee_micro_usd_per_hour: 1, ..Objective::default() };
    assert_eq!(found(&answer, fee), [Rule::Target, Rule::Target], "no candidate costs that");
    let mut wrong = answer;
    wrong.launch_cost_micro_usd_per_hour -= 1;
    assert_eq!(found(&wrong, Objective::default()), [Rule::Bound]);
}
