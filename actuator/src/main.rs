//! The regional actuator's process.

use std::process::ExitCode;

use clap::Parser;

#[global_allocator]
static ALLOCATOR: longshore_runtime::Allocator = longshore_runtime::Allocator;

fn main() -> ExitCode {
    longshore_actuator::run(longshore_actuator::Args::parse())
}
