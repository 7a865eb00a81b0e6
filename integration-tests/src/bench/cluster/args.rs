//! Arguments of `bench cluster`.
//!
//! Invariant: the defaults are the sizes that are published.

use std::path::PathBuf;

use clap::Args;

/// Pods of the settled cluster.
const PODS: u32 = 100_000;
/// Its nodes.
const NODES: u32 = 10_000;
/// Pods that wait when a program starts.
const PENDING: u32 = 50_000;
/// For how long pods are replaced, in seconds.
const SECONDS: u64 = 60;
/// For how long nothing may use the processor in a cluster that is settled, in seconds.
const QUIET: u64 = 15;

/// Measures one large cluster: memory of the watcher that holds it and its processor time while 1 %
/// of the pods are replaced, the time from its start to the scheduler's first plan, and the times
/// from the start of each program to nodes and to a plan for all, while many pods wait.
#[derive(Clone, Debug, Args)]
#[command(after_help = NOTES)]
pub struct ClusterArgs {
    /// Pods of the cluster that is settled; 0 leaves that part out.
    #[arg(long, default_value_t = PODS, value_name = "N")]
    pub pods: u32,
    /// Nodes of that cluster.
    #[arg(long, default_value_t = NODES, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub nodes: u32,
    /// Pods that wait when a program starts; 0 leaves that part out.
    #[arg(long, default_value_t = PENDING, value_name = "N")]
    pub pending: u32,
    /// For how long pods are replaced, in seconds.
    #[arg(long, default_value_t = SECONDS, value_name = "SECONDS",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub seconds: u64,
    /// For how long the watcher has to do nothing before it counts as settled, in seconds.
    #[arg(long, default_value_t = QUIET, value_name = "SECONDS",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub quiet: u64,
    /// Folder for cluster.md.
    #[arg(long, default_value = "docs", value_name = "DIR")]
    pub out: PathBuf,
    /// Folder for the logs of the measured programs; thrown away unless given.
    #[arg(long, value_name = "DIR")]
    pub logs: Option<PathBuf>,
}

const NOTES: &str = "\
The measured programs are those beside this one, each in a process of its own; the API server, the \
region and the kubelets are simulated, in this process. cluster.md is written by a release build at \
the default sizes only. Everything takes 8 GiB.

Examples:
  # does it work? a minute
  bench cluster --pods 500 --nodes 50 --pending 300 --seconds 5 --quiet 2

  # the settled cluster alone
  bench cluster --pending 0";

impl ClusterArgs {
    /// Whether everything is measured as it is published.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.pods == PODS
            && self.nodes == NODES
            && self.pending == PENDING
            && self.seconds == SECONDS
            && self.quiet == QUIET
    }
}
