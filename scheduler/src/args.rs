//! Arguments of the scheduler: strings in, a validated [`Config`] out, before anything binds.
//!
//! Invariant: nothing else in the crate reads arguments or the environment.

use std::net::SocketAddr;

use longshore_runtime::process::ProcessArgs;
use longshore_runtime::server::AccessArgs;

use crate::memory::MIB_DEFAULT;
use crate::settings::{Settings, SettingsArgs};

/// The stateless packing scheduler: watchers dial it, it plans, and sends plans to actuators.
#[derive(Clone, Debug, clap::Parser)]
#[command(
    version,
    after_help = "Any number of schedulers may run; each can be killed at any time."
)]
pub struct Args {
    /// Address that watchers and planning clients dial; port 0 picks a free one.
    #[arg(long, env = "LONGSHORE_LISTEN", default_value = "127.0.0.1:7400")]
    pub listen: SocketAddr,
    /// Address of metrics and health pages; none means they are not served.
    #[arg(long, env = "LONGSHORE_METRICS_LISTEN")]
    pub metrics_listen: Option<SocketAddr>,
    /// Every actuator of every region, standbys included, as https://host:port, comma-separated.
    #[arg(long, env = "LONGSHORE_ACTUATOR_ENDPOINTS", value_delimiter = ',')]
    pub actuator_endpoints: Vec<String>,
    /// Memory that the process keeps within, in MiB: clusters and questions beyond it are refused.
    #[arg(long, env = "LONGSHORE_MEMORY_MIB", value_name = "MIB", default_value_t = MIB_DEFAULT,
        value_parser = clap::value_parser!(u32).range(64..=1_048_576))]
    pub memory_mib: u32,
    /// How plans are made.
    #[command(flatten)]
    pub settings: SettingsArgs,
    /// Whom it answers.
    #[command(flatten)]
    pub access: AccessArgs,
    /// What every process is told.
    #[command(flatten)]
    pub process: ProcessArgs,
}

/// What the scheduler runs with.
#[derive(Clone, Debug)]
pub struct Config {
    /// Actuator endpoints, each a URL.
    pub actuator_endpoints: Vec<String>,
    /// How plans are made.
    pub settings: Settings,
    /// Memory that the process keeps within, in MiB.
    pub memory_mib: u32,
    /// Whom it answers.
    pub access: AccessArgs,
}

impl Args {
    /// Validates the arguments.
    ///
    /// # Errors
    /// When an endpoint is not a URL, or others would reach what proves nothing; the message names
    /// it.
    pub fn config(&self) -> anyhow::Result<Config> {
        let tls = &self.process.tls;
        tls.check_listen("--listen", self.listen)?;
        for endpoint in &self.actuator_endpoints {
            tls.check_endpoint("--actuator-endpoints", endpoint)?;
        }
        if self.actuator_endpoints.is_empty() {
            tracing::warn!("no --actuator-endpoints: plans are computed but nothing is launched");
        }
        Ok(Config {
            actuator_endpoints: self.actuator_endpoints.clone(),
            settings: self.settings.settings(),
            memory_mib: self.memory_mib,
            access: self.access.clone(),
        })
    }
}
