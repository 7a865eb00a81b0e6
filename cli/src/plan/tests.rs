//! Plans of whole directories, as users see them. `UPDATE_EXPECT=1` rewrites the golden files.

use std::path::{Path, PathBuf};

use expect_test::{ExpectFile, expect_file};
use serde_json::Value;

use super::*;

mod odd_pools;

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/examples/");

fn args(folder: &str) -> PlanArgs {
    PlanArgs { files: vec![PathBuf::from(format!("{EXAMPLES}{folder}"))], ..PlanArgs::default() }
}

fn told(args: &PlanArgs) -> (String, Ending) {
    let answer = run(args, Style::default());
    let lasting = answer.remarks.iter().filter(|remark| !remark.starts_with("note: planned in"));
    let remarks = lasting.map(|remark| format!("{remark}\n")).collect::<String>();
    (format!("{remarks}{}", answer.text).replace(EXAMPLES, ""), answer.ending)
}

fn golden(args: &PlanArgs, expected: &ExpectFile, ending: Ending) {
    let (text, ended) = told(args);
    expected.assert_eq(&text);
    assert_eq!(ended, ending);
}

#[test]
fn a_provisioner_with_twenty_pods_that_would_like_to_spread() {
    golden(&args("w0"), &expect_file!["tests/golden/w0.txt"], Ending::Well);
}

#[test]
fn a_pool_with_slips_works_and_is_warned_of() {
    golden(&args("w1"), &expect_file!["tests/golden/w1.txt"], Ending::Well);
}

#[test]
fn what_each_step_came_to_is_told_when_asked_for() {
    let args = PlanArgs { steps: true, ..args("w1-fixed") };
    golden(&args, &expect_file!["tests/golden/w1-steps.txt"], Ending::Well);
}

#[test]
fn a_pool_without_slips_is_not_warned_of() {
    golden(&args("w1-fixed"), &expect_file!["tests/golden/w1-fixed.txt"], Ending::Well);
}

#[test]
fn a_cluster_without_node_groups() {
    golden(&args("w2-v1"), &expect_file!["tests/golden/w2-v1.txt"], Ending::Well);
}

#[test]
fn a_provider_in_line() {
    golden(&args("w3"), &expect_file!["tests/golden/w3.txt"], Ending::Well);
}

#[test]
fn claims_of_devices_buy_nodes_that_have_them() {
    golden(&args("devices"), &expect_file!["tests/golden/devices.txt"], Ending::Well);
}

#[test]
fn nodes_that_stand_without_pods_are_in_the_price_and_not_in_the_gap() {
    golden(&args("objects"), &expect_file!["tests/golden/objects.txt"], Ending::Well);
    let json = PlanArgs { output: Output::Json, ..args("objects") };
    let json: Value = serde_json::from_str(&run(&json, Style::default()).text).unwrap();
    let number = |value: &Value| value.as_i64().unwrap();
    let all = number(&json["price_micro_usd_per_hour"]);
    let standing = number(&json["standing_price_micro_usd_per_hour"]);
    let bound = &json["lower_bound"];
    let floor = number(&bound["price_micro_usd_per_hour"]);
    let nodes = || json["nodes"].as_array().unwrap().iter();
    let counted = |standing: bool| -> i64 {
        nodes().filter(|n| n["standing"] == standing).map(|n| number(&n["count"])).sum()
    };
    let fees = counted(false) * 1_000;
    let gap = (all - standing + fees - floor) * 1_000_000 / floor;
    assert!(standing > 0, "{json}");
    assert_eq!(number(&bound["gap_ppm"]), gap);
    assert_eq!(counted(true), 5, "three replicas, and two nodes with room for the buffer");
    assert_eq!(json["buffers"][0]["coming"], 2, "{json}");
}

#[test]
fn a_workload_is_explained_down_to_the_offer() {
    let args = PlanArgs { explain: Some("inflate".to_owned()), ..args("objects") };
    golden(&args, &expect_file!["tests/golden/explain.txt"], Ending::Well);
    let json = PlanArgs { output: Output::Json, ..args };
    let json: Value = serde_json::from_str(&run(&json, Style::default()).text).unwrap();
    let place = &json["explanation"]["why"][0]["places"][0];
    let left = place["narrowings"].as_array().unwrap();
    assert!(left.len() > 2 && left[0]["code"] == "MARKET", "{place}");
    assert!(json["explanation"]["why"][0]["one_more"]["price_micro_usd_per_hour"].is_i64());
}

#[test]
fn json_says_the_same_in_numbers() {
    let json = PlanArgs { output: Output::Json, ..args("w1-fixed") };
    let json: Value = serde_json::from_str(&run(&json, Style::default()).text).unwrap();
    assert_eq!(json["region"], "ap-northeast-2");
    let nodes = json["nodes"].as_array().unwrap();
    let price: i64 = nodes
        .iter()
        .map(|node| {
            let each = node["offerings"][0]["price_micro_usd_per_hour"].as_i64().unwrap();
            each * node["count"].as_i64().unwrap()
        })
        .sum();
    assert!(price > 0);
    assert_eq!(json["price_micro_usd_per_hour"], price);
    // Exact for pods of one kind; it is about what they cost with the fee for each node.
    let cost = json["cost_micro_usd_per_hour"].as_i64().unwrap();
    assert!(cost > price);
    assert_eq!(json["lower_bound"]["price_micro_usd_per_hour"], cost);
    assert_eq!(json["violations"], serde_json::json!([]));
}

/// Writes files into a new directory.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    dir
}

fn of(path: &Path) -> PlanArgs {
    PlanArgs { files: vec![path.to_owned()], ..PlanArgs::default() }
}

const POOL: &str = "
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  limits: {cpu: 100}
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
        - {key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}
";

const WEB: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  template: {spec: {containers: [{name: a, resources: {requests: {cpu: 8}}}]}}
";

#[test]
fn what_cannot_be_placed_says_why_and_ends_with_three() {
    let dir = folder(&[("pool.yaml", POOL), ("web.yaml", WEB)]);
    let args = PlanArgs { explain: Some("web".to_owned()), ..of(dir.path()) };
    let answer = run(&args, Style::default());
    assert_eq!(answer.ending, Ending::Attention);
    let text = answer.text;
    assert!(text.contains("3 pods of Deployment/web in namespace shop"), "{text}");
    assert!(text.contains("NodePool/default: requests cpu"), "{text}");
    assert!(text.contains("shop/Deployment/web\n"), "{text}");
    let remarks = answer.remarks.join("\n");
    assert!(remarks.contains("EC2NodeClass/default is not among the objects"), "{remarks}");
    assert!(remarks.contains("region us-east-1, as nothing names one"), "{remarks}");
}

#[test]
fn what_files_cannot_tell_of_a_class_is_said() {
    let class = "
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec:
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{id: subnet-1}]
  securityGroupSelectorTerms: [{id: sg-1}]
  role: nodes
  capacityReservationSelectorTerms: [{tags: {team: web}}]
";
    let dir = folder(&[("pool.yaml", POOL), ("class.yaml", class)]);
    let (text, _) = told(&of(dir.path()));
    let remark = "note: EC2NodeClass/default: planned without its capacity reservations";
    assert!(text.contains(remark), "{text}");
    let theirs = POOL.replace("karpenter.k8s.aws", "example.com");
    let dir = folder(&[("pool.yaml", &theirs), ("class.yaml", class)]);
    let (text, _) = told(&of(dir.path()));
    let warning = "EC2NodeClass.example.com/default is not among the objects";
    assert!(text.contains(warning) && !text.contains(remark), "{text}");
}

#[test]
fn an_unknown_pod_is_answered_with_a_like_one() {
    let dir = folder(&[("pool.yaml", POOL), ("web.yaml", WEB)]);
    let args = PlanArgs { explain: Some("webb".to_owned()), ..of(dir.path()) };
    let answer = run(&args, Style::default());
    assert_eq!(answer.ending, Ending::BadInput);
    assert!(answer.remarks[0].ends_with("did you mean shop/Deployment/web?"), "{answer:?}");
}

#[test]
fn bad_input_ends_with_two_and_says_the_way_out() {
    let negative = WEB.replace("cpu: 8", "cpu: -8");
    let table = [
        (WEB, "no NodePool (karpenter.sh/v1) or Provisioner among the objects; add one"),
        ("a: [1, 2\nb: 3\n", "line 2"),
        (
            &negative,
            "Deployment/shop/web: spec.containers[a].resources.requests[cpu]: \"-8\" is negative",
        ),
    ];
    for (text, part) in table {
        let dir = folder(&[("a.yaml", text)]);
        let answer = run(&of(dir.path()), Style::default());
        assert_eq!((answer.ending, answer.text.as_str()), (Ending::BadInput, ""));
        assert!(answer.remarks[0].contains(part), "{}\nlacks\n{part}", answer.remarks[0]);
    }
    let dir = folder(&[("pool.yaml", POOL)]);
    let args = PlanArgs { region: Some("mars-1".to_owned()), ..of(dir.path()) };
    let answer = run(&args, Style::default());
    assert!(
        answer.remarks[0].contains("--region: no EC2 data for region \"mars-1\""),
        "{answer:?}"
    );
}

#[test]
fn room_on_nodes_that_there_are_is_used_first() {
    let dump = r#"{"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Node",
         "metadata": {"name": "n", "labels": {"kubernetes.io/hostname": "n"}},
         "status": {"allocatable": {"cpu": "20", "memory": "64Gi", "pods": "100"},
                    "conditions": [{"type": "Ready", "status": "True"}]}},
        {"apiVersion": "v1", "kind": "Pod",
         "metadata": {"name": "old", "namespace": "shop", "uid": "u1"},
         "spec": {"nodeName": "n", "containers": [{"name": "a", "resources": {"requests": {"cpu": "3"}}}]},
         "status": {"phase": "Running"}}
    ]}"#;
    let dir = folder(&[("pool.yaml", POOL), ("web.yaml", WEB), ("dump.json", dump)]);
    let args = PlanArgs { explain: Some("shop/web".to_owned()), ..of(dir.path()) };
    let (text, ending) = told(&args);
    assert_eq!(ending, Ending::Attention, "{text}");
    assert!(
        text.contains("3 pods: 0 on 0 new nodes, 2 on nodes that there are, 1 not placed"),
        "{text}"
    );
    assert!(text.contains("2 pods to node n"), "{text}");
    let args = PlanArgs { explain: Some("old".to_owned()), ..of(dir.path()) };
    assert!(told(&args).0.contains("1 pod bound to node n"));
}

#[test]
fn bare_numbers_are_planned_at_their_price() {
    let types = r#"[{"Name": "small", "Arch": "amd64", "Cpu": 2000.0, "Mem": 4096.0, "Pods": 10.0, "Price": 0.05}]"#;
    let dir = folder(&[("types.json", types), ("pods.json", "[[1000, 2048, 4], [1, 1, 0]]")]);
    let numbers = |workload: &str| PlanArgs {
        catalogue: Some(dir.path().join("types.json")),
        workload: Some(dir.path().join(workload)),
        ..PlanArgs::default()
    };
    let (text, ending) = told(&numbers("pods.json"));
    assert_eq!(ending, Ending::Well);
    assert!(text.contains("price        $0.1000/hour\n"), "{text}");
    std::fs::write(dir.path().join("wrong.json"), "[[-1, 2048, 4]]").unwrap();
    let (text, ending) = told(&numbers("wrong.json"));
    assert_eq!(ending, Ending::BadInput);
    assert!(text.contains("wrong.json: [0]: \"-1\" is negative"), "{text}");
}

const TYPES: &str = r#"[{"Name": "small", "Arch": "amd64", "Cpu": 2000, "Mem": 4096, "Pods": 10, "Price": 0.05},
    {"Name": "large", "Arch": "arm64", "Cpu": 9000, "Mem": 65536, "Pods": 10, "Price": 0.4}]"#;

#[test]
fn the_pools_of_manifests_buy_from_a_catalogue_of_numbers() {
    let pool = POOL.replace("values: [m5.large]", "values: [small, large]");
    let web = WEB.replace(
        "spec: {containers",
        "spec: {nodeSelector: {topology.kubernetes.io/zone: test-zone-2, kubernetes.io/os: linux, \
         kubernetes.io/arch: arm64, karpenter.sh/capacity-type: on-demand}, containers",
    );
    let dir = folder(&[("pool.yaml", &pool), ("web.yaml", &web), ("types.json", TYPES)]);
    let files = ["pool.yaml", "web.yaml"].map(|name| dir.path().join(name)).to_vec();
    let catalogue = Some(dir.path().join("types.json"));
    let args = PlanArgs { files, catalogue, output: Output::Json, ..PlanArgs::default() };
    let answer = run(&args, Style::default());
    assert_eq!(answer.ending, Ending::Well, "{answer:?}");
    assert!(!answer.remarks.join("").contains("region"), "{answer:?}");
    let json: Value = serde_json::from_str(&answer.text).unwrap();
    assert_eq!(json["price_micro_usd_per_hour"], 1_200_000, "{json}");
    let offering = &json["nodes"][0]["offerings"][0];
    assert_eq!(offering["instance_type"], "large");
    assert_eq!(offering["zone"], "test-zone-2");
}

#[test]
fn a_trace_is_a_workload() {
    let trace = "name,cpu_milli,memory_mib,num_gpu\na,1000,2048,1\nb,1000,2048,0\nc,500,512,8\n";
    let dir = folder(&[("types.json", TYPES), ("trace.csv", trace)]);
    let (catalogue, workload) = (dir.path().join("types.json"), dir.path().join("trace.csv"));
    let args =
        PlanArgs { catalogue: Some(catalogue), workload: Some(workload), ..PlanArgs::default() };
    let (text, ending) = told(&args);
    assert_eq!(ending, Ending::Well, "{text}");
    assert!(text.contains("3 pods: 3 on 2 new nodes"), "{text}");
}
