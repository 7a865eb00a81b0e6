//! What DescribeInstanceTypes says, as the facts that catalogues are made from.
//!
//! Invariant: types that the embedded data knows come from there, since it also knows what the API
//! does not tell (branch interfaces, network bandwidth); newer ones are read from the answer.

use aws_sdk_ec2::types::InstanceTypeInfo;
use longshore_ec2_data::{Dataset, InstanceType};
use serde_json::{Map, Value, json};

/// Facts of a type; none when it runs no architecture that Kubernetes images exist for.
pub fn instance_type(info: &InstanceTypeInfo) -> Option<InstanceType> {
    let name = info.instance_type()?.as_str();
    let embedded = Dataset::embedded().ok().and_then(|facts| facts.instance_type(name));
    embedded.cloned().or_else(|| from_answer(name, info))
}

/// The embedded data's own row format, filled from the answer.
fn from_answer(name: &str, info: &InstanceTypeInfo) -> Option<InstanceType> {
    let processor = info.processor_info()?;
    let architectures = processor.supported_architectures();
    let arch = architectures.iter().find_map(|arch| match arch.as_str() {
        "x86_64" => Some("amd64"),
        "arm64" => Some("arm64"),
        _ => None,
    })?;
    let mut row = Map::new();
    let mut put = |key: &str, value: Value| row.insert(key.to_owned(), value);
    put("name", json!(name));
    put("arch", json!(arch));
    put("vcpus", json!(info.v_cpu_info()?.default_v_cpus()?));
    put("memory_mib", json!(info.memory_info()?.size_in_mib()?));
    put("cpu_manufacturer", json!(processor.manufacturer().unwrap_or_default()));
    put("cpu_clock_mhz", json!(clock_mhz(processor.sustained_clock_speed_in_ghz())));
    put("bare_metal", json!(info.bare_metal().unwrap_or_default()));
    put("burstable", json!(info.burstable_performance_supported().unwrap_or_default()));
    put("current_generation", json!(info.current_generation().unwrap_or_default()));
    put("spot", json!(info.supported_usage_classes().iter().any(|c| c.as_str() == "spot")));
    if let Some(hypervisor) = info.hypervisor() {
        put("hypervisor", json!(hypervisor.as_str()));
    }
    put("gpus", gpus(info));
    put("neuron_devices", neuron_devices(info));
    if let Some(storage) = info.instance_storage_info() {
        put("local_storage", local_storage(storage));
    }
    put("ebs", ebs(info));
    put("network", network(info)?);
    serde_json::from_value(Value::Object(row)).ok()
}

/// Thousandths of a GHz, rounded; written as text and read back, since money and speeds alike never
/// pass through a lossy cast.
fn clock_mhz(ghz: Option<f64>) -> u32 {
    let mhz = (ghz.unwrap_or_default() * 1000.0).round();
    format!("{mhz:.0}").parse().unwrap_or_default()
}

fn gpus(info: &InstanceTypeInfo) -> Value {
    let gpus = info.gpu_info().map(|gpu| gpu.gpus()).unwrap_or_default().iter();
    let rows = gpus.map(|gpu| {
        let memory = gpu.memory_info().and_then(|memory| memory.size_in_mib());
        json!({
            "name": gpu.name().unwrap_or_default(),
            "manufacturer": gpu.manufacturer().unwrap_or_default(),
            "count": gpu.count().unwrap_or_default(),
            "memory_mib": memory.unwrap_or_default(),
        })
    });
    rows.collect()
}

fn neuron_devices(info: &InstanceTypeInfo) -> Value {
    let devices = info.neuron_info().map(|neuron| neuron.neuron_devices()).unwrap_or_default();
    let rows = devices.iter().map(|device| {
        let memory = device.memory_info().and_then(|memory| memory.size_in_mib());
        let cores = device.core_info().and_then(|cores| cores.count());
        json!({
            "name": device.name().unwrap_or_default(),
            "count": device.count().unwrap_or_default(),
            "cores_per_device": cores.unwrap_or_default(),
            "memory_mib": memory.unwrap_or_default(),
        })
    });
    rows.collect()
}

fn local_storage(storage: &aws_sdk_ec2::types::InstanceStorageInfo) -> Value {
    let disks: i32 = storage.disks().iter().filter_map(|disk| disk.count()).sum();
    let nvme = storage.nvme_support().is_some_and(|support| support.as_str() != "unsupported");
    json!({
        "total_gb": storage.total_size_in_gb().unwrap_or_default(),
        "disks": disks,
        "nvme": nvme,
    })
}

fn ebs(info: &InstanceTypeInfo) -> Value {
    let ebs = info.ebs_info();
    let optimized = ebs.and_then(|ebs| ebs.ebs_optimized_support());
    let link = ebs.and_then(|ebs| ebs.ebs_optimized_info());
    json!({
        "optimized": optimized.map_or("unsupported", |support| support.as_str()),
        "max_bandwidth_mbps": link.and_then(|link| link.maximum_bandwidth_in_mbps()),
        "baseline_bandwidth_mbps": link.and_then(|link| link.baseline_bandwidth_in_mbps()),
    })
}

fn network(info: &InstanceTypeInfo) -> Option<Value> {
    let network = info.network_info()?;
    let cards = network.network_cards().iter();
    let interfaces: Vec<_> =
        cards.map(|card| card.maximum_network_interfaces().unwrap_or_default()).collect();
    let efa = network.efa_info().and_then(|efa| efa.maximum_efa_interfaces());
    Some(json!({
        "card_interfaces": interfaces,
        "default_card": network.default_network_card_index().unwrap_or_default(),
        "ipv4_per_interface": network.ipv4_addresses_per_interface().unwrap_or_default(),
        "efa_interfaces": efa.unwrap_or_default(),
        "ena": network.ena_support().is_some_and(|support| support.as_str() != "unsupported"),
        "encryption_in_transit": network.encryption_in_transit_supported().unwrap_or_default(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_sdk_ec2::types::{
        ArchitectureType, InstanceType as Name, MemoryInfo, NetworkCardInfo, NetworkInfo,
        ProcessorInfo, UsageClassType, VCpuInfo,
    };

    #[test]
    fn a_type_newer_than_the_embedded_data_is_read_from_the_answer() {
        let card = NetworkCardInfo::builder().maximum_network_interfaces(3).build();
        let network =
            NetworkInfo::builder().network_cards(card).ipv4_addresses_per_interface(10).build();
        let processor = ProcessorInfo::builder()
            .supported_architectures(ArchitectureType::Arm64)
            .sustained_clock_speed_in_ghz(2.6)
            .manufacturer("AWS")
            .build();
        let info = InstanceTypeInfo::builder()
            .instance_type(Name::from("m99g.large"))
            .processor_info(processor)
            .v_cpu_info(VCpuInfo::builder().default_v_cpus(2).build())
            .memory_info(MemoryInfo::builder().size_in_mib(8192).build())
            .supported_usage_classes(UsageClassType::Spot)
            .network_info(network)
            .build();
        let facts = instance_type(&info).unwrap();
        assert_eq!((&*facts.name, facts.vcpus, facts.memory_mib), ("m99g.large", 2, 8192));
        assert_eq!((facts.cpu_clock_mhz, facts.spot), (2600, true));
        assert_eq!(longshore_ec2_data::eni_limited_pods(&facts, 0), 29);
    }
}
