//! Pods and nodes follow the classes, templates and slices that they depend on.

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaimTemplate, ResourceSlice};

use super::*;

fn class() -> Value {
    let expression = "device.driver == 'gpu.nvidia.com'";
    json!({
        "metadata": { "name": "gpu" },
        "spec": { "selectors": [{ "cel": { "expression": expression } }] },
    })
}

fn template() -> Value {
    let request = json!({ "name": "r", "exactly": { "deviceClassName": "gpu", "count": 2 } });
    json!({
        "metadata": { "namespace": "default", "name": "two" },
        "spec": { "spec": { "devices": { "requests": [request] } } },
    })
}

fn slice(devices: usize) -> Value {
    let devices: Vec<_> = (0..devices).map(|n| json!({ "name": format!("gpu-{n}") })).collect();
    json!({
        "metadata": { "name": "s" },
        "spec": {
            "driver": "gpu.nvidia.com", "nodeName": "n", "devices": devices,
            "pool": { "name": "n", "generation": 1, "resourceSliceCount": 1 },
        },
    })
}

fn claiming(source: Value) -> Value {
    json!({ "spec": { "nodeName": "n", "resourceClaims": [source] } })
}

fn templated() -> Value {
    claiming(json!({ "name": "dev", "resourceClaimTemplateName": "two" }))
}

/// What the shape of pod 1 requests of GPUs, and why it cannot be placed.
fn asked(index: &mut Index) -> (i64, String) {
    index.settled();
    let id = index.pod("1").unwrap().row.shape_id.clone();
    let shape = index.shape(&id).unwrap();
    let requests = shape.requests.clone().unwrap_or_default();
    let gpus = requests.extended.get("nvidia.com/gpu").copied().unwrap_or(0);
    (gpus, shape.unschedulable_reason.clone())
}

/// The GPUs of node n.
fn had(index: &mut Index) -> i64 {
    match index.settled().get(&Key::new(ObjectKind::Node, "n")) {
        Some(Kind::Node(node)) => {
            let extended = &node.allocatable.as_ref().unwrap().extended;
            extended.get("nvidia.com/gpu").copied().unwrap_or(0)
        }
        other => panic!("no node but {other:?}"),
    }
}

fn node(allocatable: Value) -> Value {
    json!({ "metadata": { "name": "n" }, "status": { "allocatable": allocatable } })
}

#[test]
fn a_pod_follows_its_template_and_class() {
    let mut index = Index::default();
    apply::<Pod>(&mut index, pod("a", "1", templated()));
    assert!(asked(&mut index).1.contains("ResourceClaimTemplate default/two does not exist"));
    apply::<ResourceClaimTemplate>(&mut index, template());
    assert!(asked(&mut index).1.contains("DeviceClass gpu does not exist"));
    apply::<DeviceClass>(&mut index, class());
    assert_eq!(asked(&mut index), (2, String::new()));
    index.forget::<DeviceClass>(&(String::new(), "gpu".to_owned()));
    assert!(asked(&mut index).1.contains("DeviceClass gpu does not exist"));
    apply::<DeviceClass>(&mut index, class());
    index.forget::<ResourceClaimTemplate>(&name("two"));
    assert!(asked(&mut index).1.contains("ResourceClaimTemplate default/two does not exist"));
    assert_eq!(shape_count(&index), 1);
}

#[test]
fn a_node_has_the_devices_of_its_slices_in_whichever_order_they_come() {
    let mut index = Index::default();
    apply::<Node>(&mut index, node(json!({ "cpu": "2" })));
    apply::<ResourceSlice>(&mut index, slice(2));
    assert_eq!(had(&mut index), 0, "without a class nobody can have them");
    apply::<DeviceClass>(&mut index, class());
    assert_eq!(had(&mut index), 2);
    apply::<ResourceSlice>(&mut index, slice(1));
    assert_eq!(had(&mut index), 1);
    apply::<Node>(&mut index, node(json!({ "cpu": "4" })));
    assert_eq!(had(&mut index), 1);
    index.forget::<ResourceSlice>(&(String::new(), "s".to_owned()));
    assert_eq!(had(&mut index), 0);
    apply::<ResourceSlice>(&mut index, slice(3));
    apply::<Node>(&mut index, node(json!({ "nvidia.com/gpu": "8" })));
    assert_eq!(had(&mut index), 8, "a device plug-in has registered them");
    apply::<Node>(&mut index, node(json!({ "nvidia.com/gpu": "0" })));
    assert_eq!(had(&mut index), 3, "it has been taken away");
}

#[test]
fn a_node_with_uncounted_devices_offers_none() {
    let mut index = Index::default();
    apply::<Node>(&mut index, node(json!({ "cpu": "2" })));
    apply::<DeviceClass>(&mut index, class());
    apply::<ResourceClaimTemplate>(&mut index, template());
    apply::<ResourceSlice>(&mut index, slice(4));
    apply::<Pod>(&mut index, pod("b", "2", templated()));
    assert_eq!(had(&mut index), 4, "what pods request is subtracted by the planner");
    let named = json!({ "name": "dev", "resourceClaimName": "shared" });
    apply::<Pod>(&mut index, pod("a", "1", claiming(named)));
    assert_eq!(had(&mut index), 0);
    index.forget::<Pod>(&name("a"));
    assert_eq!(had(&mut index), 4);
    index.forget::<ResourceClaimTemplate>(&name("two"));
    assert_eq!(had(&mut index), 0);
    apply::<ResourceClaimTemplate>(&mut index, template());
    assert_eq!(had(&mut index), 4);
    let foreign = json!([{ "name": "dev", "resourceClaimTemplateName": "gone" }]);
    let finished = json!({ "spec": { "nodeName": "n", "resourceClaims": foreign } });
    apply::<Pod>(&mut index, pod("c", "3", finished.clone()));
    assert_eq!(had(&mut index), 0);
    let mut finished = pod("c", "3", finished);
    merge(&mut finished, json!({ "status": { "phase": "Succeeded" } }));
    apply::<Pod>(&mut index, finished);
    assert_eq!(had(&mut index), 4);
}
