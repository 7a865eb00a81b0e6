//! `longshore-lab`: a simulated region, and machines for a cluster, for any controller.
//!
//! Invariant: prints what a client needs to reach it, once, then serves until interrupted.

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;
use longshore_lab::program::{Lab, LabArgs};

#[tokio::main]
#[expect(clippy::print_stderr, reason = "the last word of a program that failed")]
async fn main() -> ExitCode {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    match run(&LabArgs::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("longshore-lab: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: &LabArgs) -> anyhow::Result<()> {
    let lab = Lab::start(args).await?;
    let mut out = std::io::stdout();
    out.write_all(lab.found().printed(args.output)?.as_bytes())?;
    out.flush()?;
    tokio::signal::ctrl_c().await?;
    lab.stop().await;
    Ok(())
}
