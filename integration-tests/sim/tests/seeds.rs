//! A share of the simulation for every change: small worlds, few minutes. `make simulate` runs
//! large ones.

use std::process::Command;

use anyhow::Result;

/// How small, for a build that is not optimised.
const SMALL: [&str; 6] = ["--minutes", "4", "--clusters", "2", "--pods", "30"];
/// The same where a process does all for its cluster, and another stands by.
const ALONE: [&str; 7] = ["--standalone", "--minutes", "5", "--clusters", "1", "--pods", "15"];
/// A world for a single fault.
const TINY: [&str; 6] = ["--minutes", "3", "--clusters", "1", "--pods", "12"];

fn simulate(command: &[&str], world: &[&str]) -> Result<(bool, String)> {
    let program = env!("CARGO_BIN_EXE_longshore-sim");
    let output = Command::new(program).args(command).args(world).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok((output.status.success(), text + &String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn small_worlds_break_no_rule() -> Result<()> {
    let (good, said) = simulate(&["run", "--seeds", "0..4", "--within", "30"], &SMALL)?;
    assert!(good, "longshore-sim replay --seed N {} tells more of:\n{said}", SMALL.join(" "));
    Ok(())
}

/// What `longshore up` starts: killed, stopped, cut off, with its API server in trouble.
#[test]
fn processes_that_do_all_break_no_rule() -> Result<()> {
    let (good, said) = simulate(&["run", "--seeds", "0..4", "--within", "30"], &ALONE)?;
    assert!(good, "longshore-sim replay --seed N {} tells more of:\n{said}", ALONE.join(" "));
    Ok(())
}

#[test]
fn a_process_that_does_all_lives_in_the_same_way_again() -> Result<()> {
    is_repeated(&["replay", "--seed", "1"], &ALONE)
}

#[test]
fn a_seed_is_lived_through_in_the_same_way_again() -> Result<()> {
    is_repeated(&["replay", "--seed", "7"], &SMALL)
}

/// Libraries draw how long they wait after an error: also that must come out of the seed.
#[test]
fn waits_after_errors_are_the_same_again() -> Result<()> {
    is_repeated(&["replay", "--seed", "3", "--faults", "compacted"], &TINY)
}

fn is_repeated(replay: &[&str], world: &[&str]) -> Result<()> {
    let digest = || -> Result<String> {
        let (_, said) = simulate(replay, world)?;
        let line = said.lines().find(|line| line.starts_with("digest "));
        Ok(line.map_or_else(|| said.clone(), ToOwned::to_owned))
    };
    let once = digest()?;
    assert!(once.starts_with("digest "), "{once}");
    assert_eq!(once, digest()?);
    Ok(())
}
