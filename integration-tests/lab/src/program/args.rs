//! Arguments of `longshore-lab`.
//!
//! Invariant: nothing else reads arguments or the environment; what cannot go together is refused
//! here.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};

use crate::region::CLUSTER;

/// Longest that a machine may take to boot, or to join, in seconds: nobody waits for more.
const WAIT_MAX_S: f64 = 3_600.0;

/// A simulated AWS region for any node autoscaler, with machines that join a Kubernetes cluster.
///
/// Answers EC2, SQS, SSM, EKS, IAM, STS and the price list in AWS's own wire protocols, prints what
/// a client needs to reach it, and runs until it is interrupted. With --kubeconfig or --cluster,
/// each instance that is launched becomes a node: a simulated kubelet reads its user data,
/// registers, and runs pods. At the control port calls are made to fail, capacity and prices are
/// set, and instances are interrupted: `curl $LAB_CONTROL_URL` says how.
#[derive(Clone, Debug, Parser)]
#[command(name = "longshore-lab", version, after_help = EXAMPLES, max_term_width = 100)]
pub struct LabArgs {
    /// Name of the region.
    #[arg(long, default_value = "us-east-1", value_name = "REGION")]
    pub region: String,
    /// Where the region listens; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDRESS")]
    pub listen: SocketAddr,
    /// Where the control port listens; port 0 takes a free one. Whoever reaches it rules the
    /// region.
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDRESS")]
    pub control: SocketAddr,
    /// Name of the cluster: in EKS, in user data of machines that join, of the interruption queue,
    /// and in the tag karpenter.sh/discovery of subnets and security groups.
    #[arg(long, default_value = CLUSTER, value_name = "NAME")]
    pub cluster_name: String,
    /// Kubeconfig of a cluster that runs already; machines join it.
    #[arg(long, value_name = "FILE", conflicts_with = "cluster")]
    pub kubeconfig: Option<PathBuf>,
    /// Run a simulated cluster too, write its kubeconfig here, and let machines join it.
    #[arg(long, value_name = "FILE")]
    pub cluster: Option<PathBuf>,
    /// From a launch to the instance running, in seconds; 0.02 to 0.06 unless given.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub boot: Option<Duration>,
    /// From an instance running to its node being Ready, in seconds; at once unless given.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub join: Option<Duration>,
    /// All delays as met in life: 18 to 35 s to running, 35 s to Ready, half a minute to shut down.
    /// What --boot and --join say comes before it.
    #[arg(long)]
    pub realistic: bool,
    /// Source of ids, delays and price movements: one seed is one run.
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    pub seed: u64,
    /// How to print where everything is.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Output,
}

/// How to print where everything is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// Lines for a shell to source.
    #[default]
    Text,
    /// One line of JSON.
    Json,
}

const EXAMPLES: &str = "\
Examples:
  # a region; any AWS SDK or tool finds it by the environment
  longshore-lab > lab.env &
  . lab.env && aws ec2 describe-instance-types --instance-types m5.large

  # machines join a cluster of yours, 10 s after their launch
  longshore-lab --kubeconfig ~/.kube/config --cluster-name kind --boot 8 --join 2

  # no cluster at hand: a simulated one
  longshore-lab --cluster lab.kubeconfig > lab.env &
  kubectl --kubeconfig lab.kubeconfig get nodes

  # for programs: addresses in one line of JSON, then what can be asked of the control port
  longshore-lab --control 127.0.0.1:7999 --output json
  curl http://127.0.0.1:7999

A controller needs AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY as
printed; signatures are not verified, the key id says which role calls. Node role and instance
profile are KarpenterNodeRole-lab and KarpenterNodeInstanceProfile-lab.";

/// Seconds, also with a fraction.
fn seconds(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no number of seconds from 0 to {WAIT_MAX_S}");
    let seconds: f64 = text.parse().map_err(|_| wrong())?;
    if !(0.0..=WAIT_MAX_S).contains(&seconds) {
        return Err(wrong());
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn parse(line: &str) -> Result<LabArgs, clap::Error> {
        LabArgs::try_parse_from(line.split(' '))
    }

    #[test]
    fn the_arguments_are_consistent() {
        LabArgs::command().debug_assert();
        let args = parse("longshore-lab --boot 8 --join 0.5 --cluster f -o json").unwrap();
        let (boot, join) = (Duration::from_secs(8), Duration::from_millis(500));
        assert_eq!((args.boot, args.join, args.output), (Some(boot), Some(join), Output::Json));
        assert!(parse("longshore-lab --kubeconfig a --cluster b").is_err());
    }

    #[test]
    fn waits_are_bounded_and_say_so() {
        for wrong in ["-1", "3601", "ten", "NaN", "inf"] {
            let refused = parse(&format!("longshore-lab --boot={wrong}")).unwrap_err().to_string();
            assert!(refused.contains("from 0 to 3600"), "{refused}");
        }
    }

    #[test]
    fn the_help_fits_a_hundred_columns_and_has_an_example_of_each_use() {
        let help = LabArgs::command().term_width(100).render_long_help().to_string();
        let long: Vec<&str> = help
            .lines()
            .chain(EXAMPLES.lines())
            .filter(|line| line.chars().count() > 100)
            .collect();
        assert!(long.is_empty(), "{long:#?}");
        let examples: Vec<&str> =
            EXAMPLES.lines().map(str::trim).filter(|it| it.starts_with("longshore-lab")).collect();
        assert_eq!(examples.len(), 4);
        for line in examples {
            let line = line.split(" >").next().unwrap_or_default();
            assert!(parse(line).is_ok(), "{line}");
        }
    }
}
