//! The named workloads, as files that both sides read.
//!
//! Invariant: a name stands for one content: generators are seeded, and nothing else goes into
//! them.

mod diverse;
mod plain;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use longshore_manifests::neutral::Demand;
use serde_json::Value;

use super::catalogues::Pool;

pub use plain::{classes, generic};

/// Pods of a workload.
#[derive(Clone, Debug)]
pub enum Content {
    /// Plain ones.
    Rows(Vec<Demand>),
    /// Ones with constraints, with their NodePool.
    Manifests(Value),
}

/// All names, in the order of the tables.
pub const NAMES: [&str; 20] = [
    "seed-4",
    "seed-100",
    "basic",
    "wide",
    "generic-1000",
    "generic-5000",
    "generic-20000",
    "generic-100000",
    "classes-100",
    "distinct-20000",
    "third",
    "generic-30000",
    "poison",
    "diverse-1",
    "diverse-50",
    "diverse-100",
    "diverse-500",
    "diverse-1000",
    "diverse-5000",
    "diverse-20000",
];

/// A workload by its name; the number at the end is that of its pods, or of its classes.
///
/// # Errors
/// When there is none of that name.
pub fn named(name: &str) -> Result<Content> {
    let (kind, number) = name.rsplit_once('-').unwrap_or((name, "0"));
    let number: u32 = number.parse()?;
    Ok(match kind {
        "seed" => Content::Rows(plain::seed_scale(number)),
        "basic" => Content::Rows(plain::basic()),
        "wide" => Content::Rows(plain::wide()),
        "generic" => Content::Rows(generic(number)),
        "classes" => Content::Rows(classes(number, 100, 0)),
        "distinct" => Content::Rows(plain::distinct(number)),
        "third" => Content::Rows(plain::third()),
        "poison" => Content::Rows(plain::poison()),
        "diverse" => Content::Manifests(diverse::list(number)),
        _ => bail!("no workload is called {name}; there are: {}", NAMES.join(", ")),
    })
}

/// Writes a workload into a folder and gives its path.
///
/// # Errors
/// When there is none of that name, or the file cannot be written.
pub fn write(name: &str, dir: &Path) -> Result<PathBuf> {
    let content = match named(name)? {
        Content::Rows(rows) => serde_json::to_value(rows.iter().map(triple).collect::<Vec<_>>())?,
        Content::Manifests(list) => list,
    };
    let path = dir.join(format!("{name}.json"));
    std::fs::write(&path, content.to_string() + "\n")?;
    Ok(path)
}

fn triple(row: &Demand) -> (i64, i64, u32) {
    (row.cpu_millis, row.memory_mib, row.count)
}

/// Writes the catalogue of a pool into a folder and gives its path.
///
/// # Errors
/// When the facts cannot be read or the file cannot be written.
pub fn write_catalogue(pool: Pool, dir: &Path) -> Result<PathBuf> {
    let path = dir.join(pool.file());
    std::fs::write(&path, serde_json::to_string(&pool.rows()?)? + "\n")?;
    Ok(path)
}

/// Writes all workloads and catalogues into a folder.
///
/// # Errors
/// When a file cannot be written.
pub fn write_all(dir: &Path) -> Result<()> {
    std::fs::create_dir_all(dir)?;
    for pool in [Pool::Cmr, Pool::Linear] {
        write_catalogue(pool, dir)?;
    }
    NAMES.into_iter().try_for_each(|name| write(name, dir).map(drop))
}

#[cfg(test)]
mod tests;
