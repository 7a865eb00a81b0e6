//! The `longshore` command.

use std::process::ExitCode;

use clap::Parser as _;

#[global_allocator]
static ALLOCATOR: longshore_runtime::Allocator = longshore_runtime::Allocator;

fn main() -> ExitCode {
    longshore_cli::main(&longshore_cli::args::Args::parse())
}
