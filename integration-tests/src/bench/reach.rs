//! How far the services reach: programs that measure promises about many clusters, floods, deaths
//! and interruptions.
//!
//! Invariant: what is measured is the shipped program in a process of its own, over the real
//! protocol. A promise that was not measured does not hold.

mod args;
mod busy;
mod cluster;
mod encryption;
mod failover;
mod fairness;
mod flood;
mod interruption;
mod payload;
mod quantity;
mod region;
mod send;
mod stand;
mod trouble;
mod watcher;

use anyhow::{Result, ensure};
use clap::Parser as _;

pub use args::*;

use self::quantity::Quantity;
use super::{say, tell};

/// Measures what the arguments ask for, and prints it.
///
/// # Errors
/// When it cannot be measured, or a promise does not hold.
pub fn reach(args: &ReachArgs) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let quantities = runtime.block_on(measure(&args.what))?;
    if quantities.is_empty() {
        return Ok(());
    }
    say(&quantity::shown(&quantities, args.output)?)?;
    let broken = quantities.iter().filter(|quantity| !quantity.holds).count();
    ensure!(broken == 0, "{broken} of {} promises do not hold", quantities.len());
    Ok(())
}

async fn measure(what: &What) -> Result<Vec<Quantity>> {
    match what {
        What::All => Ok(all().await),
        What::Fairness(args) => fairness::measure(args).await,
        What::Flood(args) => flood::measure(args).await,
        What::Failover(args) => failover::measure(args).await,
        What::Interruption(args) => interruption::measure(args).await,
        What::Encryption(args) => encryption::measure(args).await,
        What::Busy(args) => busy::measure(args).await,
        What::Trouble(args) => trouble::make(args).await.map(|()| Vec::new()),
        What::Send(args) => send::send(args).await.map(|()| Vec::new()),
        What::Spin => busy::spin(),
    }
}

/// What takes minutes, and how many on two processors.
const PARTS: [(&str, &str); 5] = [
    ("fairness", "three minutes"),
    ("failover", "two minutes"),
    ("interruption", "a minute"),
    ("flood", "two minutes"),
    ("encryption", "a minute"),
];

/// Everything that takes minutes, at its default size. What fails does not stop the rest.
async fn all() -> Vec<Quantity> {
    let mut found = Vec::new();
    for (name, time) in PARTS {
        tell(&format!("{name}: about {time}"));
        let measured = match defaults(name) {
            Ok(what) => Box::pin(measure(&what)).await,
            Err(error) => Err(error),
        };
        found.extend(measured.unwrap_or_else(|error| vec![Quantity::failed(name, &error)]));
    }
    found
}

/// A program with its defaults, as the command line has them.
fn defaults(name: &str) -> Result<What> {
    #[derive(clap::Parser)]
    struct Line {
        #[command(subcommand)]
        what: What,
    }
    Ok(Line::try_parse_from(["reach", name])?.what)
}
