//! Projections by table: manifests in, wire types out.

mod buffers;
mod devices;
mod legacy;
mod overlays;
mod pods;
mod pools;
mod volumes;

use k8s_openapi::api::core::v1::Pod;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::extract;

/// A manifest as the object it stands for.
fn read<T: DeserializeOwned>(manifest: &str) -> T {
    let value: Value = serde_saphyr::from_str(manifest).unwrap();
    serde_json::from_value(value).unwrap()
}

/// A pod, as much of it as is read.
fn read_pod(manifest: &str) -> Pod {
    extract::pod(&read::<Value>(manifest).to_string()).unwrap()
}
