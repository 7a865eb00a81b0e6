//! Which pods need to be told their nodes.

use std::collections::BTreeMap;

use longshore_core::answer::Told;
use longshore_core::plan;

use super::scenario;

/// Which pods need to be told, of a world with six of `web` and what else the lines say.
fn told(lines: &str) -> Told {
    let world = format!(
        "type m.large cpu 4 mem 16Gi pods 20 od 0.20\npool default\nshape web cpu 1 mem 1Gi\npods web 6\n{lines}"
    );
    let scenario = scenario::read(&world);
    plan(&scenario.input(0..scenario.changes.len())).told
}

/// Whether whichever pods are bound first, the planned places suit the others.
fn any_order(lines: &str) -> bool {
    told(lines).is_none()
}

/// How many pods of each workload need not be told though others do.
fn left_alone(lines: &str) -> BTreeMap<String, usize> {
    let Told::AllBut(free) = told(lines) else { return BTreeMap::new() };
    let mut counts = BTreeMap::new();
    for pod in free {
        let workload = pod.as_str().split('-').next().unwrap_or_default().to_owned();
        *counts.entry(workload).or_default() += 1;
    }
    counts
}

#[test]
fn pods_that_are_alike_may_be_bound_in_any_order() {
    assert!(any_order(""));
    assert!(
        any_order("shape api cpu 1 mem 1Gi\npods api 3"),
        "another workload that asks the same"
    );
    assert!(
        any_order("shape api cpu 2 mem 1Gi\nnode n1 type m.large\npods api 1 on n1"),
        "it runs"
    );
}

#[test]
fn pods_that_differ_in_anything_are_told_their_nodes() {
    for other in [
        "shape api cpu 2 mem 1Gi\npods api 3",
        "shape api cpu 2 mem 1Gi\npods api 1 untried yes",
        "shape api cpu 1 mem 1Gi apart host:api\npods api 1",
        "shape api cpu 1 mem 1Gi select kubernetes.io/arch=amd64\npods api 1",
        "shape api cpu 1 mem 1Gi tolerate team\npods api 1",
        "shape api cpu 1 mem 1Gi priority 5\npods api 1",
        "shape log cpu 100m mem 64Mi daemon yes",
    ] {
        assert!(!any_order(other), "{other}");
    }
}

#[test]
fn a_daemonset_that_comes_before_its_node_opens_takes_nobodys_place() {
    assert!(any_order("shape log cpu 100m mem 64Mi daemon yes tolerate karpenter.sh/unregistered"));
}

#[test]
fn of_pods_that_differ_the_most_that_are_alike_are_left_alone() {
    for (lines, expected) in [
        ("shape api cpu 2 mem 1Gi\npods api 3", vec![("web", 6)]),
        ("shape api cpu 2 mem 1Gi\npods api 9", vec![("api", 9)]),
        (
            "shape api cpu 1 mem 1Gi\npods api 3\nshape big cpu 3 mem 1Gi\npods big 8",
            vec![("api", 3), ("web", 6)],
        ),
        ("shape api cpu 2 mem 1Gi apart host:api\npods api 9", vec![("web", 6)]),
    ] {
        let expected = expected.into_iter().map(|(name, pods)| (name.to_owned(), pods)).collect();
        assert_eq!(left_alone(lines), expected, "{lines}");
    }
}

#[test]
fn all_are_told_where_somebody_could_come_who_has_no_place() {
    for lines in [
        "shape huge cpu 3 mem 1Gi select topology.kubernetes.io/zone=nowhere\npods huge 1",
        "shape api cpu 2 mem 1Gi\npods api 1 untried yes",
        "shape api cpu 2 mem 1Gi apart host:web\npods api 3",
        "shape api cpu 2 mem 1Gi\npods api 1\nshape log cpu 100m mem 64Mi daemon yes",
    ] {
        assert_eq!(told(lines), Told::All, "{lines}");
    }
}
