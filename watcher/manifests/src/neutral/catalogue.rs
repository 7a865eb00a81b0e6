//! What can be bought, as bare numbers.
//!
//! Invariant: every type is sold on demand in every one of the three zones, at one price, so that
//! pods that name a zone, spread over zones or stay together in one can be planned.

use std::path::Path;

use longshore_proto::types::v1::{CapacityType, Catalogue, InstanceType, Offering, Resources};
use longshore_watcher::api::keys::labels::{ARCH, INSTANCE_TYPE, OS};
use longshore_watcher::project::quantity::{Rounding, integer};
use serde::{Deserialize, Serialize};
use serde_json::Number;

use super::{Error, whole};
use crate::manifest;

/// Zones in which everything is sold.
pub const ZONES: [&str; 3] = ["test-zone-1", "test-zone-2", "test-zone-3"];

const FORMAT: &str = "a catalogue is [{\"Name\", \"Arch\", \"Cpu\" in thousandths, \"Mem\" in \
                      MiB, \"Pods\", \"Price\" in dollars an hour}, …]";

const BYTES_PER_MIB: i64 = 1 << 20;

/// One type.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct Row {
    /// Name.
    pub name: String,
    /// Architecture as Kubernetes writes it; `amd64` when empty.
    #[serde(default)]
    pub arch: String,
    /// CPU for pods, in thousandths of a core.
    pub cpu: Number,
    /// Memory for pods, in MiB.
    pub mem: Number,
    /// Number of pods.
    pub pods: Number,
    /// Dollars an hour.
    pub price: Number,
}

/// A catalogue from a file.
///
/// # Errors
/// When it cannot be read or a number is negative.
pub fn catalogue(path: &Path) -> Result<Catalogue, Error> {
    let text = manifest::text(path)?;
    let wrong = |text| Error::format(path, text, FORMAT);
    let rows: Vec<Row> = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    from_rows(&rows).map_err(wrong)
}

/// A catalogue of rows.
///
/// # Errors
/// The first row with a number that is negative.
pub fn from_rows(rows: &[Row]) -> Result<Catalogue, String> {
    let types = rows.iter().enumerate();
    let types = types.map(|(n, row)| kind(row).map_err(|e| format!("[{n}] {}: {e}", row.name)));
    Ok(Catalogue {
        catalogue_id: "neutral".to_owned(),
        types: types.collect::<Result<_, _>>()?,
        price_date: "as given".to_owned(),
    })
}

fn kind(row: &Row) -> Result<InstanceType, String> {
    let arch = if row.arch.is_empty() { "amd64" } else { &row.arch };
    let labels = [(INSTANCE_TYPE, row.name.as_str()), (ARCH, arch), (OS, "linux")];
    let price = integer(&row.price.to_string(), 1_000_000, Rounding::Up);
    let price = price.map_err(|problem| problem.to_string())?;
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
        offerings: ZONES.iter().map(|zone| offering(zone, price)).collect(),
    })
}

fn offering(zone: &str, price_micro_usd_per_hour: i64) -> Offering {
    Offering {
        zone: zone.to_owned(),
        zone_id: zone.to_owned(),
        capacity_type: CapacityType::OnDemand.into(),
        price_micro_usd_per_hour,
        available: true,
        ..Offering::default()
    }
}
