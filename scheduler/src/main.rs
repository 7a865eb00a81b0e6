//! The `longshore-scheduler` program.

use clap::Parser;
use longshore_runtime::process;
use longshore_scheduler::args::Args;

fn main() -> std::process::ExitCode {
    let args = Args::parse();
    process::run("longshore-scheduler", &args.telemetry.clone(), |supervisor| async move {
        let config = args.config()?;
        process::serve_metrics(args.metrics_listen, &supervisor).await?;
        let listener = longshore_runtime::server::bind(args.listen).await?;
        longshore_scheduler::start(config, listener, &supervisor)
    })
}
