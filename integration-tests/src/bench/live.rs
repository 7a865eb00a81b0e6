//! Longshore and the published Karpenter controller live: real control planes, one lab region each,
//! the same manifests.
//!
//! Invariant: whoever is measured does not know it. What it did is read from the cluster, from the
//! region's record of calls and from the API server's audit log, never from its own word.

mod args;
mod cases;
mod contender;
mod figures;
mod recorder;
mod report;
mod results;
mod runs;
mod script;
mod world;

use anyhow::{Result, ensure};
use clap::ValueEnum as _;

pub use args::LiveArgs;
use args::{CaseName, Contender};
use results::Results;

use super::{say, tell};
use crate::parts::binary;

/// Measures what the arguments ask for, and writes the documents.
///
/// # Errors
/// When a part is missing, a document cannot be written, or a run failed.
pub fn live(args: &LiveArgs) -> Result<()> {
    let all = CaseName::value_variants().to_vec();
    let names = if args.cases.is_empty() { all } else { args.cases.clone() };
    let results = if args.rewrite { runs::rewritten(args)? } else { measured(args, &names)? };
    say(&report::tables(&results, report::Pictures::None)?)?;
    let failed = results.runs.iter().filter(|run| run.error.is_some()).count();
    tell(&format!("written: {}", args.out.join(runs::DOCUMENT).display()));
    let (runs, keep) = (results.runs.len(), args.keep.display());
    ensure!(failed == 0, "{failed} of {runs} runs failed; their logs are in {keep}");
    Ok(())
}

fn measured(args: &LiveArgs, names: &[CaseName]) -> Result<Results> {
    ensure_installed(args)?;
    std::fs::create_dir_all(&args.keep)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(runs::all(args, names))
}

/// What is missing is said before minutes have gone by.
fn ensure_installed(args: &LiveArgs) -> Result<()> {
    binary::part_program("etcd", "etcd")?;
    binary::part_program("kubernetes", "kube-apiserver")?;
    for contender in &args.contenders {
        match contender {
            Contender::Longshore => binary::workspace_program("longshore")?,
            Contender::Karpenter => binary::part_program("karpenter", "karpenter")?,
        };
    }
    Ok(())
}
