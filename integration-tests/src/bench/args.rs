//! Arguments of the bench.
//!
//! Invariant: nothing else of the bench reads arguments.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use longshore_proto::planning::v1::Effort as WireEffort;

use super::catalogues::DaemonSet;
use super::cluster::ClusterArgs;
use super::latency::Case;
use super::live::LiveArgs;
use super::reach::ReachArgs;

/// Measures Longshore's planner, and Karpenter's scheduler on the same files.
#[derive(Clone, Debug, Parser)]
#[command(name = "bench", after_help = FORMATS)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const FORMATS: &str = "\
Formats:
  catalogue  [{\"Name\", \"Arch\", \"Cpu\" in thousandths, \"Mem\" in MiB, \"Pods\", \"Price\" in dollars an
             hour}, …], allocatable, sold on demand in three zones at one price
  workload   [[CPU in thousandths, memory in MiB, count], …], plain pods; or a trace in CSV with the
             columns cpu_milli and memory_mib and a line for each pod. GPUs of a trace are ignored,
             as such a catalogue has none.";

/// What to do.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Plan, and say what it took and what the plan costs.
    Pack(PackArgs),
    /// Let the peer plan the same files, judge its plan by our check, and say the same.
    Peer(PackArgs),
    /// Measure one of the cases that make their own world.
    Latency {
        /// Which.
        case: Case,
    },
    /// Write the files of the named workloads into a folder, to feed them to whatever else.
    Files {
        /// The folder; made when it is not there.
        dir: PathBuf,
    },
    /// Let both plan small clusters with many constraints; fails where ours does worse for no named
    /// reason.
    Differ(DifferArgs),
    /// Carry out the plans of small clusters with many constraints on a real control plane, and say
    /// which pods kube-scheduler binds where they are planned.
    Agree(AgreeArgs),
    /// Measure how far the services reach: many clusters, floods, deaths, interruptions.
    Reach(ReachArgs),
    /// Measure one large cluster: memory, processor time, and starts with many pods waiting.
    Cluster(ClusterArgs),
    /// Measure Longshore and the published Karpenter controller live, in turn, on the same kind of
    /// cluster.
    Live(LiveArgs),
    /// Measure everything about plans, both sides by turns, and write the tables and the chart.
    All(AllArgs),
}

/// A pair of files, and how to plan them.
#[derive(Clone, Debug, clap::Args)]
pub struct PackArgs {
    /// Instance types.
    #[arg(long, value_name = "FILE")]
    pub catalogue: PathBuf,
    /// Pods as bare numbers.
    #[arg(long, value_name = "FILE", required_unless_present = "files")]
    pub workload: Option<PathBuf>,
    /// Pods, pools and nodes as manifests, instead of a workload.
    #[arg(short, long = "filename", value_name = "FILE", conflicts_with = "workload")]
    pub files: Vec<PathBuf>,
    /// Leave out types with more allocatable CPU, in thousandths of a core.
    #[arg(long, value_name = "N")]
    pub max_cpu_milli: Option<i64>,
    /// A DaemonSet on every node: thousandths of a core and MiB that its pod requests.
    #[arg(long, value_name = "CPU_MILLI,MEM_MIB", value_parser = daemon_set)]
    pub daemonset: Option<DaemonSet>,
    /// How hard to try; the peer knows no such thing.
    #[arg(long, value_enum, default_value_t)]
    pub effort: Effort,
    /// How to print the answer.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Output,
    /// Also list what the check finds wrong, on standard error.
    #[arg(long)]
    pub list_violations: bool,
}

/// Arguments of `all`.
#[derive(Clone, Debug, clap::Args)]
pub struct AllArgs {
    /// Fewer and shorter runs; the peer is not asked where it takes minutes.
    #[arg(long)]
    pub quick: bool,
    /// Folder for benchmarks.md and benchmarks.svg.
    #[arg(long, default_value = "docs", value_name = "DIR")]
    pub out: PathBuf,
}

/// Arguments of `differ`.
#[derive(Clone, Debug, clap::Args)]
pub struct DifferArgs {
    /// Seeds of the clusters, from the first to before the last.
    #[arg(long, default_value = "0..100", value_name = "A..B", value_parser = seeds)]
    pub seeds: Seeds,
    /// Folder for the catalogue and for the clusters on which ours does worse.
    #[arg(long, default_value = "target/differ", value_name = "DIR")]
    pub dir: PathBuf,
}

/// Seeds from the first to before the last.
pub type Seeds = std::ops::Range<u64>;

/// Arguments of `agree`.
#[derive(Clone, Debug, clap::Args)]
pub struct AgreeArgs {
    /// Seeds of the clusters, from the first to before the last.
    #[arg(long, default_value = "0..300", value_name = "A..B", value_parser = seeds)]
    pub seeds: Seeds,
    /// Leave out the runs in which pods are only nominated, and left alone.
    #[arg(long)]
    pub pinned_only: bool,
    /// Buy any candidate of a launch, by the seed, instead of the cheapest.
    #[arg(long)]
    pub any_candidate: bool,
}

/// How hard the planner tries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Effort {
    /// First good plan.
    Greedy,
    /// A plan worth launching.
    #[default]
    Default,
    /// The best plan there is.
    Max,
}

impl Effort {
    /// Name as the argument has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Greedy => "greedy",
            Self::Default => "default",
            Self::Max => "max",
        }
    }

    /// The same on the wire.
    #[must_use]
    pub const fn to_wire(self) -> WireEffort {
        match self {
            Self::Greedy => WireEffort::Greedy,
            Self::Default => WireEffort::Default,
            Self::Max => WireEffort::Max,
        }
    }
}

/// How to print an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// One object on one line.
    #[default]
    Json,
}

fn daemon_set(text: &str) -> Result<DaemonSet, String> {
    let wrong = || format!("{text:?} is not CPU_MILLI,MEM_MIB, such as 500,1024");
    let (cpu, memory) = text.split_once(',').ok_or_else(wrong)?;
    let number = |text: &str| text.parse().ok().filter(|n| *n >= 0).ok_or_else(wrong);
    Ok(DaemonSet { cpu_millis: number(cpu)?, memory_mib: number(memory)? })
}

fn seeds(text: &str) -> Result<Seeds, String> {
    let wrong = || format!("{text:?} is not A..B with A before B, such as 0..1000");
    let (first, end) = text.split_once("..").ok_or_else(wrong)?;
    let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
    let seeds = number(first)?..number(end)?;
    if seeds.is_empty() { Err(wrong()) } else { Ok(seeds) }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Args::command().debug_assert();
        let parse = |line: &str| Args::try_parse_from(line.split(' '));
        assert!(parse("bench pack --catalogue a --workload b --output json").is_ok());
        assert!(parse("bench pack --catalogue a -f b --effort max").is_ok());
        assert!(parse("bench reach flood --rpc compute-plan --seconds 5 --output json").is_ok());
        assert!(
            parse("bench live --cases one,two-thousand --contenders karpenter --runs 1").is_ok()
        );
        assert!(parse("bench live --cases none").is_err() && parse("bench live --runs 0").is_err());
        assert!(parse("bench cluster --pods 500 --nodes 50 --pending 0 --seconds 5").is_ok());
        assert!(parse("bench cluster --nodes 0").is_err());
        assert!(parse("bench reach").is_err());
        assert!(parse("bench pack --catalogue a").is_err());
        assert!(parse("bench pack --catalogue a --workload b --daemonset 500").is_err());
    }

    #[test]
    fn seeds_are_a_range() {
        assert_eq!(seeds("5..7"), Ok(5..7));
        for wrong in ["", "5", "7..5", "5..5", "a..b"] {
            assert!(seeds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_daemon_set_is_two_numbers() {
        let found = daemon_set("500,1024");
        assert_eq!(found, Ok(DaemonSet { cpu_millis: 500, memory_mib: 1024 }));
        assert!(daemon_set("500").is_err() && daemon_set("-1,2").is_err());
    }
}
