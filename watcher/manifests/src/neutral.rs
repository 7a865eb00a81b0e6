//! Neutral formats: a catalogue and a workload of bare numbers, for platforms without manifests.
//!
//! Invariant: the numbers go the same way as manifests do; a workload asks one pool without
//! requirements.
//!
//! Catalogue: `[{"Name": "c5.large", "Arch": "amd64", "Cpu": 1930, "Mem": 3114, "Pods": 29,
//! "Price": 0.085}, …]` with allocatable CPU in thousandths, memory in MiB and dollars an hour.
//! Workload: `[[cpu thousandths, memory MiB, count], …]`, or a trace in CSV with a line for each
//! pod.

mod catalogue;
mod demand;
mod trace;

use std::path::Path;

use longshore_watcher::project::quantity::{Rounding, integer};
use serde_json::Number;

use crate::manifest;

pub use catalogue::{Row, ZONES, catalogue, from_rows};
pub use demand::{Demand, POOL, demand, objects, pod_requests};

/// A file of numbers that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be read.
    #[error(transparent)]
    File(#[from] manifest::Error),
    /// It is not of the format.
    #[error("{file}: {text}; {format}")]
    Format {
        /// The file.
        file: String,
        /// What is wrong, with its place.
        text: String,
        /// What is right.
        format: &'static str,
    },
}

impl Error {
    fn format(path: &Path, text: String, format: &'static str) -> Self {
        Self::Format { file: path.display().to_string(), text, format }
    }
}

/// A number of the files in whole units.
fn whole(number: &Number, rounding: Rounding) -> Result<i64, String> {
    integer(&number.to_string(), 1, rounding).map_err(|problem| problem.to_string())
}
