//! Pods as bare numbers, and what they ask of one pool without requirements.
//!
//! Invariant: pods of one row are alike and belong together; a row of no pods asks for nothing.

use std::path::Path;

use longshore_proto::types::v1::object::Kind;
use longshore_proto::types::v1::{NodePool, Object, PodCount, PodShape, Resources};
use longshore_watcher::project::quantity::Rounding;
use serde_json::Number;

use super::{Error, trace, whole};
use crate::manifest;

/// Name of the one pool.
pub const POOL: &str = "catalogue";

const FORMAT: &str = "a workload is [[CPU in thousandths, memory in MiB, count], …], each zero or \
                      more, or a trace in CSV with the columns cpu_milli and memory_mib; \
                      manifests are given with --filename";

/// Pods of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Demand {
    /// CPU that each requests, in thousandths of a core.
    pub cpu_millis: i64,
    /// Memory that each requests, in MiB.
    pub memory_mib: i64,
    /// How many there are.
    pub count: u32,
}

/// The rows of a workload file: JSON, or CSV by its ending or its first line.
///
/// # Errors
/// When the file cannot be read or a number is negative.
pub fn demand(path: &Path) -> Result<Vec<Demand>, Error> {
    let text = manifest::text(path)?;
    let ends_csv = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("csv"));
    if ends_csv || !text.trim_start().starts_with('[') {
        return trace::demand(&text).map_err(|text| Error::format(path, text, FORMAT));
    }
    let rows: Vec<(Number, Number, u32)> = serde_json::from_str(&text)
        .map_err(|error| Error::format(path, error.to_string(), FORMAT))?;
    let rows = rows.iter().enumerate().map(|(n, (cpu, memory, count))| {
        let wrong = |text| Error::format(path, format!("[{n}]: {text}"), FORMAT);
        let cpu_millis = whole(cpu, Rounding::Up).map_err(wrong)?;
        let memory_mib = whole(memory, Rounding::Up).map_err(wrong)?;
        Ok(Demand { cpu_millis, memory_mib, count: *count })
    });
    rows.collect()
}

/// What a workload asks of the one pool: objects and counts.
#[must_use]
pub fn objects(demand: &[Demand]) -> (Vec<Object>, Vec<PodCount>) {
    let pool = NodePool { name: POOL.to_owned(), ..NodePool::default() };
    let mut objects = vec![Object { kind: Some(Kind::NodePool(pool)) }];
    let mut counts = Vec::new();
    for (n, row) in demand.iter().enumerate().filter(|(_, row)| row.count > 0) {
        let shape_id = format!("{n:06}");
        objects.push(Object {
            kind: Some(Kind::PodShape(PodShape {
                shape_id: shape_id.clone(),
                namespace: "default".to_owned(),
                owner: format!("Row/{n}"),
                requests: Some(pod_requests(row.cpu_millis, row.memory_mib)),
                ..PodShape::default()
            })),
        });
        counts.push(PodCount { shape_id, count: row.count });
    }
    (objects, counts)
}

/// Requests of one pod.
#[must_use]
pub fn pod_requests(cpu_millis: i64, memory_mib: i64) -> Resources {
    let memory_bytes = memory_mib.saturating_mul(1 << 20);
    Resources { cpu_millis, memory_bytes, pods: 1, ..Resources::default() }
}
