//! The `longshore-scheduler` program.

use clap::Parser;
use longshore_runtime::listener::Listener;
use longshore_runtime::{process, server};
use longshore_scheduler::args::Args;
use longshore_scheduler::counters::Counters;

#[global_allocator]
static ALLOCATOR: longshore_runtime::Allocator = longshore_runtime::Allocator;

fn main() -> std::process::ExitCode {
    let args = Args::parse();
    process::run("longshore-scheduler", &args.process.clone(), |supervisor| async move {
        let config = args.config()?;
        let metrics = process::serve_metrics(args.metrics_listen, &supervisor).await?;
        let counters = Counters::registered(&metrics);
        let listener = Listener::from(server::bind(args.listen).await?);
        let listener = listener.secured(supervisor.platform().credentials.clone());
        longshore_scheduler::start_with(config, listener, &supervisor, counters)
    })
}
