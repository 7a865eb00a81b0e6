//! The demo: W2 in a simulated cluster and region, through three separate service processes.
//!
//! Invariant: the services are the shipped programs, reached over gRPC, the Kubernetes API and the
//! AWS wire protocols; the demo itself only plays the user and watches.

pub mod audit;
pub mod latency;
mod script;
pub mod summary;
mod table;
mod world;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::trace::{self, waterfall};
use summary::Summary;
use world::DemoWorld;

/// Time after which the demo gives up.
const LIMIT: Duration = Duration::from_secs(240);

/// How the demo runs.
#[derive(Clone, Debug, clap::Parser)]
#[command(name = "demo", about = "Scales a simulated cluster 4 -> 100 -> 4 on a simulated region")]
pub struct Args {
    /// Seconds an instance takes to boot, at least.
    #[arg(long, default_value_t = 4.0)]
    pub boot_seconds: f64,
    /// Folder for the summary, the trace and the logs of the services.
    #[arg(long, default_value = "target/demo")]
    pub out: PathBuf,
}

/// Runs the demo and writes its results.
///
/// # Errors
/// When a step does not succeed in time, or the books do not balance at the end.
pub async fn run(args: &Args) -> Result<()> {
    std::fs::create_dir_all(&args.out)?;
    table::say("Longshore demo: W2, a cluster with no node groups, scaled 4 -> 100 -> 4 replicas.");
    table::say(&format!(
        "Simulated region and cluster; boot time {:.1} s by --boot-seconds; logs in {}.",
        args.boot_seconds,
        args.out.display()
    ));
    let mut world = DemoWorld::start(args).await?;
    let played = tokio::time::timeout(LIMIT, script::play(&mut world)).await;
    let summary = match played {
        Ok(played) => played?,
        Err(_) => anyhow::bail!("the demo did not end within {LIMIT:?}; see the logs"),
    };
    world.stage.stop_services().await?;
    finish(&world, summary, &args.out)
}

fn finish(world: &DemoWorld, mut summary: Summary, out: &Path) -> Result<()> {
    let received = world.stage.traces.received();
    let spans = trace::spans(&received);
    let trace_id = trace::fullest(&spans).unwrap_or_default();
    let fullest = trace::of_trace(&spans, &trace_id);
    summary.trace_id.clone_from(&trace_id);
    summary.trace_spans = fullest.len();
    summary.trace_services = trace::services(&fullest).into_iter().collect();
    summary.longshore_share = latency::share(&spans);
    let summary_file = out.join("summary.json");
    std::fs::write(&summary_file, serde_json::to_string_pretty(&summary)? + "\n")?;
    std::fs::write(out.join("trace.json"), trace::otlp_json(&received, &trace_id)? + "\n")?;
    table::say(&format!("\nOne trace, from pod event to EC2 request ({trace_id}):\n"));
    table::say(&waterfall::draw(&fullest, table::width()));
    table::say(&summary.to_string());
    table::say(&format!("Written: {} and trace.json beside it.", summary_file.display()));
    ensure!(summary.duplicate_launches == 0, "{} duplicate launches", summary.duplicate_launches);
    ensure!(summary.leaked_instances == 0, "{} leaked instances", summary.leaked_instances);
    ensure!(summary.trace_services.len() >= 3, "the trace lacks a service");
    ensure!(trace::has_request_id(&fullest), "the trace has no EC2 request id");
    Ok(())
}
