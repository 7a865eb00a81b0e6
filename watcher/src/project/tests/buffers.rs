//! CapacityBuffers.

use super::read;
use crate::api::CapacityBuffer;
use crate::project::buffer::{Referred, buffer};
use crate::project::surroundings::Surroundings;

const TEMPLATE: &str = "
metadata: { labels: { app: web } }
spec:
  priority: 1000
  nodeSelector: { disk: fast }
  containers: [{ name: a, resources: { requests: { cpu: 500m, memory: 1Gi } } }]
  volumes: [{ name: v, persistentVolumeClaim: { claimName: c } }, { name: e, emptyDir: {} }]
  affinity:
    podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [
      { topologyKey: kubernetes.io/hostname, labelSelector: { matchLabels: { app: db } } }] }
    podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [
      { topologyKey: kubernetes.io/hostname, labelSelector: { matchLabels: { app: web } } }] }
";

fn object(spec: &str) -> CapacityBuffer {
    read(&format!("{{ metadata: {{ namespace: shop, name: b }}, spec: {{ {spec} }} }}"))
}

fn referred(scale: Option<i32>) -> Referred {
    Referred { template: read(TEMPLATE), generation: None, scale }
}

#[test]
fn its_pods_are_those_of_the_template_without_what_a_place_does_not_need() {
    let referred = referred(None);
    let (row, shape) = buffer(&object("replicas: 2"), &referred, &Surroundings::default()).unwrap();
    assert_eq!((row.namespace.as_str(), row.name.as_str(), row.replicas), ("shop", "b", 2));
    assert_eq!(row.shape_id, shape.shape_id);
    assert_eq!((shape.owner.as_str(), shape.priority), ("CapacityBuffer/b", i32::MIN));
    assert_eq!(shape.unschedulable_reason, "", "the claim it cannot have is no demand");
    assert_eq!((shape.required_affinity.len(), shape.required_anti_affinity.len()), (0, 1));
    assert_eq!(shape.node_selector["disk"], "fast");
    assert_eq!(shape.requests.unwrap().cpu_millis, 500);
}

#[test]
fn replicas_are_the_larger_of_number_and_share_within_the_limits() {
    let table = [
        ("replicas: 3", None, Ok(3)),
        ("replicas: 0", None, Ok(0)),
        ("percentage: 20", Some(12), Ok(3)),
        ("percentage: 1", Some(0), Ok(1)),
        ("replicas: 5, percentage: 20", Some(12), Ok(5)),
        ("replicas: 2, percentage: 50", Some(12), Ok(6)),
        ("percentage: 20", None, Err("spec.replicas: is missing")),
        ("limits: { cpu: 2250m, memory: 3Gi }", None, Ok(3)),
        ("limits: { cpu: 400m }", None, Ok(0)),
        ("replicas: 10, limits: { cpu: 2 }", None, Ok(4)),
        ("replicas: 10, limits: { nvidia.com/gpu: 1 }", None, Ok(10)),
        ("limits: { nvidia.com/gpu: 1 }", None, Err("spec.replicas: is missing")),
        ("replicas: 1, limits: { cpu: -1 }", None, Err("spec.limits[cpu]: \"-1\" is negative")),
        (
            "replicas: 1, provisioningStrategy: other",
            None,
            Err("spec.provisioningStrategy: \"other\""),
        ),
    ];
    for (spec, scale, expected) in table {
        let read = buffer(&object(spec), &referred(scale), &Surroundings::default());
        match (read, expected) {
            (Ok((row, _)), Ok(replicas)) => assert_eq!(row.replicas, replicas, "{spec}"),
            (Err(fault), Err(text)) => {
                let fault = fault.to_string();
                assert!(fault.starts_with(&format!("CapacityBuffer/shop/b: {text}")), "{fault}");
            }
            (read, expected) => panic!("{spec}: {read:?}, not {expected:?}"),
        }
    }
}
