//! Whether pods need to be told their nodes.

use longshore_core::plan;

use super::scenario;

/// Whether whichever pods are bound first, the planned places suit the others.
fn any_order(lines: &str) -> bool {
    let world = format!(
        "type m.large cpu 4 mem 16Gi pods 20 od 0.20\npool default\nshape web cpu 1 mem 1Gi\npods web 6\n{lines}"
    );
    let scenario = scenario::read(&world);
    plan(&scenario.input(0..scenario.changes.len())).any_order
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
