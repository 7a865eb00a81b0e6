//! Devices inside a machine: GPUs, accelerators, disks.
//!
//! Invariant: counts and sizes are EC2's; a device the type lacks has no entry.

use serde::Deserialize;

/// GPUs of one model.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gpu {
    /// Model, as EC2 writes it: `T4`, `H100`.
    pub name: Box<str>,
    /// Maker: `NVIDIA`, `AMD`, `Habana`.
    pub manufacturer: Box<str>,
    /// Whole GPUs; 0 where the type has only a share of one.
    pub count: u32,
    /// Memory of each in MiB.
    pub memory_mib: u64,
}

/// Inference accelerators of one model.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accelerator {
    /// Model, as EC2 writes it.
    pub name: Box<str>,
    /// Maker.
    pub manufacturer: Box<str>,
    /// How many.
    pub count: u32,
    /// Memory of each in MiB.
    pub memory_mib: u64,
}

/// Neuron devices of one model.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NeuronDevice {
    /// Model: `Inferentia2`, `Trainium`.
    pub name: Box<str>,
    /// How many.
    pub count: u32,
    /// Cores of each.
    pub cores_per_device: u32,
    /// Memory of each in MiB.
    pub memory_mib: u64,
}

/// Disks inside the machine.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocalStorage {
    /// Size of all disks together in decimal GB.
    pub total_gb: u64,
    /// How many disks.
    pub disks: u32,
    /// Reached over NVMe.
    pub nvme: bool,
}
