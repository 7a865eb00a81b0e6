//! What is asked of the simulation.
//!
//! Invariant: each command teaches what it is for in its help.

use std::ops::Range;
use std::str::FromStr;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

use crate::faults::names;

/// The whole system in one thread, from a seed: real watchers, schedulers and actuators over a
/// simulated network, region and cluster, with faults.
#[derive(Debug, Parser)]
#[command(name = "longshore-sim", version)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Runs seeds, each in a process of its own, and says which broke a rule.
    Run {
        /// Seeds, from..to; the second is not among them.
        #[arg(long, default_value = "0..20")]
        seeds: Seeds,
        /// How it runs.
        #[command(flatten)]
        how: How,
        /// Form of the report.
        #[arg(long, value_enum, default_value_t)]
        output: Output,
        /// Processes at a time; as many as there are processors unless given.
        #[arg(long)]
        jobs: Option<usize>,
        /// Stop beginning new seeds after this many seconds.
        #[arg(long, value_name = "SECONDS")]
        within: Option<u64>,
    },
    /// Runs one seed and prints its journal.
    Replay {
        /// Seed.
        #[arg(long)]
        seed: u64,
        /// How it runs.
        #[command(flatten)]
        how: How,
    },
    /// Leaves out faults of a seed for as long as the same rule is broken, and prints what is left.
    Shrink {
        /// Seed.
        #[arg(long)]
        seed: u64,
        /// How it runs.
        #[command(flatten)]
        how: How,
    },
    /// Plants each defect that once was, where it shows soonest, and says which seed finds it
    /// first.
    Planted {
        /// Most seeds to try for each.
        #[arg(long, default_value_t = 200)]
        within: u64,
        /// Only these; all unless given.
        #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
        only: Vec<String>,
        /// Form of the report.
        #[arg(long, value_enum, default_value_t)]
        output: Output,
        /// Processes at a time; as many as there are processors unless given.
        #[arg(long)]
        jobs: Option<usize>,
        /// Run the tests of those that a test finds, instead of the simulation: each green as it is
        /// and red with the defect. Builds them from the sources that this program was built from.
        #[arg(long)]
        tests: bool,
    },
    /// Runs one seed and prints its outcome as JSON; what `run` starts for each seed.
    #[command(hide = true)]
    One {
        /// Seed.
        #[arg(long)]
        seed: u64,
        /// How it runs.
        #[command(flatten)]
        how: How,
    },
}

/// How a seed is run.
#[derive(Clone, Debug, ClapArgs)]
pub struct How {
    /// Simulated minutes with users and faults; the world is given five more to come to rest.
    #[arg(long, default_value_t = 30)]
    pub minutes: u64,
    /// Clusters: the first two share an account and a region, unless each is alone; the third has
    /// the name of the first.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=3))]
    pub clusters: u8,
    /// Pods of each cluster at the beginning.
    #[arg(long, default_value_t = 150)]
    pub pods: u64,
    /// Leave out the faults of these numbers.
    #[arg(long, value_delimiter = ',', value_name = "NUMBER,…")]
    pub skip: Vec<usize>,
    /// Draw only from faults of these names, more often and from the beginning.
    #[arg(long, value_delimiter = ',', value_name = "NAME,…", value_parser = fault)]
    pub faults: Vec<String>,
    /// Let no fault happen.
    #[arg(long)]
    pub calm: bool,
    /// Let users deploy 200 to 1,000 pods in the first minute, in one cluster whose pool
    /// consolidates at once (consolidateAfter 0s, budget 100 %), and then only look on: says what
    /// was moved, and that nothing moves in the second half. No fault happens but those that
    /// `--faults` names.
    #[arg(long)]
    pub settling: bool,
    /// Run for each cluster what `longshore up` starts, watcher, scheduler and actuator in one
    /// process, in place of services of their own and etcd; each cluster has an account to itself.
    #[arg(long)]
    pub standalone: bool,
    /// Commit these defects again.
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    pub plant: Vec<String>,
}

impl How {
    /// True when no fault is to happen: so it was said, or something else is looked at.
    #[must_use]
    pub const fn is_calm(&self) -> bool {
        self.calm || self.settling && self.faults.is_empty()
    }

    /// The same as arguments of a child process.
    #[must_use]
    pub fn to_arguments(&self) -> Vec<String> {
        let sizes = [
            ("--minutes", self.minutes),
            ("--clusters", u64::from(self.clusters)),
            ("--pods", self.pods),
        ];
        let mut arguments: Vec<String> = sizes
            .iter()
            .flat_map(|(name, value)| [(*name).to_owned(), value.to_string()])
            .collect();
        if !self.skip.is_empty() {
            let skip: Vec<String> = self.skip.iter().map(ToString::to_string).collect();
            arguments.extend(["--skip".to_owned(), skip.join(",")]);
        }
        if !self.faults.is_empty() {
            arguments.extend(["--faults".to_owned(), self.faults.join(",")]);
        }
        if self.calm {
            arguments.push("--calm".to_owned());
        }
        if self.settling {
            arguments.push("--settling".to_owned());
        }
        if self.standalone {
            arguments.push("--standalone".to_owned());
        }
        if !self.plant.is_empty() {
            arguments.extend(["--plant".to_owned(), self.plant.join(",")]);
        }
        arguments
    }
}

/// Form of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// A line for each seed.
    #[default]
    Text,
    /// One document.
    Json,
}

/// A range of seeds.
#[derive(Clone, Debug)]
pub struct Seeds(pub Range<u64>);

fn fault(name: &str) -> Result<String, String> {
    let known = names().any(|known| known == name);
    let all = || names().collect::<Vec<_>>().join(", ");
    known
        .then(|| name.to_owned())
        .ok_or_else(|| format!("no fault has this name; there are {}", all()))
}

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no range of seeds; write for example 0..200");
        let (from, to) = text.split_once("..").ok_or_else(wrong)?;
        let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
        let (from, to) = (number(from)?, number(to)?);
        if from < to { Ok(Self(from..to)) } else { Err(wrong()) }
    }
}
