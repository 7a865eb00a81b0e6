//! What the workloads are bought from.
//!
//! Invariant: made from the embedded facts about EC2, or from a formula, each time anew; no file of
//! prices is kept beside them.

use anyhow::{Context, Result};
use longshore_ec2_data::{Arch, Dataset, Hypervisor, InstanceType, NodeSettings, allocatable};
use longshore_manifests::neutral::Row;
use serde_json::Number;

use super::numbers::dollars;

const REGION: &str = "us-east-1";

/// Requests of a DaemonSet's pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DaemonSet {
    /// CPU in thousandths of a core.
    pub cpu_millis: i64,
    /// Memory in MiB.
    pub memory_mib: i64,
}

/// A pool to buy for: a catalogue, how large its types may be, and what runs on every node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pool {
    /// Families c, m and r of generations above 2, amd64, on demand, as Karpenter's default pool.
    Cmr,
    /// The same up to 64 vCPU.
    Cmr64,
    /// The same up to 32 vCPU, with a DaemonSet of 500m and 1 GiB.
    Cmr32,
    /// Three families each of amd64 and arm64, for clusters with constraints.
    Mixed,
    /// Four hundred made-up types, each as large as its number, at one price for each unit.
    Linear,
}

impl Pool {
    /// Name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cmr => "c/m/r",
            Self::Cmr64 => "c/m/r ≤ 64 vCPU",
            Self::Cmr32 => "c/m/r ≤ 32 vCPU + DaemonSet",
            Self::Mixed => "mixed",
            Self::Linear => "linear-400",
        }
    }

    /// Name of the catalogue's file.
    #[must_use]
    pub const fn file(self) -> &'static str {
        match self {
            Self::Cmr | Self::Cmr64 | Self::Cmr32 => "catalogue-cmr.json",
            Self::Mixed => "catalogue-mixed.json",
            Self::Linear => "catalogue-linear-400.json",
        }
    }

    /// Most CPU of a type, in thousandths of a core.
    #[must_use]
    pub const fn max_cpu_milli(self) -> Option<i64> {
        match self {
            Self::Cmr | Self::Mixed | Self::Linear => None,
            Self::Cmr64 => Some(64_000),
            Self::Cmr32 => Some(32_000),
        }
    }

    /// What runs on every node.
    #[must_use]
    pub const fn daemon_set(self) -> Option<DaemonSet> {
        match self {
            Self::Cmr32 => Some(DaemonSet { cpu_millis: 500, memory_mib: 1024 }),
            Self::Cmr | Self::Cmr64 | Self::Mixed | Self::Linear => None,
        }
    }

    /// Its types.
    ///
    /// # Errors
    /// When the embedded facts cannot be read.
    pub fn rows(self) -> Result<Vec<Row>> {
        match self {
            Self::Cmr | Self::Cmr64 | Self::Cmr32 => sold(belongs),
            Self::Mixed => sold(is_mixed),
            Self::Linear => (1..=400).map(linear).collect(),
        }
    }
}

fn sold(wanted: fn(&InstanceType) -> bool) -> Result<Vec<Row>> {
    let facts = Dataset::embedded()?;
    let sold = facts.catalogue(REGION)?.filter(|(kind, _)| wanted(kind));
    let listed = sold.filter(|(_, offering)| !offering.on_demand.estimated);
    listed.map(|(kind, offering)| row(kind, offering.on_demand.micro_usd_per_hour)).collect()
}

fn belongs(kind: &InstanceType) -> bool {
    ["c", "m", "r"].contains(&kind.category())
        && kind.generation().is_some_and(|generation| generation > 2)
        && kind.arch == Arch::Amd64
        && kind.hypervisor != Hypervisor::None
        && kind.gpus.is_empty()
}

fn is_mixed(kind: &InstanceType) -> bool {
    const FAMILIES: [&str; 6] = ["c5", "m5", "r5", "c6g", "m6g", "r6g"];
    FAMILIES.contains(&kind.family()) && kind.hypervisor != Hypervisor::None
}

fn row(kind: &InstanceType, micro_usd_per_hour: u64) -> Result<Row> {
    let room = allocatable(kind, &NodeSettings::default());
    Ok(Row {
        name: kind.name.to_string(),
        arch: kind.arch.as_str().to_owned(),
        cpu: room.cpu_millis.into(),
        mem: (room.memory_bytes >> 20).into(),
        pods: room.pods.into(),
        price: price(i64::try_from(micro_usd_per_hour)?)?,
    })
}

/// A type of that many cores, 2 GiB for each, at 0.1 $/h for each core and each GB of 1e9 bytes.
fn linear(cores: u32) -> Result<Row> {
    let size = i64::from(cores);
    let micro_usd = size * 100_000 + size * (2 << 30) / 10_000;
    Ok(Row {
        name: format!("linear-{cores}"),
        arch: "amd64".to_owned(),
        cpu: (size * 1000 - 100).into(),
        mem: (size * 2048 - 10).into(),
        pods: (size * 10).into(),
        price: price(micro_usd)?,
    })
}

fn price(micro_usd: i64) -> Result<Number> {
    Number::from_f64(dollars(micro_usd)).context("a price is a finite number")
}

/// Dollars of a row, for tests and sums.
#[cfg(test)]
fn usd(row: &Row) -> f64 {
    row.price.as_f64().unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalogues_are_those_they_are_named_after() {
        let cmr = Pool::Cmr.rows().unwrap();
        assert!(cmr.len() > 500, "{}", cmr.len());
        let m5 = cmr.iter().find(|row| row.name == "m5.large").unwrap();
        assert_eq!((m5.cpu.as_i64(), m5.pods.as_i64()), (Some(1930), Some(29)));
        assert!((usd(m5) - 0.096).abs() < 1e-9);
        let absent = ["m5.metal", "m1.large", "m6g.large", "t3.large"];
        assert!(cmr.iter().all(|row| !absent.contains(&row.name.as_str())));
        let linear = Pool::Linear.rows().unwrap();
        assert_eq!(linear.len(), 400);
        assert!((usd(&linear[1]) - 2.0 * usd(&linear[0])).abs() < 2e-6);
    }
}
