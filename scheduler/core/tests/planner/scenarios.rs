//! Golden scenarios: a world in, a plan out. To accept what the planner answers now, run the tests
//! with `UPDATE_EXPECT=1` and read the difference.
//!
//! Invariant: every scenario's plan passes the check and does not depend on the order of its
//! objects.

use std::path::Path;

use expect_test::expect_file;
use longshore_core::check::check;
use longshore_core::plan;

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

/// Every file there is, so that none can be forgotten.
#[test]
fn every_scenario_gives_its_plan() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = files.map(|name| name.into_string().unwrap()).collect();
    names.sort_unstable();
    assert!(names.iter().all(|name| name.ends_with(".txt")), "{names:?}");
    let fails = |name: &&String| std::panic::catch_unwind(|| run(name)).is_err();
    let failed: Vec<&String> = names.iter().filter(fails).collect();
    assert!(failed.is_empty(), "{} of {} scenarios: {failed:?}", failed.len(), names.len());
}

#[test]
fn every_scenario_says_first_what_it_shows() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        #[expect(clippy::disallowed_methods, reason = "a test reads its scenario")]
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# ") && text.contains(DIVIDER), "{}", path.display());
    }
}
