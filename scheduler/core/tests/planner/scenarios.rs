//! Golden scenarios: a world in, a plan out. To accept what the planner answers now, run the tests with
//! `UPDATE_EXPECT=1` and read the difference.
//!
//! Invariant: every scenario's plan passes the check and does not depend on the order of its objects.

use std::path::Path;

use expect_test::expect_file;
use longshore_core::check::check;
use longshore_core::plan::plan;

use super::random::Random;
use super::{render, scenario};

const DIVIDER: &str = "=== plan\n";

fn run(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios").join(name);
    #[expect(clippy::disallowed_methods, reason = "a test reads its scenario")]
    let text = std::fs::read_to_string(&path).unwrap();
    let world = text.split(DIVIDER).next().unwrap();
    let scenario = scenario::read(world);
    let input = scenario.input(0..scenario.changes.len());
    let answer = plan(&input);
    assert_eq!(check(&answer, &input), Vec::new(), "{name}");
    let mut order: Vec<usize> = (0..scenario.changes.len()).collect();
    Random::new(7).shuffle(&mut order);
    assert_eq!(plan(&scenario.input(order.into_iter())), answer, "{name}: order matters");
    let full = format!("{world}{DIVIDER}{}", render::render(&answer, &input));
    expect_file![path].assert_eq(&full);
}

macro_rules! scenarios {
    ($($name:ident)*) => {
        $(#[test] fn $name() { run(concat!(stringify!($name), ".txt")); })*
    };
}

scenarios! {
    w0_spread_as_a_wish
    w1_arm64_spot
    w2_scale_out
    w2_scale_in
    w2_survivors_on_one_node
    w2_survivors_wait_together
    w2_survivors_go_together
    w2_restless_nodes_take_no_moved_pods
    w2_nothing_but_fargate
    w3_two_pods_one_node
    w3_do_not_evict
    affinity
    anti_affinity
    budgets_and_pdbs
    buffers_follow_real_pods
    buffers_hold_room
    buffers_move_on
    claimed_devices
    consolidate_to_cheaper
    daemonsets_and_ports
    expiry
    flavours
    in_flight
    in_flight_with_room_to_spare
    joined_before_coming
    places_change_hands
    interruption
    limits
    overlays_of_capacity
    overlays_of_price
    reasons
    replicas_grow_over_zones
    replicas_shrink
    replicas_take_turns
    spot_to_spot
    spread_over_zones
    weights_and_taints
}
