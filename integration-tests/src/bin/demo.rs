//! `make demo`: the whole system on a simulated region and cluster.

use clap::Parser;
use longshore_it::demo::{self, Args};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    demo::run(&Args::parse()).await
}
