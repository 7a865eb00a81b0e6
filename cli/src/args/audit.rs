//! Arguments of `audit`.
//!
//! Invariant: what is not limited is shown.

use clap::Args;
use longshore_runtime::tls::TlsArgs;

use super::Output;

pub(super) const EXAMPLES: &str = "\
Examples:
  longshore audit --actuator https://longshore-actuator:7402 --cluster prod --since 1h
  longshore audit --actuator https://longshore-actuator:7402 --refused
  longshore audit --actuator https://longshore-actuator:7402 --since 30d --output json > audit.json

The certificate has to be one of a client that the actuator lets watch (--clients NAME=watch).";

/// Arguments of `audit`.
#[derive(Clone, Debug, Args)]
pub struct AuditArgs {
    /// Address of an actuator of the region; one that does not lead says who does.
    #[arg(long, env = "LONGSHORE_ACTUATOR_ENDPOINT", value_name = "URL")]
    pub actuator: String,
    /// Clusters, comma-separated; all unless given.
    #[arg(long = "cluster", value_name = "NAME", value_delimiter = ',')]
    pub clusters: Vec<String>,
    /// How far back. An actuator with etcd keeps thirty days.
    #[arg(long, value_name = "TIME", default_value = "24h")]
    pub since: humantime::Duration,
    /// Only what failed or was refused.
    #[arg(long)]
    pub refused: bool,
    /// How to print it.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Output,
    /// Who asks.
    #[command(flatten)]
    pub tls: TlsArgs,
}
