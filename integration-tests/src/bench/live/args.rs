//! Arguments of `bench live`.
//!
//! Invariant: cases and contenders have their names here, and nowhere else.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

/// Measures Longshore and the published Karpenter controller live, by turns, each on a control
/// plane and a region of its own.
#[derive(Clone, Debug, Args)]
#[command(after_help = NOTES)]
pub struct LiveArgs {
    /// What happens to the cluster; everything unless given.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "CASE,…")]
    pub cases: Vec<CaseName>,
    /// Who is measured.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "longshore,karpenter",
        value_name = "NAME,…"
    )]
    pub contenders: Vec<Contender>,
    /// Runs of each contender in each case, tables show medians; one, whatever is said here, of
    /// cases that take minutes and differ little (from `rollout` on).
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: u32,
    /// Folder for README.md, a chart of each case, and runs.json with the figures of every run.
    #[arg(long, default_value = "docs/live", value_name = "DIR")]
    pub out: PathBuf,
    /// Folder for the logs and the timeline of each run.
    #[arg(long, default_value = "target/live", value_name = "DIR")]
    pub keep: PathBuf,
    /// Measure no run again that is in one of these folders already, of this commit on this
    /// machine, and did not fail.
    #[arg(long)]
    pub resume: bool,
    /// Measure nothing: write the documents anew from the runs in both folders.
    #[arg(long, conflicts_with = "resume")]
    pub rewrite: bool,
}

const NOTES: &str = "\
Needs the parts etcd, kubernetes and karpenter (tools/setup.sh), and the program longshore beside this \
one; `make peer-live` sees to both. A run takes one to twelve minutes and half a GiB besides what it \
measures. Documents are written anew after each run, from all that was measured, other cases at \
earlier commits and on other machines, too, and name commit and machine of each. Figures are worth something \
on a machine that does nothing else.

Examples:
  # do both work? two minutes
  bench live --cases one --runs 1 --out target/try --keep target/try

  # go on where it was interrupted
  bench live --resume

  # the same figures with other words
  bench live --rewrite

  # one case anew, among the others as they were
  bench live --cases two-thousand";

/// A case, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum CaseName {
    /// One small pod.
    One,
    /// A hundred small pods at once.
    Hundred,
    /// The same hundred, dripping over ten seconds.
    Drip,
    /// Two thousand small pods on types of two to four vCPUs.
    TwoThousand,
    /// The same two thousand again, on nodes that are there and stay.
    TwoThousandThere,
    /// The walkthrough W2: 4, then 100, then 4 pods.
    W2,
    /// The same with the pool of deploy/examples/w2-v1.
    W2Example,
    /// Karpenter's basic performance case: a thousand pods of two sizes, then seven hundred.
    PerfBasic,
    /// Five thousand pods with spreads, anti-affinity and disruption budgets.
    Mixed,
    /// Three in ten of sixty spot instances interrupted at once.
    Storm,
    /// A rolling update of five hundred pods.
    Rolling,
    /// Hundreds of pods of many sizes, left alone where all nodes may go as soon as that pays.
    Settle,
    /// Another image for forty nodes, a tenth at a time, pods away one at a time.
    Rollout,
    /// Twenty nodes that reach the age at which they expire.
    Expiry,
    /// Twenty NodeClaims deleted while something keeps each of their nodes.
    Blocked,
    /// One of ten nodes whose network has been broken for an hour.
    Repair,
    /// Nodes that never register.
    Unregistered,
}

impl CaseName {
    /// Whether nodes have to go in it, or never come: minutes that are ruled by waits of fixed
    /// length, and differ by a few per cent.
    #[must_use]
    pub const fn is_upkeep(self) -> bool {
        matches!(
            self,
            Self::Rollout | Self::Expiry | Self::Blocked | Self::Repair | Self::Unregistered
        )
    }

    /// The name as the argument has it.
    #[must_use]
    pub fn text(self) -> String {
        spelled(&self)
    }
}

/// Who is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Contender {
    /// `longshore up`, as it is built beside this program.
    Longshore,
    /// The published Karpenter controller, the part `karpenter`.
    Karpenter,
}

impl Contender {
    /// The name as the argument has it.
    #[must_use]
    pub fn text(self) -> String {
        spelled(&self)
    }
}

fn spelled(value: &impl ValueEnum) -> String {
    let possible = value.to_possible_value();
    possible.map(|possible| possible.get_name().to_owned()).unwrap_or_default()
}
