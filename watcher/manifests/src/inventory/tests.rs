//! Documents in, objects and pods out.

use super::*;
use crate::manifest::parse;

const POOL: &str = "
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  limit: {cpu: 20}
  weight:
  template:
    metadata:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements: []
";

fn taken(text: &str) -> Result<Inventory, Faults> {
    take(parse("f.yaml", text).unwrap())
}

fn faults(text: &str) -> Vec<String> {
    taken(text).unwrap_err().0
}

fn deployment(name: &str, replicas: i64) -> String {
    format!(
        "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}}}\nspec:\n  replicas: \
         {replicas}\n  template: {{spec: {{containers: [{{name: a, resources: {{requests: {{cpu: 1}}}}}}]}}}}\n"
    )
}

fn pod(name: &str, owner: &str, phase: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\n  ownerReferences: [{{apiVersion: \
         apps/v1, kind: StatefulSet, name: {owner}, uid: u, controller: true}}]\nspec: {{containers: \
         [{{name: a}}], nodeName: node-1}}\nstatus: {{phase: {phase}}}\n"
    )
}

#[test]
fn slips_are_warned_of_and_change_nothing() {
    let found = taken(POOL).unwrap();
    assert_eq!(
        found.warnings,
        [
            "f.yaml:2: NodePool/default: spec.limit is unknown and will be ignored; did you mean limits?",
            "f.yaml:2: NodePool/default: this pool has no limit; set spec.limits to bound what it may cost",
        ]
    );
    assert_eq!(found.objects.len(), 1);
}

#[test]
fn replicas_become_pods_without_names() {
    let found = taken(&[POOL, &deployment("web", 3), &deployment("none", 0)].concat()).unwrap();
    assert_eq!(found.pods.iter().map(|group| group.count).collect::<Vec<_>>(), [3]);
    let Some(Kind::PodShape(shape)) = &found.objects[0].kind else { panic!("a shape first") };
    assert_eq!(shape.shape_id, found.pods[0].shape_id);
    assert_eq!(shape.owner, "Deployment/web");
    assert_eq!(shape.requests.as_ref().unwrap().cpu_millis, 1000);
}

#[test]
fn pods_that_exist_are_not_counted_twice() {
    let set = deployment("db", 3).replace("kind: Deployment", "kind: StatefulSet");
    let pods = [
        pod("db-0", "db", "Running"),
        pod("db-1", "db", "Failed"),
        pod("other-0", "other", "Running"),
    ];
    let found = taken(&[set, pods.concat()].concat()).unwrap();
    assert_eq!(found.pods.iter().map(|group| group.count).collect::<Vec<_>>(), [2]);
}

#[test]
fn the_last_of_equal_objects_counts() {
    let found = taken(&[deployment("web", 3), deployment("web", 5)].concat()).unwrap();
    assert_eq!(found.pods.iter().map(|group| group.count).collect::<Vec<_>>(), [5]);
}

#[test]
fn every_fault_is_named_with_place_object_field_and_way_out() {
    let negative = deployment("web", 1).replace("cpu: 1", "cpu: -1");
    let operator = POOL.replace("[]", "[{key: a, operator: Inn, values: [b]}]");
    let old = POOL.replace("karpenter.sh/v1", "karpenter.sh/v1beta1");
    let unnamed = deployment("web", 1).replace("name: web", "app: web");
    let all = [&negative, "---", &operator, "---", &old, &unnamed, "---\nnothing: here\n"].concat();
    let found = faults(&all);
    let expected = [
        "NodePool/default: spec.template.spec.requirements[0].operator: unknown variant `Inn`, expected one of `In`,",
        "NodePool: apiVersion \"karpenter.sh/v1beta1\" is not read; write the object as karpenter.sh/v1",
        "Deployment: metadata.name: is missing; set it",
        "no Kubernetes object; give it apiVersion, kind and metadata.name",
        "Deployment/default/web: spec.containers[a].resources.requests[cpu]: \"-1\" is negative",
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (fault, part) in found.iter().zip(expected) {
        assert!(fault.starts_with("f.yaml:") && fault.contains(part), "{fault}\nlacks\n{part}");
    }
}

#[test]
fn replicas_below_zero_are_refused() {
    assert!(faults(&deployment("web", -1))[0].contains("spec.replicas: \"-1\" is negative"));
}

#[test]
fn nodes_alone_are_warned_of() {
    let node = "apiVersion: v1\nkind: Node\nmetadata: {name: node-1}\n---\napiVersion: v1\nkind: Service\n";
    let found = taken(node).unwrap();
    assert!(
        found.warnings[0].starts_with("1 nodes but no pods were given"),
        "{:?}",
        found.warnings
    );
    assert_eq!(found.warnings[1], "left out, as no part of a plan: 1 Service");
}

fn buffer(reference: &str, number: &str) -> String {
    format!(
        "---\napiVersion: autoscaling.x-k8s.io/v1beta1\nkind: CapacityBuffer\nmetadata: {{name: room}}\n\
         spec: {{{reference}, {number}}}\n"
    )
}

const WEB: &str = "scalableRef: {apiGroup: apps, kind: Deployment, name: web}";

fn rooms(found: &Inventory) -> Vec<i64> {
    let kinds = found.objects.iter().filter_map(|object| object.kind.as_ref());
    let rooms = kinds.filter_map(|kind| {
        if let Kind::CapacityBuffer(buffer) = kind { Some(buffer.replicas) } else { None }
    });
    rooms.collect()
}

#[test]
fn buffers_keep_room_for_what_they_refer_to_wherever_it_stands() {
    let found = taken(&[buffer(WEB, "percentage: 50"), deployment("web", 5)].concat()).unwrap();
    assert_eq!((rooms(&found), found.warnings.len()), (vec![3], 0));
    let template = "---\napiVersion: v1\nkind: PodTemplate\nmetadata: {name: t}\n\
                    template: {spec: {containers: [{name: a, resources: {requests: {cpu: 2}}}]}}\n";
    let of_template = buffer("podTemplateRef: {name: t}", "limits: {cpu: 7}");
    let found = taken(&[&of_template, template].concat()).unwrap();
    assert_eq!(rooms(&found), [3]);
}

#[test]
fn buffers_that_cannot_be_used_are_told_of() {
    let found = taken(&buffer(WEB, "replicas: 2")).unwrap();
    assert_eq!(rooms(&found), Vec::<i64>::new());
    let expected = "f.yaml:2: CapacityBuffer/default/room: counts as no room: Deployment/default/web is \
                    not among the objects; add it";
    assert_eq!(found.warnings, [expected]);
    let strange = WEB.replace("Deployment", "CronJob");
    let found = faults(&buffer(&strange, "replicas: 2"));
    assert!(found[0].contains("room: spec.scalableRef: apps/CronJob is not read"), "{found:?}");
    let found = faults(&[buffer(WEB, "limits: {pods: -1}"), deployment("web", 1)].concat());
    assert!(found[0].contains("CapacityBuffer/default/room: spec.limits"), "{found:?}");
}

#[test]
fn claims_of_devices_are_read_wherever_their_template_stands() {
    let claims = "resourceClaims: [{name: gpu, resourceClaimTemplateName: one}], containers:";
    let job = deployment("train", 2).replace("containers:", claims);
    let class = "---\napiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: gpu.amd.com}\n\
                 spec: {selectors: [{cel: {expression: device.driver == 'gpu.amd.com'}}]}\n";
    let template = "---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {name: one}\n\
                    spec: {spec: {devices: {requests: [{name: a, exactly: {deviceClassName: gpu.amd.com}}]}}}\n";
    let slice = "---\napiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: s}\n\
                 spec: {driver: gpu.amd.com, nodeName: node-1, devices: [{name: a}, {name: b}],\n\
                 \x20 pool: {name: node-1, generation: 1, resourceSliceCount: 1}}\n";
    let node = "---\napiVersion: v1\nkind: Node\nmetadata: {name: node-1}\n";
    let found = taken(&[&job, class, template, slice, node].concat()).unwrap();
    let gpus = |resources: &Option<longshore_proto::types::v1::Resources>| {
        resources.as_ref().unwrap().extended.get("amd.com/gpu").copied()
    };
    let kinds: Vec<_> = found.objects.iter().filter_map(|object| object.kind.as_ref()).collect();
    let asked = kinds.iter().find_map(|kind| {
        if let Kind::PodShape(shape) = kind { gpus(&shape.requests) } else { None }
    });
    let had = kinds
        .iter()
        .find_map(|kind| if let Kind::Node(node) = kind { gpus(&node.allocatable) } else { None });
    assert_eq!((asked, had), (Some(1), Some(2)));
    let old = class.replace("/v1\n", "/v1beta1\n");
    assert!(faults(&old)[0].contains("write the object as resource.k8s.io/v1"), "{old}");
}
