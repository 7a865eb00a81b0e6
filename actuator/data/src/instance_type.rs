//! What EC2 says of an instance type, whatever the region.
//!
//! Invariant: values are as EC2 reports them, in EC2's units; nothing is subtracted here.

mod devices;
mod links;

use serde::Deserialize;

pub use devices::{Accelerator, Gpu, LocalStorage, NeuronDevice};
pub use links::{Ebs, EbsOptimized, Network};

/// One instance type. Only types that run Linux or Windows on amd64 or arm64 are kept.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstanceType {
    /// Full name: `m7i-flex.large`.
    pub name: Box<str>,
    /// Processor architecture.
    pub arch: Arch,
    /// vCPUs at the default core and thread count.
    pub vcpus: u32,
    /// Memory in MiB, with nothing taken away for the hypervisor.
    pub memory_mib: u64,
    /// Maker of the processor: `Intel`, `AMD`, `AWS`.
    pub cpu_manufacturer: Box<str>,
    /// Sustained clock speed in MHz; 0 where EC2 states none (the first generation).
    #[serde(default)]
    pub cpu_clock_mhz: u32,
    /// What separates the instance from the hardware.
    #[serde(default)]
    pub hypervisor: Hypervisor,
    /// A whole machine without a hypervisor.
    #[serde(default)]
    pub bare_metal: bool,
    /// Earns and spends CPU credits (the t families).
    #[serde(default)]
    pub burstable: bool,
    /// EC2 still counts the type among its current generation.
    #[serde(default)]
    pub current_generation: bool,
    /// Can be bought on the spot market.
    #[serde(default)]
    pub spot: bool,
    /// Can be bought as a capacity block.
    #[serde(default)]
    pub capacity_block: bool,
    /// Can run virtual machines of its own.
    #[serde(default)]
    pub nested_virtualization: bool,
    /// Supports Nitro Enclaves.
    #[serde(default)]
    pub nitro_enclaves: bool,
    /// GPUs (Gaudi accelerators among them), one entry for each model.
    #[serde(default)]
    pub gpus: Vec<Gpu>,
    /// Inference accelerators, one entry for each model; Inferentia is in `neuron_devices` too.
    #[serde(default)]
    pub inference_accelerators: Vec<Accelerator>,
    /// AWS Neuron devices (Inferentia, Trainium), one entry for each model.
    #[serde(default)]
    pub neuron_devices: Vec<NeuronDevice>,
    /// Disks inside the machine, if any.
    #[serde(default)]
    pub local_storage: Option<LocalStorage>,
    /// Link to EBS volumes.
    pub ebs: Ebs,
    /// Network cards, interfaces and addresses.
    pub network: Network,
    /// Placement group strategies the type may join.
    #[serde(default)]
    pub placement_strategies: Vec<PlacementStrategy>,
}

/// Processor architecture, in Kubernetes' words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arch {
    /// x86, 64 bits.
    Amd64,
    /// ARM, 64 bits.
    Arm64,
}

/// What separates instances on one machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Hypervisor {
    /// Bare metal.
    #[default]
    None,
    /// AWS Nitro.
    Nitro,
    /// Xen, before Nitro.
    Xen,
}

/// How a placement group lays its instances out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PlacementStrategy {
    /// Close together.
    Cluster,
    /// On separate racks by partition.
    Partition,
    /// Each on hardware of its own.
    Spread,
}

impl InstanceType {
    /// The part before the dot: `m7i-flex`.
    #[must_use]
    pub fn family(&self) -> &str {
        self.name.split_once('.').map_or(&self.name, |(family, _)| family)
    }

    /// The part after the dot: `large`.
    #[must_use]
    pub fn size(&self) -> &str {
        self.name.split_once('.').map_or("", |(_, size)| size)
    }

    /// Leading letters of the family: `m`, `inf`, `u`.
    #[must_use]
    pub fn category(&self) -> &str {
        let letters = self.family().bytes().take_while(u8::is_ascii_lowercase).count();
        self.family().split_at(letters).0
    }

    /// Number of the generation: 7 for `m7i-flex`, 1 for `u-6tb1`; `None` where the name has none.
    #[must_use]
    pub fn generation(&self) -> Option<u32> {
        let tail = self.family().strip_prefix(self.category())?;
        let tail = match tail.strip_prefix('-').and_then(|size| size.split_once("tb")) {
            Some((size, rest)) if size.bytes().all(|byte| byte.is_ascii_digit()) => rest,
            _ => tail,
        };
        let digits = tail.bytes().take_while(u8::is_ascii_digit).count();
        tail.split_at(digits).0.parse().ok()
    }

    /// A `-flex` family: full CPU speed for most of the time only.
    #[must_use]
    pub fn flex(&self) -> bool {
        self.family().contains("-flex")
    }

    /// Most interfaces of the card that carries pod traffic.
    #[must_use]
    pub fn default_card_interfaces(&self) -> u32 {
        self.network.card_interfaces.get(self.network.default_card).copied().map_or(0, u32::from)
    }
}

impl Arch {
    /// The value of `kubernetes.io/arch`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }
}

impl Hypervisor {
    /// EC2's word; empty for bare metal.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Nitro => "nitro",
            Self::Xen => "xen",
        }
    }
}
