//! Arguments of `bench reach`.
//!
//! Invariant: sizes stand here with the defaults by which the promises are given.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::cluster::Size;
use super::payload::Rpc;

/// Measures how far the services reach: many clusters, floods, deaths, interruptions.
#[derive(Clone, Debug, Args)]
#[command(after_help = NOTES)]
pub struct ReachArgs {
    /// What to measure.
    #[command(subcommand)]
    pub what: What,
    /// How to print the answer.
    #[arg(short, long, value_enum, default_value_t, global = true)]
    pub output: ReachOutput,
}

const NOTES: &str = "\
The measured services are the programs beside this one, each started anew; clusters are \
watchers by hand that speak the real protocol. Exits with 1 when a promise does not \
hold.";

/// What to measure.
#[derive(Clone, Debug, Subcommand)]
pub enum What {
    /// fairness, flood, failover, interruption and encryption, one after the other, in one table.
    All,
    /// Plan times of many clusters on one scheduler while one flaps, one is flooded with changes
    /// and a client asks without end; over the same without, by turns.
    Fairness(FairnessArgs),
    /// Memory of scheduler and actuator, and whether they answer, while a client sends all it can,
    /// to one RPC after the other.
    Flood(FloodArgs),
    /// Time from the kill of one of two schedulers until every cluster has plans again.
    Failover(FailoverArgs),
    /// Time from an interruption's message in the queue to the taint on its node, while many nodes
    /// join.
    Interruption(InterruptionArgs),
    /// Times of plans and of sessions between ends that prove who they are, over those in plain
    /// text, by turns.
    Encryption(EncryptionArgs),
    /// Run the walkthrough W2 beside busy loops, and count the runs in which it holds.
    Busy(BusyArgs),
    /// Make the trouble of `fairness`, until killed.
    #[command(hide = true)]
    Trouble(TroubleArgs),
    /// Send all it can to one RPC, for `flood`.
    #[command(hide = true)]
    Send(SendArgs),
    /// Do nothing, busily, until killed.
    #[command(hide = true)]
    Spin,
}

/// How many clusters there are, and how large they are.
#[derive(Clone, Debug, Args)]
pub struct SizeArgs {
    /// Number of clusters.
    #[arg(long, default_value_t = 100)]
    pub clusters: u32,
    /// Nodes of each.
    #[arg(long, default_value_t = 100)]
    pub nodes: u32,
    /// Pods that run on each node.
    #[arg(long, default_value_t = 10)]
    pub pods_each: u32,
}

impl SizeArgs {
    /// Size of each cluster.
    #[must_use]
    pub const fn each(&self) -> Size {
        Size { nodes: self.nodes, pods_each: self.pods_each }
    }

    /// The same as flags of a child.
    #[must_use]
    pub fn flags(&self) -> Vec<String> {
        let Self { clusters, nodes, pods_each } = self;
        let flag = |name: &str, value: &u32| format!("--{name}={value}");
        vec![flag("clusters", clusters), flag("nodes", nodes), flag("pods-each", pods_each)]
    }
}

/// Arguments of `fairness`.
#[derive(Clone, Debug, Args)]
pub struct FairnessArgs {
    /// The clusters.
    #[command(flatten)]
    pub size: SizeArgs,
    /// Seconds between two pods of a cluster.
    #[arg(long, default_value_t = 4.0)]
    pub interval: f64,
    /// Pairs of blocks, one without and one with trouble.
    #[arg(long, default_value_t = 8)]
    pub blocks: u32,
    /// Seconds of a block that count.
    #[arg(long, default_value_t = 12.0)]
    pub seconds: f64,
}

/// Arguments of `encryption`.
#[derive(Clone, Copy, Debug, Args)]
pub struct EncryptionArgs {
    /// Nodes of the cluster.
    #[arg(long, default_value_t = 100)]
    pub nodes: u32,
    /// Pods that run on each node.
    #[arg(long, default_value_t = 50)]
    pub pods_each: u32,
    /// Plans of each side.
    #[arg(long, default_value_t = 400)]
    pub plans: u32,
    /// Sessions of each side.
    #[arg(long, default_value_t = 60)]
    pub sessions: u32,
}

/// Arguments of `trouble`.
#[derive(Clone, Debug, Args)]
pub struct TroubleArgs {
    /// URL of the scheduler.
    #[arg(long)]
    pub scheduler: String,
    /// The clusters.
    #[command(flatten)]
    pub size: SizeArgs,
}

/// Arguments of `flood`.
#[derive(Clone, Debug, Args)]
pub struct FloodArgs {
    /// Seconds of each flood.
    #[arg(long, default_value_t = 20)]
    pub seconds: u64,
    /// Connections of the flooding client.
    #[arg(long, default_value_t = 32)]
    pub connections: u32,
    /// Streams on each connection.
    #[arg(long, default_value_t = 32)]
    pub streams: u32,
    /// Only this RPC; all of them unless given.
    #[arg(long, value_enum)]
    pub rpc: Option<Rpc>,
}

/// Arguments of `send`.
#[derive(Clone, Debug, Args)]
pub struct SendArgs {
    /// URL of the service.
    #[arg(long)]
    pub url: String,
    /// What to flood, and how.
    #[command(flatten)]
    pub flood: FloodArgs,
}

/// Arguments of `failover`.
#[derive(Clone, Debug, Args)]
pub struct FailoverArgs {
    /// The clusters.
    #[command(flatten)]
    pub size: SizeArgs,
    /// How often a scheduler is killed, each time of a new pair.
    #[arg(long, default_value_t = 3)]
    pub runs: u32,
}

/// Arguments of `interruption`.
#[derive(Clone, Debug, Args)]
pub struct InterruptionArgs {
    /// Interruptions that are measured.
    #[arg(long, default_value_t = 100)]
    pub interruptions: u32,
    /// Nodes that join meanwhile.
    #[arg(long, default_value_t = 200)]
    pub joining: u32,
    /// Folder for the logs; none are kept unless given.
    #[arg(long, value_name = "DIR")]
    pub logs: Option<PathBuf>,
}

/// Arguments of `busy`.
#[derive(Clone, Debug, Args)]
pub struct BusyArgs {
    /// Busy loops beside it.
    #[arg(long, default_value_t = 8)]
    pub loops: u32,
    /// Runs of the walkthrough.
    #[arg(long, default_value_t = 20)]
    pub runs: u32,
}

/// How to print an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ReachOutput {
    /// A table in Markdown.
    #[default]
    Table,
    /// One array on one line.
    Json,
}
