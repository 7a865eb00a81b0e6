//! Neutral formats: a catalogue and a workload of bare numbers, for platforms without manifests.
//!
//! Invariant: the numbers go the same way as manifests do, as one pool without requirements.
//!
//! Catalogue: `[{"Name": "c5.large", "Arch": "amd64", "Cpu": 1930, "Mem": 3114, "Pods": 29,
//! "Price": 0.085}, …]` with allocatable CPU in thousandths, memory in MiB and dollars an hour.
//! Workload: `[[cpu thousandths, memory MiB, count], …]`.

use std::path::Path;

use longshore_proto::types::v1::object::Kind;
use longshore_proto::types::v1::{
    CapacityType, Catalogue, InstanceType, NodePool, Object, Offering, PodCount, PodShape,
    Resources,
};
use longshore_watcher::api::keys::labels::{ARCH, INSTANCE_TYPE, OS};
use longshore_watcher::project::quantity::{Rounding, integer};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Number;

use super::manifest;

const BYTES_PER_MIB: i64 = 1 << 20;
/// Zone of everything: the formats know none.
const ZONE: &str = "any";
/// Name of the one pool.
const POOL: &str = "catalogue";

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

const CATALOGUE_FORMAT: &str = "a catalogue is [{\"Name\", \"Arch\", \"Cpu\" in thousandths, \
                                \"Mem\" in MiB, \"Pods\", \"Price\" in dollars an hour}, …]";
const WORKLOAD_FORMAT: &str =
    "a workload is [[CPU in thousandths, memory in MiB, count], …], each zero or more";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Row {
    name: String,
    #[serde(default)]
    arch: String,
    cpu: Number,
    mem: Number,
    pods: Number,
    price: Number,
}

/// A catalogue from a file.
///
/// # Errors
/// When it cannot be read or a number is negative.
pub fn catalogue(path: &Path) -> Result<Catalogue, Error> {
    let rows: Vec<Row> = parse(path, CATALOGUE_FORMAT)?;
    let types = rows.iter().enumerate().map(|(n, row)| {
        kind(row).map_err(|text| {
            format_error(path, format!("[{n}] {}: {text}", row.name), CATALOGUE_FORMAT)
        })
    });
    Ok(Catalogue {
        catalogue_id: "neutral".to_owned(),
        types: types.collect::<Result<_, _>>()?,
        price_date: "as given".to_owned(),
    })
}

/// What a workload asks of the one pool: objects and counts.
///
/// # Errors
/// When the file cannot be read or a number is negative.
pub fn workload(path: &Path) -> Result<(Vec<Object>, Vec<PodCount>), Error> {
    let rows: Vec<(Number, Number, u32)> = parse(path, WORKLOAD_FORMAT)?;
    let pool = NodePool { name: POOL.to_owned(), ..NodePool::default() };
    let mut objects = vec![Object { kind: Some(Kind::NodePool(pool)) }];
    let mut counts = Vec::new();
    for (n, (cpu, mem, count)) in rows.iter().enumerate().filter(|(_, row)| row.2 > 0) {
        let wrong = |text| format_error(path, format!("[{n}]: {text}"), WORKLOAD_FORMAT);
        let shape = PodShape {
            shape_id: format!("{n:06}"),
            namespace: "default".to_owned(),
            owner: format!("Row/{n}"),
            requests: Some(Resources {
                cpu_millis: whole(cpu, Rounding::Up).map_err(wrong)?,
                memory_bytes: whole(mem, Rounding::Up)
                    .map_err(wrong)?
                    .saturating_mul(BYTES_PER_MIB),
                pods: 1,
                ..Resources::default()
            }),
            ..PodShape::default()
        };
        counts.push(PodCount { shape_id: shape.shape_id.clone(), count: *count });
        objects.push(Object { kind: Some(Kind::PodShape(shape)) });
    }
    Ok((objects, counts))
}

fn kind(row: &Row) -> Result<InstanceType, String> {
    let arch = if row.arch.is_empty() { "amd64" } else { &row.arch };
    let labels = [(INSTANCE_TYPE, row.name.as_str()), (ARCH, arch), (OS, "linux")];
    let price = integer(&row.price.to_string(), 1_000_000, Rounding::Up);
    Ok(InstanceType {
        name: row.name.clone(),
        labels: labels.into_iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect(),
        capacity: Some(Resources {
            cpu_millis: whole(&row.cpu, Rounding::Down)?,
            memory_bytes: whole(&row.mem, Rounding::Down)?.saturating_mul(BYTES_PER_MIB),
            pods: whole(&row.pods, Rounding::Down)?,
            ..Resources::default()
        }),
        overhead: Some(Resources::default()),
        offerings: vec![Offering {
            zone: ZONE.to_owned(),
            capacity_type: CapacityType::OnDemand.into(),
            price_micro_usd_per_hour: price.map_err(|problem| problem.to_string())?,
            available: true,
            ..Offering::default()
        }],
    })
}

fn whole(number: &Number, rounding: Rounding) -> Result<i64, String> {
    integer(&number.to_string(), 1, rounding).map_err(|problem| problem.to_string())
}

fn parse<T: DeserializeOwned>(path: &Path, format: &'static str) -> Result<T, Error> {
    let text = manifest::text(path)?;
    serde_json::from_str(&text).map_err(|error| format_error(path, error.to_string(), format))
}

fn format_error(path: &Path, text: String, format: &'static str) -> Error {
    Error::Format { file: path.display().to_string(), text, format }
}
