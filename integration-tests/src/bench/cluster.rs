//! One large cluster: what it takes to hold it, to take it in, and to come back with many pods
//! waiting.
//!
//! Invariant: what is measured is the shipped program in a process of its own; cluster and region
//! are simulated, in this process. A figure that was not reached says so in its place.

mod args;
mod fill;
mod report;
mod restart;
mod settled;
mod stand;

use anyhow::Result;

pub use args::ClusterArgs;

use self::report::Measured;
use super::{say, tell};

/// Measures, prints the table, and writes the document where that is worth something.
///
/// # Errors
/// When nothing can be measured, or the document cannot be written.
pub fn cluster(args: &ClusterArgs) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let measured = runtime.block_on(measured(args));
    say(&report::table(&measured))?;
    if !args.is_full() || cfg!(debug_assertions) {
        tell("no document: it is written by a release build, of everything at its default size");
        return Ok(());
    }
    std::fs::create_dir_all(&args.out)?;
    let path = args.out.join("cluster.md");
    std::fs::write(&path, report::document(&measured, args))?;
    tell(&format!("written: {}", path.display()));
    Ok(())
}

/// Everything that is asked for; what fails is one row and does not stop the rest.
async fn measured(args: &ClusterArgs) -> Vec<Measured> {
    let mut rows = Vec::new();
    if args.pods > 0 {
        tell(&format!("{} pods on {} nodes", args.pods, args.nodes));
        let found = Box::pin(settled::measure(args)).await;
        rows.extend(
            found.unwrap_or_else(|error| vec![Measured::failed("a settled cluster", &error)]),
        );
    }
    for program in restart::PROGRAMS.into_iter().filter(|_| args.pending > 0) {
        tell(&format!("{} pods wait, and the {} starts", args.pending, program.name()));
        let found = Box::pin(restart::measure(args, program)).await;
        let name = format!("the {} starts", program.name());
        rows.extend(found.unwrap_or_else(|error| vec![Measured::failed(&name, &error)]));
    }
    rows
}
