//! Projections by table: manifests in, wire types out.

mod buffers;
mod devices;
mod legacy;
mod overlays;
mod pods;
mod pools;
mod volumes;

use serde::de::DeserializeOwned;
use serde_json::Value;

/// A manifest as the object it stands for.
fn read<T: DeserializeOwned>(manifest: &str) -> T {
    let value: Value = serde_saphyr::from_str(manifest).unwrap();
    serde_json::from_value(value).unwrap()
}
