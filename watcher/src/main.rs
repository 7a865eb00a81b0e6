//! The watcher's program.

use clap::Parser as _;
use longshore_runtime::process;
use longshore_watcher::args::Args;

#[global_allocator]
static ALLOCATOR: longshore_runtime::Allocator = longshore_runtime::Allocator;

fn main() -> std::process::ExitCode {
    let args = Args::parse();
    process::run("longshore-watcher", &args.process.clone(), |supervisor| async move {
        longshore_watcher::service::start(args, &supervisor).await
    })
}
