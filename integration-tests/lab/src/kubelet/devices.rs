//! The devices of a machine as a driver lists them: one ResourceSlice for each node.
//!
//! Invariant: pure; counts come from the hardware. Only NVIDIA's driver is played, which is enough
//! for pods to claim whole GPUs.

use longshore_ec2_data::{Dataset, InstanceType};
use serde_json::{Value, json};

/// The driver.
const DRIVER: &str = "gpu.nvidia.com";
const MAKER: &str = "NVIDIA";

/// The slice of a node, which goes when the node does; none for a machine without such devices.
pub fn slice(instance_type: &str, node: &str, node_uid: &str) -> Option<Value> {
    let hardware = Dataset::embedded().ok()?.instance_type(instance_type)?;
    let devices = devices(hardware);
    (!devices.is_empty()).then(|| {
        json!({
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {
                "name": format!("{node}-{DRIVER}"),
                "ownerReferences": [{
                    "apiVersion": "v1", "kind": "Node", "name": node, "uid": node_uid,
                    "controller": true,
                }],
            },
            "spec": {
                "driver": DRIVER,
                "nodeName": node,
                "pool": { "name": node, "generation": 1, "resourceSliceCount": 1 },
                "devices": devices,
            },
        })
    })
}

fn devices(hardware: &InstanceType) -> Vec<Value> {
    let gpus = hardware.gpus.iter().filter(|gpu| &*gpu.manufacturer == MAKER);
    let names = gpus.flat_map(|gpu| (0..gpu.count).map(|_| &*gpu.name));
    let device = |(number, name): (usize, &str)| {
        json!({
            "name": format!("gpu-{number}"),
            "attributes": { "type": { "string": "gpu" }, "productName": { "string": name } },
        })
    };
    names.enumerate().map(device).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_lists_the_gpus_that_it_has() {
        let count = |instance_type: &str| {
            let slice = slice(instance_type, "node", "uid")?;
            slice["spec"]["devices"].as_array().map(Vec::len)
        };
        assert_eq!(count("g5.xlarge"), Some(1));
        assert_eq!(count("g5.12xlarge"), Some(4));
        assert_eq!(count("m5.large"), None);
        assert_eq!(count("no.such"), None);
    }
}
