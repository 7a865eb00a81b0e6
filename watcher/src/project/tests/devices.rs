//! Claims of devices by table: what a pod requests by them, or why it is refused; what nodes have.

use std::collections::BTreeMap;

use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaimTemplate, ResourceSlice};

use super::{read, read_pod};
use crate::project::devices::slices::{Slice, Slices};
use crate::project::devices::{self, Devices};
use crate::project::pod::{self, Projection};
use crate::project::surroundings::Surroundings;

/// Classes as drivers and administrators make them.
const CLASSES: [(&str, &str); 7] = [
    (
        "gpu.nvidia.com",
        "selectors: [{ cel: { expression: \"device.driver == 'gpu.nvidia.com' && \
         device.attributes['gpu.nvidia.com'].type == 'gpu'\" } }]",
    ),
    (
        "gpu.amd.com",
        "selectors: [{ cel: { expression: \"device.driver == 'gpu.amd.com'\" } }],
         extendedResourceName: amd.com/gpu",
    ),
    ("trainium", "selectors: [{ cel: { expression: device.driver == 'neuron.aws.com' } }]"),
    (
        "t4",
        "selectors: [{ cel: { expression: \"device.driver == 'gpu.nvidia.com' && \
         device.attributes['gpu.nvidia.com'].productName == 'Tesla T4'\" } }],
         extendedResourceName: example.com/t4",
    ),
    (
        "large",
        "selectors: [{ cel: { expression: \"device.driver == 'gpu.nvidia.com' && \
         device.attributes['gpu.nvidia.com'].productName == 'H100'\" } }],
         extendedResourceName: nvidia.com/gpu",
    ),
    ("nic", "selectors: [{ cel: { expression: \"device.driver == 'dra.net'\" } }]"),
    (
        "efa",
        "selectors: [{ cel: { expression: \"device.driver == 'dra.net' && \
         has(device.attributes['dra.net'].rdma)\" } }]",
    ),
];

fn around(devices: &str) -> Surroundings {
    let mut around = Surroundings::default();
    for (name, spec) in CLASSES {
        let text = format!("metadata: {{ name: {name} }}\nspec: {{ {spec} }}");
        assert!(around.set_device_class(&read::<DeviceClass>(&text)));
        assert!(!around.set_device_class(&read::<DeviceClass>(&text)), "nothing new");
    }
    let text = format!(
        "metadata: {{ namespace: default, name: one }}\nspec: {{ spec: {{ devices: {devices} }} }}"
    );
    assert!(around.set_claim_template(&read::<ResourceClaimTemplate>(&text)));
    around
}

/// A pod with a GPU of its own that makes these claims.
fn projected(claims: &str, devices: &str) -> Projection {
    let text = format!(
        "metadata: {{ namespace: default, name: p, uid: u }}
spec:
  containers: [{{ name: a, resources: {{ limits: {{ nvidia.com/gpu: 1 }} }} }}]
  resourceClaims: {claims}"
    );
    pod::pod(&read_pod(&text), &around(devices)).unwrap()
}

/// What a pod with one claim of `devices` requests besides a GPU, why it is refused, and whether it
/// has devices that are not counted.
fn outcome(devices: &str) -> (Devices, String, bool) {
    let one = "[{ name: dev, resourceClaimTemplateName: one }]";
    let Projection { shape, uncounted, contextual, .. } = projected(one, devices);
    assert!(contextual);
    let mut extended = shape.requests.unwrap().extended;
    *extended.get_mut("nvidia.com/gpu").unwrap() -= 1;
    extended.retain(|_, count| *count > 0);
    (extended, shape.unschedulable_reason, uncounted)
}

fn exactly(class: &str, more: &str) -> String {
    format!("{{ requests: [{{ name: r, exactly: {{ deviceClassName: {class}{more} }} }}] }}")
}

#[test]
fn counts_of_common_devices_are_requests() {
    let two = "{ requests: [
        { name: a, exactly: { deviceClassName: trainium, count: 2, allocationMode: ExactCount } },
        { name: b, exactly: { deviceClassName: trainium } },
        { name: c, exactly: { deviceClassName: gpu.amd.com } }] }";
    let configured = "{ requests: [{ name: a, exactly: { deviceClassName: gpu.nvidia.com,
        tolerations: [{ operator: Exists }] } }],
        config: [{ opaque: { driver: gpu.nvidia.com, parameters: { a: b } } }] }";
    let table = [
        (exactly("gpu.nvidia.com", ""), vec![("nvidia.com/gpu", 1)]),
        (exactly("gpu.nvidia.com", ", count: 3"), vec![("nvidia.com/gpu", 3)]),
        (
            exactly("t4", ", count: 2, selectors: []"),
            vec![("example.com/t4", 2), ("nvidia.com/gpu", 2)],
        ),
        (two.to_owned(), vec![("aws.amazon.com/neuron", 3), ("amd.com/gpu", 1)]),
        (configured.to_owned(), vec![("nvidia.com/gpu", 1)]),
        ("{}".to_owned(), vec![]),
    ];
    for (devices, expected) in table {
        let expected: Devices = expected.into_iter().map(|(r, n)| (r.to_owned(), n)).collect();
        assert_eq!(outcome(&devices), (expected, String::new(), false), "{devices}");
    }
}

#[test]
fn every_claim_of_a_pod_counts() {
    let claims = "[{ name: a, resourceClaimTemplateName: one },
        { name: b, resourceClaimTemplateName: one }]";
    let shape = projected(claims, &exactly("gpu.nvidia.com", ", count: 2")).shape;
    assert_eq!(shape.requests.unwrap().extended["nvidia.com/gpu"], 5);
}

#[test]
fn what_is_more_than_a_count_is_refused_with_the_field_and_the_way_out() {
    let selected = ", count: 2, selectors: [{ cel: { expression: 'true' } }]";
    let alternatives = |class: &str| {
        format!(
            "{{ requests: [{{ name: r, firstAvailable: [{{ name: x, deviceClassName: {class} }}] }}] }}"
        )
    };
    let constrained = "{ requests: [{ name: r, exactly: { deviceClassName: gpu.nvidia.com } }],
        constraints: [{ matchAttribute: a/b }] }";
    let gpu = "gpu.nvidia.com";
    let (template, devices) = ("ResourceClaimTemplate default/one", "spec.spec.devices");
    let request = format!("{template}: {devices}.requests[r]");
    // Devices, how the reason begins, how many GPUs count nevertheless, and whether some may not.
    let table = [
        (exactly(gpu, selected), format!("{request}.exactly.selectors: which"), 2, false),
        (
            exactly(gpu, ", allocationMode: All"),
            format!("{request}.exactly.allocationMode: how many"),
            0,
            true,
        ),
        (exactly("nic", ", allocationMode: All"), format!("{request}.exactly.alloc"), 0, false),
        (exactly(gpu, ", adminAccess: true"), format!("{request}.exactly.adminAccess"), 0, false),
        (exactly(gpu, ", capacity: {}"), format!("{request}.exactly.capacity: shares"), 1, false),
        (alternatives(gpu), format!("{request}.firstAvailable: which"), 0, true),
        (alternatives("nic"), format!("{request}.firstAvailable: which"), 0, false),
        (constrained.to_owned(), format!("{template}: {devices}.constraints: which"), 1, false),
        (exactly("none", ""), "DeviceClass none does not exist; install".to_owned(), 0, true),
        (exactly("nic", ""), "DeviceClass nic: spec.extendedResourceName: is".to_owned(), 0, false),
        (exactly("efa", ""), "DeviceClass efa: spec.selectors: only".to_owned(), 0, false),
        (
            exactly("large", ""),
            "DeviceClass large: spec.selectors: select other devices than those that instance \
             types have as nvidia.com/gpu; give"
                .to_owned(),
            0,
            true,
        ),
    ];
    for (devices, expected, gpus, uncounted) in table {
        let (counted, reason, rest) = outcome(&devices);
        let start = format!("its claim dev cannot be planned for: {expected}");
        assert!(reason.starts_with(&start), "{devices}: {reason}");
        assert_eq!(counted.get("nvidia.com/gpu").copied().unwrap_or(0), gpus, "{devices}");
        assert_eq!(rest, uncounted, "{devices}");
        let last_way = reason.ends_with("in a NodePool with spec.replicas");
        assert_eq!(last_way, !reason.contains("does not exist"), "{reason}");
    }
}

#[test]
fn claims_from_elsewhere_are_refused() {
    let table = [
        ("resourceClaimName: shared", "ResourceClaim default/shared may be shared"),
        (
            "resourceClaimTemplateName: two",
            "ResourceClaimTemplate default/two does not exist in resource.k8s.io/v1; create it",
        ),
        ("", "it has no resourceClaimTemplateName; set it"),
    ];
    for (source, expected) in table {
        let claims = format!("[{{ name: dev, {source} }}]");
        let Projection { shape, uncounted, .. } = projected(&claims, "{}");
        let expected = format!("its claim dev cannot be planned for: {expected}");
        assert!(shape.unschedulable_reason.starts_with(&expected), "{shape:?}");
        assert!(uncounted, "{source}");
    }
}

fn slice(name: &str, spec: &str) -> (String, Slice) {
    let text = format!("metadata: {{ name: {name} }}\nspec: {{ {spec} }}");
    (name.to_owned(), (&read::<ResourceSlice>(&text)).into())
}

/// One of the slices of pool host on node host.
fn of_pool(name: &str, generation: i64, siblings: i64, devices: &str) -> (String, Slice) {
    let spec = format!(
        "driver: gpu.nvidia.com, nodeName: host, devices: [{devices}],
         pool: {{ name: host, generation: {generation}, resourceSliceCount: {siblings} }}"
    );
    slice(name, &spec)
}

const GPU: &str = "{ name: a, attributes: { type: { string: gpu } } }";

#[test]
fn devices_that_any_claim_may_be_given_count() {
    let gpu = |more: &str| format!("{{ name: a, attributes: {{ {more} }} }}");
    let with =
        |more: &str| format!("{{ name: a, attributes: {{ type: {{ string: gpu }} }}, {more} }}");
    let taint = |effect: &str| with(&format!("taints: [{{ key: k, effect: {effect} }}]"));
    let table = [
        (GPU.to_owned(), 1),
        (format!("{GPU}, {GPU}"), 2),
        (gpu("gpu.nvidia.com/type: { string: gpu }"), 1),
        (gpu("type: { string: mig }"), 0),
        (gpu("type: { version: 1.0.0 }"), 0),
        (gpu("example.com/type: { string: gpu }"), 0),
        (taint("NoSchedule"), 0),
        (taint("NoExecute"), 0),
        (taint("None"), 1),
        (with("consumesCounters: [{ counterSet: s, counters: {} }]"), 0),
        (with("allowMultipleAllocations: true"), 0),
    ];
    let around = around("{}");
    for (devices, expected) in table {
        let mut slices = Slices::default();
        let (name, slice) = of_pool("s", 1, 1, &devices);
        slices.put(&name, slice);
        let found = devices::on_node("host", &slices, &around);
        assert_eq!(found.get("nvidia.com/gpu").copied().unwrap_or(0), expected, "{devices}");
        assert_eq!(devices::on_node("other", &slices, &around), BTreeMap::new());
    }
}

#[test]
fn only_complete_pools_in_their_newest_generation_count() {
    let around = around("{}");
    let count = |listed: Vec<(String, Slice)>| {
        let mut slices = Slices::default();
        listed.into_iter().for_each(|(name, slice)| drop(slices.put(&name, slice)));
        devices::on_node("host", &slices, &around).get("nvidia.com/gpu").copied().unwrap_or(0)
    };
    assert_eq!(count(vec![of_pool("a", 1, 2, GPU)]), 0, "the other slice is not there yet");
    assert_eq!(count(vec![of_pool("a", 1, 2, GPU), of_pool("b", 1, 2, GPU)]), 2);
    assert_eq!(count(vec![of_pool("a", 1, 1, GPU), of_pool("b", 2, 1, GPU)]), 1);
    let replaced = vec![of_pool("a", 1, 2, GPU), of_pool("b", 1, 2, GPU), of_pool("c", 2, 2, GPU)];
    assert_eq!(count(replaced), 0, "the new generation is not complete");
    assert_eq!(count(vec![of_pool("a", 1, 1, GPU), of_pool("a", 1, 1, "")]), 0);
}

#[test]
fn devices_that_are_not_on_one_node_are_on_none() {
    let mut slices = Slices::default();
    let pool = "pool: { name: p, generation: 1, resourceSliceCount: 1 }";
    let spec = format!("driver: gpu.nvidia.com, allNodes: true, devices: [{GPU}], {pool}");
    let (name, shared) = slice("s", &spec);
    slices.put(&name, shared);
    assert_eq!(devices::on_node("", &slices, &around("{}")), Devices::new());
}

#[test]
fn of_several_classes_for_a_resource_the_one_with_the_fewest_devices_counts() {
    let mut around = around("{}");
    let any: DeviceClass = read(
        "{ metadata: { name: any }, spec: { selectors: [{ cel: {
           expression: device.driver == 'gpu.nvidia.com' } }] } }",
    );
    around.set_device_class(&any);
    let mut slices = Slices::default();
    let (name, slice) = of_pool("s", 1, 1, &format!("{GPU}, {{ name: mig }}"));
    slices.put(&name, slice);
    assert_eq!(devices::on_node("host", &slices, &around)["nvidia.com/gpu"], 1);
    around.device_classes.remove("gpu.nvidia.com");
    assert_eq!(devices::on_node("host", &slices, &around)["nvidia.com/gpu"], 2);
}
