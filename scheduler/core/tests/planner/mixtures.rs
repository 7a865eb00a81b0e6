//! Random worlds of pools with and without replicas, overlays, buffers and nodes half full.
//!
//! Invariant: every plan passes the independent check, whatever meets whatever.

use std::fmt::Write;

use longshore_core::answer::Plan;
use longshore_core::check::{Rule, check};
use longshore_core::plan;
use longshore_core::question::PlanInput;

use super::random::Random;
use super::scenario;

/// Worlds that are tried.
const WORLDS: u64 = 300;

/// A world in the words of scenarios.
pub fn world(random: &mut Random) -> String {
    let mut text = "now 800h\n\
        type m.large cpu 4 mem 16Gi pods 20 od 0.20 spot 0.07 zones a,b,c\n\
        type m.xlarge cpu 8 mem 32Gi pods 20 od 0.40 spot 0.15 zones a,b\n\
        type c.large cpu 2 mem 4Gi pods 20 od 0.09 zones b,c\n\
        pool tight after 0s limit nodes=6 budget 1 need bought=on-demand\n"
        .to_owned();
    // What replicas may be bought as is nothing that pods could have.
    let dear = ["", " need bought=on-demand"][index(random, 2)];
    writeln!(text, "pool open after 0s{dear}").unwrap();
    let replicas = random.below(5);
    let limit = ["", " limit nodes=4"][index(random, 2)];
    writeln!(text, "pool fixed after 0s replicas {replicas}{limit}").unwrap();
    let density = ["", " spread dense"][index(random, 2)];
    writeln!(text, "pool even after 0s{density}").unwrap();
    let shapes = [
        "a cpu 1 mem 2Gi",
        "b cpu 3 mem 1Gi spread zone:1",
        "c cpu 500m mem 6Gi apart host:c",
        "d cpu 2 mem 2Gi select karpenter.sh/nodepool=fixed",
        "e cpu 1 mem 1Gi use example.com/fuse=1",
        "f cpu 700m mem 1Gi select karpenter.sh/nodepool=even spread host:1",
        "g cpu 300m mem 1Gi select karpenter.sh/nodepool=even spread host:2 spread zone:1",
    ];
    for shape in shapes {
        writeln!(text, "shape {shape}").unwrap();
        let name = shape.split(' ').next().unwrap();
        let most = if "fg".contains(name) { 9 } else { 4 };
        writeln!(text, "pods {name} {}", random.below(most)).unwrap();
    }
    for number in 0..random.below(7) {
        let pool = ["open", "tight", "fixed", "even"][index(random, 4)];
        let expire = ["", " expire 720h", " expire 900h"][index(random, 3)];
        let zone = ["a", "b"][index(random, 2)];
        writeln!(text, "node n{number} type m.large pool {pool} zone {zone}{expire}").unwrap();
        for _ in 0..random.below(3) {
            // Small enough for three of them, and for two of those that were there before.
            let shape = if pool == "even" { "f" } else { "a" };
            writeln!(text, "pods {shape} 1 on n{number}").unwrap();
        }
    }
    wishes_of_owners(random, &mut text);
    text
}

/// Buffers and overlays.
fn wishes_of_owners(random: &mut Random, text: &mut String) {
    for (name, shape) in
        [("x", "cpu 2 mem 2Gi"), ("y", "cpu 1 mem 9Gi"), ("z", "cpu 900m mem 1Gi spread zone:1")]
    {
        if random.below(2) == 0 {
            writeln!(text, "shape spare-{name} {shape}").unwrap();
            writeln!(text, "buffer {name} shape spare-{name} replicas {}", random.below(6))
                .unwrap();
        }
    }
    for overlay in [
        "one need family=m percent -60",
        "two weight 3 need zone=a add 0.30",
        "three need family=m price 0.01 has example.com/fuse=2",
    ] {
        if random.below(2) == 0 {
            writeln!(text, "overlay {overlay}").unwrap();
        }
    }
}

fn index(random: &mut Random, count: u64) -> usize {
    usize::try_from(random.below(count)).unwrap()
}

#[test]
fn plans_pass_the_check_whatever_meets_whatever() {
    for seed in 0..WORLDS {
        let text = world(&mut Random::new(seed));
        let read = scenario::read(&text);
        let input = read.input(0..read.changes.len());
        let plan = plan(&input);
        assert_eq!(check(&plan, &input), Vec::new(), "seed {seed}:\n{text}");
    }
}

/// A pool that keeps this many nodes and has two.
fn replicas(count: usize) -> PlanInput {
    let text = format!(
        "now 1h\n\
         type m.large cpu 4 mem 16Gi pods 20 od 0.20\n\
         pool fixed replicas {count}\n\
         node n1 type m.large pool fixed\n\
         node n2 type m.large pool fixed\n"
    );
    let read = scenario::read(&text);
    read.input(0..read.changes.len())
}

fn is_found(plan: &Plan, input: &PlanInput) -> bool {
    check(plan, input).iter().any(|violation| violation.rule == Rule::Replicas)
}

#[test]
fn too_many_and_too_few_replicas_are_found() {
    let (fewer, more) = (replicas(1), replicas(4));
    let (trimmed, grown) = (plan(&fewer), plan(&more));
    assert!(!is_found(&trimmed, &fewer) && !is_found(&grown, &more));
    assert_eq!((trimmed.disruptions.len(), grown.launches.len()), (1, 2));
    let mut none_left = trimmed.clone();
    let mut other = trimmed.disruptions[0].clone();
    other.claims = vec!["n1-claim".into(), "n2-claim".into()];
    none_left.disruptions.push(other);
    assert!(is_found(&none_left, &fewer));
    let mut one_too_many = grown.clone();
    one_too_many.launches.push(grown.launches[0].clone());
    assert!(is_found(&one_too_many, &more));
    let mut for_pods = grown.clone();
    for_pods.launches[0].standing = false;
    assert!(is_found(&for_pods, &more));
    assert!(is_found(&grown, &replicas(2)), "the pool has changed its mind");
}
