//! The bench: how long plans take, what they cost and how far above the proven bound they lie, for
//! Longshore's planner and for the peer, Karpenter's scheduler in a process of its own.
//!
//! Invariant: both sides read the same files, each run is a process of its own, and both plans are
//! judged by the same independent check.

mod agreement;
mod allocated;
mod args;
pub(crate) mod catalogues;
mod chart;
mod cluster;
mod differ;
mod goals;
mod latency;
mod live;
mod machine;
mod numbers;
mod objective;
mod outcome;
mod pack;
mod peer;
mod question;
mod reach;
mod report;
mod results;
mod runs;
mod suite;
mod workloads;
mod worlds;

use std::io::Write as _;

use anyhow::Result;
use serde::Serialize;

pub use args::Args;
use args::Command;

/// Does what the arguments ask for.
///
/// # Errors
/// When a file cannot be read or the peer fails.
pub fn run(args: &Args) -> Result<()> {
    match &args.command {
        Command::Pack(args) => print(&pack::pack(args)?),
        Command::Peer(args) => print(&peer::peer(args)?),
        Command::Latency { case } => print(&latency::measure(*case)?),
        Command::Files { dir } => workloads::write_all(dir),
        Command::Differ(args) => differ::differ(args),
        Command::Agree(args) => agreement::agreement(args),
        Command::Reach(args) => reach::reach(args),
        Command::Cluster(args) => cluster::cluster(args),
        Command::Live(args) => live::live(args),
        Command::All(args) => suite::all(args),
    }
}

fn print(answer: &impl Serialize) -> Result<()> {
    say(&serde_json::to_string(answer)?)
}

/// Writes what is under way on standard error: the answer has standard output for itself.
fn tell(line: &str) {
    // Who closed it does not want to know.
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// Writes a line for whoever started the program.
fn say(line: &str) -> Result<()> {
    Ok(writeln!(std::io::stdout().lock(), "{line}")?)
}
