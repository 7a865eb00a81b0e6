//! The watcher's program.

use clap::Parser as _;
use longshore_watcher::args::Args;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    longshore_watcher::service::main(Args::parse()).await
}
