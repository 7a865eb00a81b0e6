//! The `longshore-scheduler` program.

use clap::Parser;
use longshore_runtime::process;
use longshore_scheduler::args::Args;
use longshore_scheduler::counters::Counters;

fn main() -> std::process::ExitCode {
    let args = Args::parse();
    process::run("longshore-scheduler", &args.telemetry.clone(), |supervisor| async move {
        let config = args.config()?;
        let metrics = process::serve_metrics(args.metrics_listen, &supervisor).await?;
        let counters = Counters::registered(&metrics);
        let listener = longshore_runtime::server::bind(args.listen).await?;
        longshore_scheduler::start_with(config, listener, &supervisor, counters)
    })
}
