//! `longshore-lab`: a simulated region on its own, for any AWS SDK or tool.
//!
//! Invariant: prints what a client needs to reach it, once, then serves until interrupted.

use std::io::Write as _;
use std::net::SocketAddr;

use clap::Parser;
use longshore_lab::region::{CONTROLLER_KEY, Region, RegionConfig, Timing};

/// Runs a simulated AWS region (EC2, IAM, STS, SQS, SSM, Pricing, EKS) until interrupted.
#[derive(Debug, Parser)]
#[command(version)]
struct Args {
    /// Name of the region.
    #[arg(long, default_value = "us-east-1")]
    region: String,
    /// Address to listen on; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Source of ids, delays and price movements: one seed is one run.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Boot and shutdown delays as met in life, instead of milliseconds.
    #[arg(long)]
    realistic: bool,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let args = Args::parse();
    let mut config = RegionConfig::simple(&args.region)?;
    config.seed = args.seed;
    if args.realistic {
        config.timing = Timing::realistic();
    }
    let region = Region::start_at(config, args.listen).await?;
    let mut out = std::io::stdout();
    writeln!(out, "export AWS_ENDPOINT_URL={}", region.endpoint_url())?;
    writeln!(out, "export AWS_REGION={}", args.region)?;
    writeln!(out, "export AWS_ACCESS_KEY_ID={CONTROLLER_KEY}")?;
    writeln!(out, "export AWS_SECRET_ACCESS_KEY=any")?;
    out.flush()?;
    tokio::signal::ctrl_c().await?;
    Ok(())
}
