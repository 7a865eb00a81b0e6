//! The whole system in one thread: the real watcher, scheduler and actuator over a simulated
//! network, region and cluster, all from one seed.
//!
//! Invariant: the same seed and build give the same journal, byte for byte.

mod apiserver;
mod args;
mod children;
mod clock;
mod cloud;
mod cluster;
mod etcd;
mod faults;
mod gate;
mod journal;
mod net;
mod planted;
mod process;
mod random;
mod region;
mod report;
mod run;
mod settling;
mod shrink;
mod site;
mod users;
mod verdict;
mod world;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Parser as _;

use crate::args::{Args, Command, How};

#[global_allocator]
static ALLOCATOR: longshore_runtime::Allocator = longshore_runtime::Allocator;

/// Exit code when a rule was broken.
const BROKEN: u8 = 1;

#[allow(clippy::print_stderr, reason = "the last word of a program that failed")]
fn main() -> ExitCode {
    match act(Args::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("longshore-sim: {error:#}");
            ExitCode::from(2)
        }
    }
}

#[allow(clippy::print_stdout, reason = "what the program finds is what it is for")]
fn act(command: Command) -> Result<ExitCode> {
    let broken = match command {
        Command::Run { seeds, how, output, jobs, within } => {
            let jobs = jobs.unwrap_or_else(processors);
            report::seeds(seeds.0, &how, (output, jobs), within.map(Duration::from_secs))?
        }
        Command::Replay { seed, how } => replay(seed, &how)?,
        Command::Shrink { seed, how } => {
            let (how, _) = shrink::shrink(seed, &how, |text| println!("{text}"))?;
            println!("longshore-sim replay --seed {seed} {}", how.to_arguments().join(" "));
            replay(seed, &how)?
        }
        Command::Planted { only, tests: true, .. } => planted::run_tests(&only)?,
        Command::Planted { within, only, output, jobs, .. } => {
            planted::find(within, &only, (output, jobs.unwrap_or_else(processors)))?
        }
        Command::One { seed, how } => {
            let (outcome, _, _) = run::run(seed, &how)?;
            println!("{}", serde_json::to_string(&outcome)?);
            0
        }
    };
    Ok(if broken == 0 { ExitCode::SUCCESS } else { ExitCode::from(BROKEN) })
}

#[allow(clippy::print_stdout, reason = "the journal is what replay is for")]
fn replay(seed: u64, how: &How) -> Result<usize> {
    let (outcome, journal, _) = run::run(seed, how)?;
    journal.lines().iter().for_each(|line| println!("{line}"));
    println!("{}", report::line(&outcome));
    println!("digest {}", outcome.digest);
    Ok(outcome.violations.len())
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
