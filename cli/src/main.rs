//! The `longshore` command.

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    longshore_cli::main(&longshore_cli::args::Args::parse())
}
