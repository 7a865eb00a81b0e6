//! The bound against the truth: tiny worlds are solved by trying everything.
//!
//! Invariant: bound <= optimum <= price, for every world.

use std::fmt::Write;

use longshore_core::answer::{Plan, certain};
use longshore_core::bound::{BoundKind, LowerBound};
use longshore_core::certificate::{self, PricedRoom};
use longshore_core::check::{Rule, check};
use longshore_core::plan;
use longshore_core::resources::Resources;

use super::random::Random;
use super::scenario;

/// A tiny world: types as (cpu, memory GiB, price in cents), pods as (cpu, memory GiB), a fee for
/// each node in cents.
struct Tiny {
    types: Vec<(i64, i64, i64)>,
    pods: Vec<(i64, i64)>,
    fee: i64,
}

fn tiny(random: &mut Random) -> Tiny {
    let mut number =
        |least: u64, most: u64| i64::try_from(least + random.below(most - least + 1)).unwrap();
    let kinds = number(1, 5);
    let types = (0..kinds).map(|_| (number(2, 8), number(2, 16), number(3, 30)));
    let types: Vec<_> = types.collect();
    let count = number(1, 7);
    let pods = (0..count).map(|_| (number(1, 4), number(1, 6)));
    let pods = pods.collect();
    Tiny { types, pods, fee: 0 }
}

/// The least cost of nodes for all pods, by trying every partition; none when some pod never fits.
fn optimum(world: &Tiny, placed: &mut Vec<(i64, i64)>, next: usize) -> Option<i64> {
    let Some((cpu, memory)) = world.pods.get(next) else {
        let cheapest = |(cpu, memory): &(i64, i64)| {
            let fits = world.types.iter().filter(|t| *cpu <= t.0 && *memory <= t.1);
            fits.map(|t| t.2 + world.fee).min()
        };
        return placed.iter().map(cheapest).sum();
    };
    let mut best: Option<i64> = None;
    for node in 0..=placed.len() {
        if node == placed.len() {
            placed.push((0, 0));
        }
        placed[node] = (placed[node].0 + cpu, placed[node].1 + memory);
        let price = optimum(world, placed, next + 1);
        best = [best, price].into_iter().flatten().min();
        placed[node] = (placed[node].0 - cpu, placed[node].1 - memory);
        if placed[node] == (0, 0) {
            placed.pop();
        }
    }
    best
}

fn text(world: &Tiny) -> String {
    let mut text = format!("pool default\nobjective fee 0.{:02}\n", world.fee);
    for (index, (cpu, memory, cents)) in world.types.iter().enumerate() {
        text += &format!("type t{index}.x cpu {cpu} mem {memory}Gi pods 110 od 0.{cents:02}\n");
    }
    for (index, (cpu, memory)) in world.pods.iter().enumerate() {
        text += &format!("shape s{index} cpu {cpu} mem {memory}Gi\npods s{index} 1\n");
    }
    text
}

/// Shares in thousandths, counted by what they reach: 0, 10, 50, 100, 200 and more.
#[derive(Debug, Default)]
struct Spread([u32; 6]);

impl Spread {
    fn count(&mut self, thousandths: i64) {
        let at = [0, 10, 50, 100, 200].iter().position(|most| thousandths <= *most).unwrap_or(5);
        self.0[at] += 1;
    }

    #[expect(clippy::print_stdout, reason = "a distribution is for people to read")]
    fn show(&self, what: &str) {
        let [none, one, five, ten, twenty, more] = self.0;
        println!(
            "{what}: none {none}, to 1 % {one}, 5 % {five}, 10 % {ten}, 20 % {twenty}, more {more}"
        );
    }
}

/// How far plans lie above the optimum and bounds below it, in so many worlds with such a fee.
fn compare(count: usize, fee: i64) -> (Spread, Spread) {
    let mut random = Random::new(1);
    let (mut over, mut under, mut worlds) = (Spread::default(), Spread::default(), 0);
    while worlds < count {
        let world = Tiny { fee, ..tiny(&mut random) };
        let Some(least) = optimum(&world, &mut Vec::new(), 0) else { continue };
        let scenario = scenario::read(&text(&world));
        let input = scenario.input(0..scenario.changes.len());
        let answer = plan(&input);
        assert_eq!(check(&answer, &input), Vec::new(), "{}", text(&world));
        assert_eq!(answer.unplaced, Vec::new(), "{}", text(&world));
        let (cost, least) = (answer.launch_cost_micro_usd_per_hour, least * 10_000);
        let bound = answer.bound.cost_micro_usd_per_hour;
        assert!(answer.bound.checked, "{}", text(&world));
        assert!(bound <= least && least <= cost, "{bound} {least} {cost}\n{}", text(&world));
        over.count((cost - least) * 1_000 / least);
        under.count((least - bound) * 1_000 / least);
        worlds += 1;
    }
    over.show("plans above the optimum");
    under.show("bounds below the optimum");
    (over, under)
}

#[test]
fn no_bound_exceeds_the_optimum_and_small_plans_are_close_to_it() {
    let (over, _) = compare(10_000, 0);
    assert!(over.0[0] > 9_900 && over.0[5] == 0, "{over:?}");
}

#[test]
fn the_same_holds_of_costs_where_nodes_have_a_fee() {
    let (over, _) = compare(1_000, 15);
    assert!(over.0[0] > 990 && over.0[5] == 0, "{over:?}");
}

#[test]
fn a_forged_certificate_is_refused() {
    let scenario = scenario::read(
        "pool default\ntype m.x cpu 4 mem 16Gi pods 110 od 0.2\nshape a cpu 1 mem 2Gi\npods a 8\n",
    );
    let answer = plan(&scenario.input(0..scenario.changes.len()));
    let room = Resources { pods: 110, ..Resources::pod(4000, 16 << 30) };
    let offers = vec![PricedRoom { room, price_micro_usd_per_hour: 200_000 }];
    let demand = Resources { pods: 8, ..Resources::pod(8000, 16 << 30) };
    assert_eq!(certificate::verify(&answer.bound, &demand, offers.clone()), Ok(()));
    let mut larger = answer.bound.clone();
    larger.cost_micro_usd_per_hour += 2;
    assert!(certificate::verify(&larger, &demand, offers.clone()).is_err());
    let mut dearer = answer.bound.clone();
    dearer.prices_nano_usd_per_hour.values_mut().for_each(|price| *price = *price * 2 + 1);
    assert!(certificate::verify(&dearer, &demand, offers).is_err());
}

/// Nobody says how many volumes of a driver a node may have: no price of one is too low for it.
#[test]
fn a_price_of_what_has_no_limit_is_refused() {
    let scenario = scenario::read(
        "pool default\ntype m.x cpu 4 mem 16Gi pods 110 od 0.2\n\
         shape a cpu 1 mem 1Gi use attachable-volumes-efs.csi.aws.com=1\npods a 3\n",
    );
    let input = scenario.input(0..scenario.changes.len());
    let honest = plan(&input);
    let values = |kind, nano: i64| LowerBound {
        kind,
        cost_micro_usd_per_hour: 200_000,
        values_nano_usd_per_hour: honest.launches[0]
            .pods
            .iter()
            .map(|pod| (input.world.pods[pod].shape.clone(), nano))
            .collect(),
        prices_nano_usd_per_hour: [("attachable-volumes-efs.csi.aws.com".to_owned(), nano)].into(),
        checked: true,
        ..LowerBound::default()
    };
    assert_eq!(check(&honest, &input), Vec::new());
    for kind in [BoundKind::ResourcePrices, BoundKind::ClassValues] {
        let forged = Plan { bound: values(kind, 70_000_000), ..honest.clone() };
        let found = check(&forged, &input);
        assert!(found.iter().any(|violation| violation.rule == Rule::Bound), "{kind:?} {found:?}");
    }
}

#[test]
fn many_kinds_of_pods_that_may_not_use_what_is_cheap_are_worth_what_they_must_pay() {
    // Half of 400 kinds run on one architecture only, which costs a quarter more.
    let mut text = String::from(
        "type a.large cpu 16 mem 64Gi pods 100 od 0.64 arch arm64\n\
         type a.small cpu 4 mem 16Gi pods 30 od 0.16 arch arm64\n\
         type m.large cpu 16 mem 64Gi pods 100 od 0.80 arch amd64\n\
         type m.small cpu 4 mem 16Gi pods 30 od 0.20 arch amd64\n\
         pool default\n",
    );
    for shape in 0..400 {
        let picky = if shape % 2 == 0 { " select kubernetes.io/arch=amd64" } else { "" };
        let (cpu, memory) = (100 + shape % 97 * 10, 128 + shape % 89 * 40);
        writeln!(text, "shape s{shape} cpu {cpu}m mem {memory}Mi{picky}\npods s{shape} 3").unwrap();
    }
    let read = scenario::read(&text);
    let input = read.input(0..read.changes.len());
    let plan = plan(&input);
    assert_eq!(check(&plan, &input), Vec::new());
    assert_eq!((plan.bound.kind, plan.unplaced.len()), (BoundKind::PriceSets, 0));
    assert!(plan.gap_ppm < 20_000, "{} above the bound", plan.gap_ppm);
    let mut dearer = plan.clone();
    let set = dearer.bound.price_sets.first_mut().unwrap();
    set.values_mut().for_each(|price| *price = *price * 2 + 1);
    let found = check(&dearer, &input);
    assert!(found.iter().any(|violation| violation.rule == Rule::Bound), "{found:?}");
}

/// On large nodes memory runs out before processors do, unless pods that want little of it share
/// them: there are none. What a node has to spare of one resource must not count against what it
/// lacks of the other.
#[test]
fn a_bound_is_close_where_large_nodes_hold_pods_of_few_kinds() {
    let mut text = String::from("pool default\n");
    for (family, gib_each, price_each) in
        [("c6a", 2, 0.03825), ("m5a", 4, 0.043), ("r5a", 8, 0.0565)]
    {
        for (cpus, pods) in [(2, 29), (8, 58), (16, 234), (48, 234), (96, 737), (192, 737)] {
            let memory = cpus * gib_each * 947 - 355 - 11 * pods;
            let price = f64::from(cpus) * price_each;
            let milli = cpus * 1_000 - 90;
            text += &format!(
                "type {family}.x{cpus} cpu {milli}m mem {memory}Mi pods {pods} od {price:.4}\n"
            );
        }
    }
    let shapes = [
        (143, 100, 256),
        (123, 250, 512),
        (111, 500, 1_024),
        (113, 1_000, 4_096),
        (125, 2_000, 4_096),
    ];
    for (index, (pods, cpu, memory)) in shapes.iter().enumerate() {
        text += &format!("shape s{index} cpu {cpu}m mem {memory}Mi\npods s{index} {pods}\n");
    }
    let scenario = scenario::read(&text);
    let answer = plan(&scenario.input(0..scenario.changes.len()));
    let (cost, bound) = (answer.launch_cost_micro_usd_per_hour, &answer.bound);
    assert_eq!((bound.kind, bound.checked), (BoundKind::ClassValues, true));
    let gap = (cost - bound.cost_micro_usd_per_hour) * 1_000 / bound.cost_micro_usd_per_hour;
    assert!(gap <= 15, "{gap} thousandths of {cost}");
}

/// Whether each node is certain that is bought for so many pods of one core, where a core costs the
/// same on large nodes and small ones, but large ones lose less to the system.
fn certain_for(pods: usize) -> Vec<bool> {
    let scenario = scenario::read(&format!(
        "pool default\n\
         type s.x4 cpu 3500m mem 16Gi pods 58 od 0.20\n\
         type s.x32 cpu 31500m mem 128Gi pods 234 od 1.60\n\
         shape a cpu 1 mem 1Gi\npods a {pods}\n"
    ));
    let input = scenario.input(0..scenario.changes.len());
    certain(&plan(&input), &input)
}

#[test]
fn a_node_is_certain_when_more_pods_like_its_own_would_not_be_cheaper() {
    assert_eq!(certain_for(3), [false], "ten times as many cost a fifth less each");
    assert_eq!(certain_for(62), [true, true]);
}

#[test]
fn few_pods_cost_what_whole_nodes_cost() {
    // Two types for pods that leave much of either, and as many pods as fill neither.
    let mut text = String::from("pool default\n");
    text += "type s.x4 cpu 3500m mem 16Gi pods 58 od 0.20\n";
    text += "type s.x8 cpu 7500m mem 32Gi pods 58 od 0.38\n";
    text += "shape a cpu 1 mem 1Gi\npods a 11\n";
    let scenario = scenario::read(&text);
    let input = scenario.input(0..scenario.changes.len());
    let answer = plan(&input);
    assert_eq!(check(&answer, &input), Vec::new());
    // 7 and 4 pods.
    assert_eq!((answer.launch_cost_micro_usd_per_hour, answer.gap_ppm), (760_000, 0));
    assert_eq!((answer.bound.kind, answer.bound.checked), (BoundKind::WholeNodes, true));
    let mut larger = answer;
    larger.bound.cost_micro_usd_per_hour += 1;
    larger.launch_cost_micro_usd_per_hour += 1;
    let found = check(&larger, &input);
    assert!(found.iter().any(|violation| violation.rule == Rule::Bound), "{found:?}");
}
