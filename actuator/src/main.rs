//! The regional actuator's process.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    longshore_actuator::run(longshore_actuator::Args::parse())
}
