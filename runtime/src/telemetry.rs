//! Logs and traces of a process.
//!
//! Invariant: what was recorded is flushed before the process ends, and a missing collector never
//! stops a service. Traces go out over OTLP when the standard `OTEL_*` variables name an endpoint.

use std::time::Duration;

use anyhow::Context;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::WithExportConfig;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For people at a terminal.
    Human,
    /// One JSON object a line.
    Json,
}

/// Arguments of every service about logs and traces.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Telemetry")]
pub struct TelemetryArgs {
    /// How log lines look.
    #[arg(long, env = "LONGSHORE_LOG_FORMAT", value_enum, default_value = "human")]
    pub log_format: LogFormat,
    /// What is logged: a level, or a list such as `info,longshore_scheduler=debug`.
    #[arg(long, env = "LONGSHORE_LOG", default_value = "info")]
    pub log: String,
    /// Collector for traces, as in the OpenTelemetry specification; none means no traces leave.
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT", value_name = "URL")]
    pub otlp_endpoint: Option<String>,
    /// Collector for traces only; wins over --otlp-endpoint.
    #[arg(long, env = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", value_name = "URL", hide = true)]
    pub otlp_traces_endpoint: Option<String>,
    /// Turns traces off.
    #[arg(long, env = "OTEL_SDK_DISABLED", hide = true, default_value = "false")]
    pub otel_disabled: String,
}

impl TelemetryArgs {
    fn endpoint(&self) -> Option<&str> {
        if self.otel_disabled.eq_ignore_ascii_case("true") {
            return None;
        }
        self.otlp_traces_endpoint.as_deref().or(self.otlp_endpoint.as_deref())
    }
}

/// Keeps telemetry alive; flush it with [`TelemetryGuard::flush`] before the process ends.
pub struct TelemetryGuard {
    provider: SdkTracerProvider,
}

/// Longest time that flushing may hold up the end of a process.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(3);

impl TelemetryGuard {
    /// Sends what is still queued. Errors are logged: they must not turn a clean end into a
    /// failure.
    pub fn flush(self) {
        if let Err(error) = self.provider.shutdown_with_timeout(FLUSH_TIMEOUT) {
            tracing::warn!(%error, "some spans could not be sent before the end");
        }
    }
}

/// Installs logging and tracing for the whole process. `service` is its `service.name` unless
/// OTEL_SERVICE_NAME or OTEL_RESOURCE_ATTRIBUTES say otherwise.
///
/// # Errors
/// When the filter or the collector's address cannot be parsed, or when called twice.
pub fn init(service: &'static str, args: &TelemetryArgs) -> anyhow::Result<TelemetryGuard> {
    let filter: Targets = args
        .log
        .parse()
        .with_context(|| format!("--log {:?} is not a valid filter; try `info`", args.log))?;
    let provider = provider(service, args)?;
    let traces = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer(service))
        .with_filter(tracing_subscriber::filter::LevelFilter::INFO);
    let logs: Box<dyn Layer<Registry> + Send + Sync> = match args.log_format {
        LogFormat::Human => {
            let ansi = std::io::IsTerminal::is_terminal(&std::io::stderr());
            let layer = tracing_subscriber::fmt::layer().with_ansi(ansi);
            layer.with_writer(std::io::stderr).with_filter(filter).boxed()
        }
        LogFormat::Json => {
            let layer = tracing_subscriber::fmt::layer().json().flatten_event(true);
            layer.with_writer(std::io::stderr).with_filter(filter).boxed()
        }
    };
    tracing_subscriber::registry().with(logs).with(traces).try_init()?;
    Ok(TelemetryGuard { provider })
}

fn provider(service: &'static str, args: &TelemetryArgs) -> anyhow::Result<SdkTracerProvider> {
    let resource = Resource::builder().with_service_name(service).build();
    let builder = SdkTracerProvider::builder().with_resource(resource);
    let Some(endpoint) = args.endpoint() else { return Ok(builder.build()) };
    let exporter = opentelemetry_otlp::SpanExporter::builder()
        .with_tonic()
        .with_endpoint(endpoint)
        .build()
        .with_context(|| format!("OTLP endpoint {endpoint:?} is not usable"))?;
    Ok(builder.with_batch_exporter(exporter).build())
}
