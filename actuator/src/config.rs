//! Arguments, and the configuration they amount to.
//!
//! Invariant: everything is checked here, before anything binds or connects.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::ensure;
use clap::{Args as ClapArgs, Parser};
use longshore_runtime::process::ProcessArgs;
use longshore_runtime::server::AccessArgs;

use crate::etcd::EtcdArgs;
use crate::policy::PolicyArgs;

/// Longest wait between two listings while nothing is on its way up or down.
const CALM_FACTOR: u32 = 6;

/// The regional actuator: buys what plans ask for, and tells what there is to buy.
#[derive(Clone, Debug, Parser)]
#[command(name = "longshore-actuator", version)]
pub struct Args {
    /// What it does.
    #[command(flatten)]
    pub actuator: ActuatorArgs,
    /// Whom it answers.
    #[command(flatten)]
    pub access: AccessArgs,
    /// What every process is told.
    #[command(flatten)]
    pub process: ProcessArgs,
}

/// Arguments of the actuator itself.
#[derive(Clone, Debug, ClapArgs)]
pub struct ActuatorArgs {
    /// Region to act in.
    #[arg(long, env = "LONGSHORE_REGION")]
    pub region: String,
    /// Address to serve gRPC on; port 0 takes a free one and logs it.
    #[arg(long, env = "LONGSHORE_LISTEN", default_value = "127.0.0.1:7402")]
    pub listen: SocketAddr,
    /// Address to serve metrics and health on; none when absent.
    #[arg(long, env = "LONGSHORE_METRICS_LISTEN")]
    pub metrics_listen: Option<SocketAddr>,
    /// Where the ledger is, and the election.
    #[command(flatten)]
    pub etcd: EtcdArgs,
    /// What each cluster may have.
    #[command(flatten)]
    pub policy: PolicyArgs,
    /// Address that a standby sends clients to; the listening address when absent.
    #[arg(long, env = "LONGSHORE_ADVERTISE", value_name = "URL")]
    pub advertise: Option<String>,
    /// Life of the leader's lease in seconds, at least 2: the longest gap after a crash.
    #[arg(long, env = "LONGSHORE_LEASE_SECONDS", default_value_t = 3)]
    pub lease_seconds: u32,
    /// Interruption queue to read besides those that clusters name.
    #[arg(long, env = "LONGSHORE_INTERRUPTION_QUEUE", value_name = "NAME")]
    pub interruption_queue: Option<String>,
    /// Time between two listings of instances while any is starting or ending; six times that
    /// otherwise.
    #[arg(long, env = "LONGSHORE_INVENTORY_INTERVAL", default_value = "5s")]
    pub inventory_interval: humantime::Duration,
}

/// A checked configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// Region.
    pub region: String,
    /// Address to serve gRPC on.
    pub listen: SocketAddr,
    /// Address to serve metrics and health on.
    pub metrics_listen: Option<SocketAddr>,
    /// Where the ledger is, and the election; without an etcd it is alone.
    pub etcd: EtcdArgs,
    /// Address that others are sent to.
    pub advertise: Option<String>,
    /// Life of the leader's lease in seconds.
    pub lease_seconds: u32,
    /// Whom it answers.
    pub access: AccessArgs,
    /// What each cluster may have.
    pub policy: PolicyArgs,
    /// Intervals and the like.
    pub tuning: Tuning,
}

/// What only changes how, not what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Time between two listings while instances start or end.
    pub inventory_interval: Duration,
    /// Interruption queue to read besides those that clusters name.
    pub interruption_queue: Option<String>,
    /// Which launches that are alike go to EC2 in one call.
    pub sharing: Sharing,
}

/// Which launches may go to EC2 in one call. Whoever has lost the ledger knows the instances of a
/// shared call by that call alone, and not whose each of them is; nor whether a launch was asked
/// for before, by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// None: the ledger is lost with the process.
    None,
    /// Those of sessions that began in this process: what was asked for in company outlives it, all
    /// else is lost.
    Fresh,
    /// All: the ledger outlives the process.
    All,
}

impl Tuning {
    /// Time to wait before the next listing.
    #[must_use]
    pub fn inventory_wait(&self, restless: bool) -> Duration {
        if restless { self.inventory_interval } else { self.inventory_interval * CALM_FACTOR }
    }
}

impl TryFrom<Args> for Config {
    type Error = anyhow::Error;

    fn try_from(args: Args) -> anyhow::Result<Self> {
        let Args { actuator: args, access, process: ProcessArgs { tls, .. } } = args;
        ensure!(
            is_region(&args.region),
            "--region {:?} is not a region's name; write for example us-east-1, without a zone's letter",
            args.region
        );
        ensure!(args.lease_seconds >= 2, "--lease-seconds must be at least 2, etcd's minimum");
        tls.check_listen("--listen", args.listen)?;
        args.etcd.check(tls.allow_plaintext)?;
        if let Some(advertise) = &args.advertise {
            tls.check_endpoint("--advertise", advertise)?;
        }
        let inventory_interval: Duration = args.inventory_interval.into();
        ensure!(!inventory_interval.is_zero(), "--inventory-interval must not be zero");
        let sharing = if args.etcd.is_given() { Sharing::All } else { Sharing::None };
        let tuning =
            Tuning { inventory_interval, interruption_queue: args.interruption_queue, sharing };
        Ok(Self {
            region: args.region,
            listen: args.listen,
            metrics_listen: args.metrics_listen,
            etcd: args.etcd,
            advertise: args.advertise,
            lease_seconds: args.lease_seconds,
            access,
            policy: args.policy,
            tuning,
        })
    }
}

/// Whether a name has the form of a region's: words and a number, joined by dashes.
fn is_region(name: &str) -> bool {
    let Some((words, number)) = name.rsplit_once('-') else { return false };
    let word = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
    let mut parts = words.split('-');
    parts.clone().count() >= 2
        && parts.all(word)
        && !number.is_empty()
        && number.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> anyhow::Result<Config> {
        let arguments = ["longshore-actuator", "--region", "us-east-1"].iter().chain(arguments);
        Config::try_from(Args::try_parse_from(arguments)?)
    }

    #[test]
    fn a_region_is_not_a_zone() {
        for region in ["us-east-1", "us-gov-west-1", "ap-northeast-2", "us-iso-east-12"] {
            assert!(is_region(region), "{region}");
        }
        for wrong in ["", "us-east-1a", "US-East-1", "us-east", "useast1", "us-1", "us--1"] {
            assert!(!is_region(wrong), "{wrong}");
        }
    }

    #[test]
    fn arguments_are_checked() {
        let near = "http://127.0.0.1:1,http://127.0.0.1:2";
        let config = parse(&["--etcd-endpoints", near]).unwrap();
        assert_eq!(config.etcd.endpoints.len(), 2);
        assert_eq!(config.tuning.inventory_wait(false), Duration::from_secs(30));
        for wrong in [
            ["--etcd-endpoints", "a:1"],
            ["--etcd-endpoints", "http://a:1"],
            ["--etcd-user", "longshore"],
            ["--listen", "0.0.0.0:7402"],
            ["--advertise", "http://a:7402"],
            ["--lease-seconds", "1"],
            ["--inventory-interval", "0s"],
            ["--listen", "nowhere"],
        ] {
            assert!(parse(&wrong).is_err(), "{wrong:?}");
        }
    }
}
