//! The frame of every service: runtime, telemetry, signals, supervised tasks, clean end.
//!
//! Invariant: a service ends with code 0 when asked to, and with 1 and a message on standard error
//! when it could not start or an essential task failed.

use std::future::Future;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;
use crate::platform::Platform;
use crate::tasks::Supervisor;
use crate::telemetry::{self, TelemetryArgs};
use crate::tls::TlsArgs;
use crate::{server, shutdown};

/// The commit that was built, where the build says so.
const COMMIT: Option<&str> = option_env!("LONGSHORE_COMMIT");

/// Arguments that every process has.
#[derive(Clone, Debug, clap::Args)]
pub struct ProcessArgs {
    /// Who it is.
    #[command(flatten)]
    pub tls: TlsArgs,
    /// Logs and traces.
    #[command(flatten)]
    pub telemetry: TelemetryArgs,
}

/// How long tasks may take to end after the first signal.
const GRACE: Duration = Duration::from_secs(10);

/// Runs a service: `start` puts its tasks on the supervisor; the process lives until they end.
pub fn run<F, Fut>(service: &'static str, args: &ProcessArgs, start: F) -> ExitCode
where
    F: FnOnce(Supervisor) -> Fut,
    Fut: Future<Output = anyhow::Result<()>>,
{
    let outcome = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")
        .and_then(|runtime| runtime.block_on(live(service, args, start)));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(service, &error);
            ExitCode::FAILURE
        }
    }
}

async fn live<F, Fut>(service: &'static str, args: &ProcessArgs, start: F) -> anyhow::Result<()>
where
    F: FnOnce(Supervisor) -> Fut,
    Fut: Future<Output = anyhow::Result<()>>,
{
    let guard = telemetry::init(service, &args.telemetry)?;
    let outcome = until_ended(&args.tls, shutdown::on_signals()?, start).await;
    guard.flush();
    outcome
}

/// Starts what a process does, and lives until its tasks have ended.
async fn until_ended<F, Fut>(
    tls: &TlsArgs,
    token: CancellationToken,
    start: F,
) -> anyhow::Result<()>
where
    F: FnOnce(Supervisor) -> Fut,
    Fut: Future<Output = anyhow::Result<()>>,
{
    let credentials = tls.credentials()?;
    let platform = Platform { credentials: credentials.clone(), ..Platform::system() };
    let supervisor = Supervisor::new(token, platform);
    if let Some(credentials) = credentials {
        let token = supervisor.token().clone();
        supervisor.spawn_once("certificates", async move {
            token.run_until_cancelled(credentials.keep()).await;
            Ok(())
        });
    }
    start(supervisor.clone()).await?;
    supervisor.join(GRACE).await
}

/// Serves metrics and health when an address is given, and ends the process when something in it
/// has stalled.
///
/// # Errors
/// When the address cannot be bound.
pub async fn serve_metrics(
    address: Option<SocketAddr>,
    supervisor: &Supervisor,
) -> anyhow::Result<Metrics> {
    let (metrics, pulses) = (Metrics::new(), supervisor.platform().pulses.clone());
    metrics.register_build(env!("CARGO_PKG_VERSION"), COMMIT.unwrap_or_default());
    let (token, watching) = (supervisor.token().clone(), pulses.clone().watch());
    let watching = async move { token.run_until_cancelled(watching).await.unwrap_or(Ok(())) };
    supervisor.spawn_once("watchdog", watching);
    if let Some(address) = address {
        let listener = server::bind(address).await?;
        tracing::info!(address = %listener.local_addr()?, "serving metrics and health");
        let serving = metrics.clone().serve(listener, supervisor.token().clone(), pulses);
        supervisor.spawn_once("metrics", serving);
    }
    Ok(metrics)
}

#[allow(clippy::print_stderr, reason = "the last word of a failing process, telemetry or not")]
fn report(service: &str, error: &anyhow::Error) {
    eprintln!("{service}: {error:#}");
}
