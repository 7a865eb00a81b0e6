//! NodePools, EC2NodeClasses and claims.

use longshore_proto::types::v1::{ConsolidationPolicy, Operator, SelectorTerm};
use serde_json::json;

use super::read;
use crate::api::{EC2NodeClass, NodeClaim, NodePool};
use crate::project::{claim, node_class, pool};

const POOL: &str = "
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: { name: default, generation: 3 }
spec:
  template:
    metadata: { labels: { team: a } }
    spec:
      nodeClassRef: { group: karpenter.k8s.aws, kind: EC2NodeClass, name: default }
      expireAfter: Never
      terminationGracePeriod: 10m
      taints: [{ key: t, effect: NoSchedule }]
      requirements:
        - { key: beta.kubernetes.io/arch, operator: In, values: [arm64] }
        - { key: karpenter.k8s.aws/instance-family, operator: In, values: [m7g, c7g], minValues: 2 }
  limits: { cpu: 1500m, memory: 80Gi, nodes: 5 }
  weight: 10
  disruption:
    consolidateAfter: 10m
    budgets: [{ nodes: 10%, schedule: '@daily', duration: 8h, reasons: [Drifted] }]
";

#[test]
fn a_class_of_another_group_is_none_of_ours() {
    let of = |class: &str| {
        let kind = format!("{{ {class}, name: default }}");
        let ours = "{ group: karpenter.k8s.aws, kind: EC2NodeClass, name: default }";
        pool::pool(&read::<NodePool>(&POOL.replace(ours, &kind))).unwrap().node_class
    };
    let table = [
        ("group: karpenter.k8s.aws, kind: AWSNodeTemplate", "AWSNodeTemplate/default"),
        ("group: example.com, kind: EC2NodeClass", "EC2NodeClass.example.com/default"),
        ("group: karpenter.sh, kind: EC2NodeClass", "EC2NodeClass.karpenter.sh/default"),
    ];
    for (class, name) in table {
        assert_eq!(of(class), name);
    }
}

#[test]
fn a_pool() {
    let pool = pool::pool(&read::<NodePool>(POOL)).unwrap();
    assert_eq!(pool.node_class, "EC2NodeClass/default");
    assert_eq!(pool.requirements[0].key, "kubernetes.io/arch");
    assert_eq!(pool.requirements[1].min_values, Some(2));
    assert_eq!(pool.expire_after, None);
    assert_eq!(pool.termination_grace_period.unwrap().seconds, 600);
    let limits = pool.limits.unwrap().values;
    assert_eq!((limits["cpu"], limits["memory"], limits["nodes"]), (1500, 80 << 30, 5));
    let disruption = pool.disruption.unwrap();
    assert_eq!(disruption.policy(), ConsolidationPolicy::WhenEmptyOrUnderutilized);
    assert_eq!(disruption.consolidate_after.unwrap().seconds, 600);
    let budget = &disruption.budgets[0];
    assert_eq!((budget.nodes.as_str(), &budget.reasons[..]), ("10%", &["Drifted".to_owned()][..]));
    assert_eq!(budget.duration.unwrap().seconds, 8 * 3600);
    assert_eq!((pool.weight, pool.legacy, pool.generation), (10, false, 3));
    assert_eq!((pool.replicas, pool.dense_spread), (None, false));
    let note = "annotations: { longshore.dev/spread-density: dense }";
    let dense = read::<NodePool>(&POOL.replace("generation: 3", note));
    assert!(pool::pool(&dense).unwrap().dense_spread);
    assert_eq!(disruption.evictions_per_hour, None);
    let note = "annotations: { longshore.dev/evictions-per-hour: '50' }";
    let bounded = pool::pool(&read::<NodePool>(&POOL.replace("generation: 3", note))).unwrap();
    assert_eq!(bounded.disruption.unwrap().evictions_per_hour, Some(50));
    let note = "annotations: { longshore.dev/accept-losses-until: '2026-01-31T09:00:00Z' }";
    let accepting = read::<NodePool>(&POOL.replace("generation: 3", note));
    let until = pool::pool(&accepting).unwrap().losses_accepted_until;
    assert_eq!(until.map(|until| until.seconds), Some(1_769_850_000));
    let soon = note.replace("2026-01-31T", "soon ");
    let soon = read::<NodePool>(&POOL.replace("generation: 3", &soon));
    let fault = pool::pool(&soon).unwrap_err().to_string();
    assert!(fault.contains("accept-losses-until") && fault.contains("such as"), "{fault}");
    let fixed = read::<NodePool>(&POOL.replace("weight: 10", "replicas: 0"));
    assert_eq!(pool::pool(&fixed).unwrap().replicas, Some(0), "none, and yet a number");
}

#[test]
fn a_pool_at_its_defaults() {
    let pool = pool::pool(&read::<NodePool>(
        "
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: { name: bare }
spec:
  template:
    spec:
      nodeClassRef: { group: karpenter.k8s.aws, kind: EC2NodeClass, name: default }
      requirements: []
",
    ))
    .unwrap();
    assert_eq!(pool.expire_after.unwrap().seconds, 720 * 3600);
    assert_eq!(pool.limits, None);
    let disruption = pool.disruption.unwrap();
    assert_eq!(disruption.consolidate_after.unwrap().seconds, 0);
    assert_eq!(disruption.budgets[0].nodes, "10%");
}

#[test]
fn a_pool_with_a_fault_is_a_fault_that_names_the_field() {
    let table = [
        (
            "values: [arm64]",
            "values: []",
            "NodePool/default: spec.template.spec.requirements[beta.kubernetes.io/arch]: operator In \
             needs at least one value, but has []",
        ),
        (
            "minValues: 2",
            "minValues: 51",
            "NodePool/default: spec.template.spec.requirements\
             [karpenter.k8s.aws/instance-family].minValues: minValues 51 is out of range; use 1 to 50",
        ),
        (
            "memory: 80Gi",
            "memory: -80Gi",
            "NodePool/default: spec.limits[memory]: \"-80Gi\" is negative; resources are zero or more",
        ),
        (
            "nodes: 10%",
            "nodes: some",
            "NodePool/default: spec.disruption.budgets[0].nodes: \"some\" is neither a count like 5 nor \
             a percentage like 10%",
        ),
        (
            "generation: 3",
            "annotations: { longshore.dev/spread-density: high }",
            "NodePool/default: metadata.annotations[longshore.dev/spread-density]: \"high\" is unknown; use \
             safe or dense",
        ),
        (
            "generation: 3",
            "annotations: { longshore.dev/evictions-per-hour: few }",
            "NodePool/default: metadata.annotations[longshore.dev/evictions-per-hour]: \"few\" is unknown; use \
             a count such as 50",
        ),
    ];
    for (from, to, expected) in table {
        let object: NodePool = read(&POOL.replace(from, to));
        assert_eq!(pool::pool(&object).unwrap_err().to_string(), expected);
    }
}

const CLASS: &str = "
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: { name: default, generation: 1, uid: u }
spec:
  role: node-role
  amiSelectorTerms: [{ alias: bottlerocket@latest }]
  subnetSelectorTerms: [{ tags: { karpenter.sh/discovery: c } }]
  securityGroupSelectorTerms: [{ id: sg-1 }]
  capacityReservationSelectorTerms:
    - { id: cr-1 }
    - { tags: { team: web }, ownerID: '123456789012', instanceMatchCriteria: targeted }
  kubelet: { maxPods: 100, systemReserved: { cpu: 100m } }
  blockDeviceMappings: [{ deviceName: /dev/xvda, ebs: { volumeSize: 50Gi, volumeType: gp3 } }]
";

#[test]
fn a_node_class() {
    let class = node_class::ec2_node_class(&read::<EC2NodeClass>(CLASS)).unwrap();
    assert_eq!(class.name, "EC2NodeClass/default");
    assert_eq!(class.ami_family, "Bottlerocket");
    assert_eq!(class.ami_terms[0].alias, "bottlerocket@latest");
    assert_eq!(class.block_devices[0].volume_size_bytes, 50 << 30);
    let selected = [
        SelectorTerm { id: "cr-1".to_owned(), ..SelectorTerm::default() },
        SelectorTerm {
            tags: [("team".to_owned(), "web".to_owned())].into(),
            owner: "123456789012".to_owned(),
            instance_match_criteria: "targeted".to_owned(),
            ..SelectorTerm::default()
        },
    ];
    assert_eq!(class.capacity_reservation_terms, selected);
    let kubelet = class.kubelet.unwrap();
    assert_eq!((kubelet.max_pods, kubelet.system_reserved["cpu"].as_str()), (Some(100), "100m"));
    assert_eq!(class.metadata_options.unwrap().http_tokens, "required");
}

#[test]
fn the_hash_names_the_content() {
    let hash = |text: &str| {
        let class: EC2NodeClass = read(text);
        node_class::ec2_node_class(&class).unwrap().hash
    };
    let same = CLASS.replace("generation: 1", "generation: 2").replace("uid: u", "uid: v");
    assert_eq!(hash(CLASS), hash(&same));
    assert_ne!(hash(CLASS), hash(&CLASS.replace("node-role", "another")));
    assert_ne!(hash(CLASS), hash(&CLASS.replace("cr-1", "cr-2")));
    assert_ne!(hash(CLASS), hash(&CLASS.replace("targeted", "open")));
}

#[test]
fn a_node_class_that_is_being_deleted_says_so_and_keeps_its_hash() {
    let gone = CLASS.replace("uid: u", "uid: u, deletionTimestamp: '2026-01-01T00:00:00Z'");
    let project = |text: &str| node_class::ec2_node_class(&read::<EC2NodeClass>(text)).unwrap();
    let (before, after) = (project(CLASS), project(&gone));
    assert_eq!((before.deleting, after.deleting), (false, true));
    assert_eq!(before.hash, after.hash, "no node is replaced because of it");
}

#[test]
fn a_claim_that_has_come_all_the_way() {
    let claim = claim::claim(&read::<NodeClaim>(
        "
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata:
  name: c1
  labels:
    karpenter.sh/nodepool: default
    karpenter.sh/capacity-type: spot
    node.kubernetes.io/instance-type: m7g.large
    topology.kubernetes.io/zone: us-east-1a
  annotations:
    longshore.dev/launch-id: l1
    longshore.dev/replaced-by: c2,c3
    longshore.dev/replacement: 'true'
    longshore.dev/disruption-reason: Drifted
    longshore.dev/max-price-micro-usd-per-hour: '81600'
spec:
  requirements: [{ key: kubernetes.io/arch, operator: NotIn, values: [amd64] }]
  nodeClassRef: { group: karpenter.k8s.aws, kind: EC2NodeClass, name: default }
  resources: { requests: { cpu: 1500m } }
status:
  nodeName: n1
  providerID: aws:///us-east-1a/i-1
  allocatable: { cpu: 1930m, memory: 7Gi }
  lastPodEventTime: '1970-01-01T00:00:09Z'
  conditions:
    - { type: Launched, status: 'True', reason: Launched, message: '', lastTransitionTime: '1970-01-01T00:00:01Z' }
    - { type: Registered, status: 'True', reason: R, message: '', lastTransitionTime: '1970-01-01T00:00:02Z' }
    - { type: Initialized, status: 'Unknown', reason: I, message: '', lastTransitionTime: '1970-01-01T00:00:03Z' }
",
    ))
    .unwrap();
    assert_eq!((claim.pool.as_str(), claim.launch_id.as_str()), ("default", "l1"));
    assert_eq!(claim.requirements[0].operator(), Operator::NotIn);
    assert_eq!(claim.instance_type, "m7g.large");
    assert_eq!(claim.capacity_type().as_str_name(), "CAPACITY_TYPE_SPOT");
    assert_eq!(claim.replaced_by, ["c2", "c3"]);
    assert!(claim.replacement);
    assert_eq!(claim.disruption_reason, "Drifted");
    assert_eq!(claim.max_price_micro_usd_per_hour, 81_600);
    assert_eq!(claim.register_time.unwrap().seconds, 2);
    assert_eq!(claim.initialize_time, None);
    assert_eq!(claim.last_pod_event_time.unwrap().seconds, 9);
    assert_eq!(claim.allocatable.unwrap().cpu_millis, 1930);
    assert_eq!(claim.expire_after.unwrap().seconds, 720 * 3600);
}

#[test]
fn a_pool_that_is_being_deleted_gets_no_more_nodes() {
    let class = json!({ "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "d" });
    let object = json!({
        "metadata": { "name": "p", "deletionTimestamp": "2026-01-01T00:00:00Z" },
        "spec": {
            "replicas": 3,
            "template": { "spec": { "requirements": [], "nodeClassRef": class } },
        },
    });
    let object: crate::api::NodePool = serde_json::from_value(object).unwrap();
    let row = pool::pool(&object).unwrap();
    assert_eq!(row.limits.unwrap().values["nodes"], 0);
    assert_eq!(row.replicas, None);
}
