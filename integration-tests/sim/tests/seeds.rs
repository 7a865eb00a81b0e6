//! A share of the simulation for every change: small worlds, few minutes. `make simulate` runs large ones.

use std::process::Command;

/// How small, for a build that is not optimised.
const SMALL: [&str; 6] = ["--minutes", "4", "--clusters", "2", "--pods", "30"];

fn simulate(command: &[&str]) -> (bool, String) {
    let program = env!("CARGO_BIN_EXE_longshore-sim");
    let output = Command::new(program).args(command).args(SMALL).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.success(), text + &String::from_utf8_lossy(&output.stderr))
}

#[test]
fn small_worlds_break_no_rule() {
    let (good, said) = simulate(&["run", "--seeds", "0..4", "--within", "40"]);
    assert!(good, "longshore-sim replay --seed N {} tells more of:\n{said}", SMALL.join(" "));
}

#[test]
fn a_seed_is_lived_through_in_the_same_way_again() {
    let digest = |text: &str| {
        let line = text.lines().find(|line| line.starts_with("digest "));
        line.map(ToOwned::to_owned).unwrap_or_else(|| text.to_owned())
    };
    let [(_, once), (_, again)] = [(); 2].map(|()| simulate(&["replay", "--seed", "7"]));
    assert!(digest(&once).starts_with("digest "), "{once}");
    assert_eq!(digest(&once), digest(&again));
}

#[test]
fn a_planted_defect_is_found_and_shrunk() {
    let found = simulate(&["planted", "--only", "S4", "--within", "12"]);
    assert!(found.0, "{}", found.1);
    assert!(found.1.contains("S4: seed "), "{}", found.1);
}
