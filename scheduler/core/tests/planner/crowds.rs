//! Input that is much, hopeless or absurd.
//!
//! Invariant: every plan is whole and passes the check, and the good get what they would have got
//! without the bad.

use std::fmt::Write;

use longshore_core::answer::Plan;
use longshore_core::check::check;
use longshore_core::plan;
use longshore_core::question::PlanInput;

use super::scenario;

const TYPES: &str = "type m.large cpu 4 mem 16Gi pods 20 od 0.20 zones a,b,c\n\
    type m.2xlarge cpu 16 mem 64Gi pods 60 od 0.78 zones a,b,c\n\
    pool default\n";

fn planned(text: &str) -> (PlanInput, Plan) {
    let read = scenario::read(text);
    let input = read.input(0..read.changes.len());
    let plan = plan(&input);
    (input, plan)
}

/// Plans a world, and counts the pods with and without a place.
fn sound(text: &str) -> (usize, usize, i64) {
    let (input, plan) = planned(text);
    assert_eq!(check(&plan, &input), Vec::new());
    let left = plan.unplaced.iter().map(|unplaced| unplaced.pods.len()).sum();
    (plan.placements.len(), left, plan.launch_price_micro_usd_per_hour)
}

#[test]
fn five_thousand_shapes() {
    let mut text = TYPES.to_owned();
    for shape in 0..5_000 {
        let rule = match shape % 10 {
            0 => format!(" spread zone:1 label app=s{shape}"),
            1 => " select topology.kubernetes.io/zone=b".to_owned(),
            _ => String::new(),
        };
        let (cpu, memory) = (50 + shape % 997, 64 + shape % 1013);
        writeln!(text, "shape s{shape} cpu {cpu}m mem {memory}Mi{rule}").unwrap();
        writeln!(text, "pods s{shape} 2").unwrap();
    }
    assert_eq!(sound(&text).0, 10_000);
}

#[test]
fn selectors_that_match_everything() {
    // Each spread counts all pods, so all have to be even over zones; each wish is about all of
    // them, too.
    let mut text = TYPES.to_owned();
    for shape in 0..200 {
        let rule =
            ["spread zone:1:app=*", "apart-wish 7*host:*", "spread-wish zone:1:app=*"][shape % 3];
        writeln!(text, "shape s{shape} cpu {}m mem 256Mi {rule}", 100 + shape).unwrap();
        writeln!(text, "pods s{shape} 3").unwrap();
    }
    assert_eq!(sound(&text).0, 600);
}

#[test]
fn a_pod_for_every_node_alone() {
    // Nobody may share a node or a zone with anybody.
    let mut text = TYPES.to_owned();
    for shape in 0..20 {
        writeln!(text, "shape s{shape} cpu 1 mem 1Gi apart zone:*").unwrap();
        writeln!(text, "pods s{shape} 2").unwrap();
    }
    let (placed, left, _) = sound(&text);
    assert_eq!((placed, left), (3, 37));
}

#[test]
fn the_hopeless_take_nothing_from_the_good() {
    let mut good = TYPES.to_owned();
    for shape in 0..30 {
        writeln!(good, "shape s{shape} cpu {}m mem {}Mi", 200 + 37 * shape, 300 + 91 * shape)
            .unwrap();
        writeln!(good, "pods s{shape} 40").unwrap();
    }
    let mut mixed = good.clone();
    for shape in 0..300 {
        let why = [
            "cpu 500 mem 1Gi",
            "cpu 1 mem 9000Gi",
            "cpu 1 mem 1Gi select topology.kubernetes.io/zone=nowhere",
            "cpu 1 mem 1Gi use example.com/fuse=1",
            "cpu 1 mem 1Gi select team=red need team=blue",
            "cpu 9000000000 mem 1Gi",
        ][shape % 6];
        writeln!(mixed, "shape bad{shape} {why}").unwrap();
        writeln!(mixed, "pods bad{shape} 2").unwrap();
    }
    let (placed, left, price) = sound(&good);
    assert_eq!((placed, left), (1_200, 0));
    assert_eq!(sound(&mixed), (1_200, 600, price));
}

#[test]
fn nothing_is_sold() {
    let (input, plan) = planned("pool default\nshape web cpu 1 mem 1Gi\npods web 3\n");
    assert_eq!(check(&plan, &input), Vec::new());
    assert_eq!((plan.launches.len(), plan.unplaced.len()), (0, 1));
    let (input, plan) = planned(
        "type m.large cpu 4 mem 16Gi pods 20 od 0.20\nshape web cpu 1 mem 1Gi\npods web 3\n",
    );
    assert_eq!(check(&plan, &input), Vec::new());
    assert_eq!((plan.launches.len(), plan.unplaced.len()), (0, 1));
}

#[test]
fn nodes_of_absurd_size_use_a_limit_up() {
    let text = "now 60s\n\
        type m.huge cpu 4 mem 8000000000Gi pods 20 od 0.20\n\
        pool default limit memory=8000000000Gi\n\
        shape web cpu 4 mem 1Gi\n\
        pods web 3\n\
        node n1 type m.huge pool default\n\
        node n2 type m.huge pool default\n";
    // Two nodes together have more bytes than can be counted; the third is not to be had.
    assert_eq!(sound(text), (2, 1, 0));
}
