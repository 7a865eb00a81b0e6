//! Pods and templates.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use longshore_proto::types::v1::{Operator, Resources};

use super::{read, read_pod};
use crate::project::shape::{Workload, template};
use crate::project::surroundings::Surroundings;
use crate::project::{daemon_set, pod, requests};

fn pod_with(labels: &str, spec: &str) -> Pod {
    read_pod(&format!(
        "{{ metadata: {{ namespace: default, name: p, uid: u, labels: {labels} }}, spec: {spec} }}"
    ))
}

fn project(labels: &str, spec: &str) -> pod::Projection {
    pod::pod(&pod_with(labels, spec), &Surroundings::default()).unwrap()
}

/// What is shown, the specification, and the thousandths of a core and bytes it requests.
const REQUESTS: &[(&str, &str, (i64, i64))] = &[
        (
            "containers add up",
            "containers: [{ name: a, resources: { requests: { cpu: 100m, memory: 1Mi } } },
                          { name: b, resources: { requests: { cpu: 200m } } }]",
            (300, 1 << 20),
        ),
        (
            "a limit stands in for an absent request",
            "containers: [{ name: a, resources: { limits: { cpu: 1, memory: 1Mi }, requests: { cpu: 100m } } }]",
            (100, 1 << 20),
        ),
        (
            "the largest init container counts when it is larger",
            "containers: [{ name: a, resources: { requests: { cpu: 100m } } }],
             initContainers: [{ name: i, resources: { requests: { cpu: 1 } } },
                              { name: j, resources: { requests: { cpu: 500m, memory: 2Mi } } }]",
            (1000, 2 << 20),
        ),
        (
            "sidecars add to the containers and to later init containers",
            "containers: [{ name: a, resources: { requests: { cpu: 100m } } }],
             initContainers: [{ name: i, resources: { requests: { cpu: 250m } } },
                              { name: s, restartPolicy: Always, resources: { requests: { cpu: 200m } } },
                              { name: j, resources: { requests: { cpu: 150m } } }]",
            (350, 0),
        ),
        (
            "overhead comes on top",
            "containers: [{ name: a, resources: { requests: { cpu: 100m } } }],
             overhead: { cpu: 50m, memory: 1Mi }",
            (150, 1 << 20),
        ),
        (
            "pod-level requests replace the sum",
            "containers: [{ name: a, resources: { requests: { cpu: 100m, memory: 1Mi } } }],
             resources: { requests: { cpu: 2 } }",
            (2000, 1 << 20),
        ),
        (
            "a pod-level limit stands in where neither pod nor containers ask for anything",
            "containers: [{ name: a, resources: { requests: { memory: 1Mi } } }],
             resources: { limits: { cpu: 2, memory: 4Mi } }",
            (2000, 1 << 20),
        ),
        (
            "a sidecar that starts after an init container does not run beside it",
            "containers: [{ name: a, resources: { requests: { cpu: 100m } } }],
             initContainers: [{ name: i, resources: { requests: { cpu: 400m } } },
                              { name: s, restartPolicy: Always, resources: { requests: { cpu: 200m } } }]",
            (400, 0),
        ),
    ];

#[test]
fn requests_add_up_as_kube_scheduler_adds_them_up() {
    for (what, spec, (cpu_millis, memory_bytes)) in REQUESTS.iter().copied() {
        let spec = read_pod(&format!("spec: {{ {spec} }}")).spec.unwrap();
        let expected = Resources { cpu_millis, memory_bytes, pods: 1, ..Resources::default() };
        assert_eq!(requests::requests(&spec, None).unwrap(), expected, "{what}");
    }
}

#[test]
fn a_resize_counts_with_the_larger_size_unless_it_was_refused_for_good() {
    let resizing = "conditions: [{ type: PodResizePending, status: 'True', reason: Deferred }],";
    let refused = "conditions: [{ type: PodResizePending, status: 'True', reason: Infeasible }],";
    for (spec, condition, expected) in
        [("100m", "", 300), ("500m", "", 500), ("500m", resizing, 500), ("500m", refused, 300)]
    {
        let pod = read_pod(&format!(
            "spec: {{ containers: [{{ name: a, resources: {{ requests: {{ cpu: {spec} }} }} }}] }}
status: {{ {condition} containerStatuses: [{{ name: a, image: i, imageID: i, ready: true,
           restartCount: 0, allocatedResources: {{ cpu: 300m }},
           resources: {{ requests: {{ cpu: 200m }} }} }}] }}"
        ));
        let total = requests::requests(&pod.spec.unwrap(), pod.status.as_ref()).unwrap();
        assert_eq!(total.cpu_millis, expected, "{spec} {condition}");
    }
}

#[test]
fn a_deployment_and_its_pods_have_one_shape_across_rollouts() {
    let deployment: Deployment = read(
        "metadata: { namespace: default, name: web }
spec:
  selector: {}
  template:
    metadata: { labels: { app: web } }
    spec: { containers: [{ name: a, resources: { requests: { cpu: 100m } } }] }",
    );
    let workload = Workload { kind: "Deployment", namespace: "default", name: "web" };
    let around = Surroundings::default();
    let of_template = template(&workload, &deployment.spec.unwrap().template, &around).unwrap();
    let of_pod = |hash: &str| {
        let mut pod = pod_with(
            &format!("{{ app: web, pod-template-hash: {hash} }}"),
            "{ containers: [{ name: a, resources: { requests: { cpu: 100m } } }] }",
        );
        pod.metadata.owner_references = read(&format!(
            "[{{ apiVersion: apps/v1, kind: ReplicaSet, name: web-{hash}, uid: r, controller: true }}]"
        ));
        pod::pod(&pod, &around).unwrap().shape
    };
    assert_eq!(of_pod("abc12"), of_template);
    assert_eq!(of_pod("xyz99").shape_id, of_template.shape_id);
    assert_eq!(of_template.owner, "Deployment/web");
}

#[test]
fn a_pod_keeps_its_shape_when_it_gets_a_node() {
    let spec = "{ containers: [{ name: a }] }";
    let bound = "{ app: web, topology.kubernetes.io/zone: a, topology.kubernetes.io/region: r }";
    assert_eq!(project(bound, spec).shape, project("{ app: web }", spec).shape);
}

#[test]
fn a_label_that_a_constraint_refers_to_stays() {
    let spread = "{ containers: [{ name: a }], topologySpreadConstraints: [{ maxSkew: 1,
        topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule,
        labelSelector: { matchLabels: { app: web } }, matchLabelKeys: [pod-template-hash] }] }";
    let shape = project("{ app: web, pod-template-hash: abc }", spread).shape;
    assert_eq!(shape.labels["pod-template-hash"], "abc");
    let constraint = &shape.topology_spread[0];
    let merged = &constraint.selector.as_ref().unwrap().match_expressions[0];
    assert_eq!((merged.key.as_str(), merged.operator()), ("pod-template-hash", Operator::In));
    assert_eq!(merged.values, ["abc"]);
    assert!(constraint.honor_node_affinity && !constraint.honor_node_taints);
    let plain = project("{ app: web, pod-template-hash: abc }", "{ containers: [{ name: a }] }");
    assert!(!plain.shape.labels.contains_key("pod-template-hash"));
}

#[test]
fn old_spellings_of_node_labels_are_read_as_todays() {
    let spec = "{ containers: [{ name: a }], nodeSelector: {
        beta.kubernetes.io/arch: arm64, karpenter.sh/provisioner-name: dev } }";
    let selector = project("{}", spec).shape.node_selector;
    assert_eq!(selector["kubernetes.io/arch"], "arm64");
    assert_eq!(selector["karpenter.sh/nodepool"], "dev");
}

#[test]
fn constraints_that_cannot_be_met_are_reasons() {
    let affinity = |terms: &str| {
        format!(
            "{{ containers: [{{ name: a }}], affinity: {{ nodeAffinity: {{
            requiredDuringSchedulingIgnoredDuringExecution: {{ nodeSelectorTerms: {terms} }} }} }} }}"
        )
    };
    let fields =
        affinity("[{ matchFields: [{ key: metadata.name, operator: In, values: [n1] }] }]");
    assert!(project("{}", &fields).shape.unschedulable_reason.contains("matchFields"));
    let operator = affinity("[{ matchExpressions: [{ key: k, operator: Near, values: [n1] }] }]");
    assert!(project("{}", &operator).shape.unschedulable_reason.contains("\"Near\" is unknown"));
    let both = affinity(
        "[{ matchExpressions: [{ key: k, operator: Exists }],
            matchFields: [{ key: metadata.name, operator: In, values: [n1] }] },
          { matchExpressions: [{ key: other, operator: Exists }] }]",
    );
    let terms = project("{}", &both).shape.required_node_terms;
    assert_eq!((terms.len(), terms[0].requirements[0].key.as_str()), (1, "other"));
    let number = affinity("[{ matchExpressions: [{ key: k, operator: Gt, values: [x] }] }]");
    assert!(project("{}", &number).shape.unschedulable_reason.contains("exactly one integer"));
    let gated = "{ containers: [{ name: a }], schedulingGates: [{ name: g }] }";
    let reason = project("{}", gated).shape.unschedulable_reason;
    assert_eq!(reason, "scheduling gate g has not been lifted");
}

#[test]
fn host_ports_of_containers_and_sidecars_count() {
    let spec = "{ containers: [{ name: a, ports: [{ containerPort: 80, hostPort: 8080 }, { containerPort: 81 }] }],
        initContainers: [{ name: s, restartPolicy: Always, ports: [{ containerPort: 53, hostPort: 53, protocol: UDP }] },
                         { name: i, ports: [{ containerPort: 1, hostPort: 1 }] }] }";
    let ports = project("{}", spec).shape.host_ports;
    let seen: Vec<_> = ports.iter().map(|p| (p.port, p.protocol.as_str())).collect();
    assert_eq!(seen, [(8080, "TCP"), (53, "UDP")]);
}

#[test]
fn protection_from_disruption() {
    let table = [
        ("{}", "{}", (false, None)),
        ("{ karpenter.sh/do-not-disrupt: 'true' }", "{}", (true, None)),
        ("{ karpenter.sh/do-not-evict: 'true' }", "{}", (true, None)),
        ("{ karpenter.sh/do-not-disrupt: 'false' }", "{}", (false, None)),
        ("{ karpenter.sh/do-not-disrupt: soon }", "{}", (false, None)),
        ("{ karpenter.sh/do-not-disrupt: 10m }", "{}", (true, None)),
        (
            "{ karpenter.sh/do-not-disrupt: 10m }",
            "{ startTime: '1970-01-01T00:00:01Z' }",
            (true, Some(601)),
        ),
    ];
    for (annotations, status, expected) in table {
        let pod = read_pod(&format!(
            "{{ metadata: {{ name: p, annotations: {annotations} }},
               spec: {{ containers: [] }}, status: {status} }}"
        ));
        let row = pod::pod(&pod, &Surroundings::default()).unwrap().row;
        let until = row.do_not_disrupt_until.map(|t| t.seconds);
        assert_eq!((row.do_not_disrupt, until), expected, "{annotations}");
    }
}

#[test]
fn a_pod_fails_when_it_was_started_again_or_cannot_be() {
    let ready = |status: &str| format!("conditions: [{{ type: Ready, status: '{status}' }}]");
    let waits = |reason: &str| {
        format!(
            "containerStatuses: [{{ name: a, image: i, imageID: i, ready: false, restartCount: 0,
            state: {{ waiting: {{ reason: {reason} }} }} }}]"
        )
    };
    let restarted =
        "containerStatuses: [{ name: a, image: i, imageID: i, ready: false, restartCount: 2 }]";
    let table = [
        (format!("{{ phase: Running, {}, {restarted} }}", ready("False")), true),
        (format!("{{ phase: Running, {}, {restarted} }}", ready("True")), false),
        (format!("{{ phase: Running, {}, {} }}", ready("False"), waits("CrashLoopBackOff")), false),
        (format!("{{ phase: Pending, {}, {} }}", ready("False"), waits("ImagePullBackOff")), true),
        (
            format!("{{ phase: Pending, {}, {} }}", ready("False"), waits("ContainerCreating")),
            false,
        ),
        ("{ phase: Pending }".to_owned(), false),
    ];
    for (status, expected) in table {
        let text =
            format!("{{ metadata: {{ name: p }}, spec: {{ containers: [] }}, status: {status} }}");
        let row = pod::pod(&read_pod(&text), &Surroundings::default()).unwrap().row;
        assert_eq!(row.failing, expected, "{status}");
    }
}

#[test]
fn a_daemon_set_and_its_pods_have_one_shape() {
    let set: DaemonSet = read(
        "metadata: { namespace: kube-system, name: cni }
spec:
  selector: {}
  template:
    metadata: { labels: { app: cni } }
    spec: { containers: [{ name: a, resources: { requests: { cpu: 25m } } }] }",
    );
    let (row, shape) = daemon_set::daemon_set(&set, &Surroundings::default()).unwrap();
    let bound = read_pod(
        "metadata:
  namespace: kube-system
  name: cni-1
  labels: { app: cni, controller-revision-hash: x, pod-template-generation: '1' }
  ownerReferences: [{ apiVersion: apps/v1, kind: DaemonSet, name: cni, uid: d, controller: true }]
spec:
  containers: [{ name: a, resources: { requests: { cpu: 25m } } }]
  affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms:
    [{ matchFields: [{ key: metadata.name, operator: In, values: [n1] }] }] } } }",
    );
    let pod = pod::pod(&bound, &Surroundings::default()).unwrap();
    assert!(shape.daemon);
    assert_eq!((pod.shape.shape_id, row.shape_id), (shape.shape_id.clone(), shape.shape_id));
}

#[test]
fn a_spread_without_a_selector_bounds_nothing() {
    let spec = "{ containers: [], topologySpreadConstraints: [{ maxSkew: 1,
        topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule }] }";
    assert_eq!(project("{}", spec).shape.topology_spread, []);
}

#[test]
fn an_empty_namespace_selector_is_every_namespace() {
    let mut around = Surroundings::default();
    let namespace: Namespace = read("metadata: { name: x, labels: { team: t } }");
    around.set_namespace(&namespace);
    let affinity = |selector: &str| {
        let spec = format!(
            "{{ containers: [], affinity: {{ podAffinity: {{ preferredDuringSchedulingIgnoredDuringExecution: [
              {{ weight: 7, podAffinityTerm: {{ topologyKey: zone, namespaces: [own],
                 labelSelector: {{}}, namespaceSelector: {selector} }} }}] }} }} }}"
        );
        let pod = pod_with("{}", &spec);
        pod::pod(&pod, &around).unwrap().shape.preferred_affinity.remove(0)
    };
    let every = affinity("{}");
    assert!(every.all_namespaces && every.namespaces.is_empty() && every.weight == 7);
    let some = affinity("{ matchLabels: { team: t } }");
    assert_eq!(
        (some.all_namespaces, some.namespaces),
        (false, vec!["own".to_owned(), "x".to_owned()])
    );
}
