//! Sick and healthy clusters, a check at a time.

use serde_json::{Value, json};

use super::facts::{Fetched, Kind};
use super::*;

mod aws;
mod takeover;

fn facts(kinds: &[(Kind, Value)]) -> Facts {
    let mut facts = Facts::default();
    for (kind, objects) in kinds {
        facts.put(*kind, Fetched::Objects(objects.as_array().unwrap().clone()));
    }
    facts
}

/// Asserts that a check finds exactly one thing, with these parts of message, evidence and remedy.
fn finds(
    check: fn(&Facts) -> Vec<Finding>,
    kinds: &[(Kind, Value)],
    object: &str,
    parts: [&str; 3],
) {
    let found = check(&facts(kinds));
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].object, object);
    let texts = [&found[0].message, &found[0].evidence, &found[0].remedy];
    for (text, part) in texts.into_iter().zip(parts) {
        assert!(text.contains(part), "{text}\nlacks\n{part}");
    }
}

fn is_well(check: fn(&Facts) -> Vec<Finding>, kinds: &[(Kind, Value)]) {
    assert_eq!(check(&facts(kinds)), Vec::new());
}

fn definitions() -> Vec<Value> {
    longshore_watcher::api::Kind::ALL.into_iter().map(|kind| json!(kind.definition())).collect()
}

#[test]
fn definitions_must_be_there_and_current() {
    let kind = Kind::CustomResourceDefinition;
    is_well(definitions::check, &[(kind, json!(definitions()))]);
    let missing: Vec<Value> = definitions().into_iter().skip(1).collect();
    let name = "CustomResourceDefinition/nodepools.karpenter.sh";
    let parts = ["is missing", "karpenter.sh/v1 NodePool", "karpenter.sh_nodepools.yaml"];
    finds(definitions::check, &[(kind, json!(missing))], name, parts);

    let mut other = definitions();
    other[0]["spec"]["versions"][0]["name"] = "v1beta1".into();
    let parts = ["does not serve v1", "v1beta1", "kubectl apply"];
    finds(definitions::check, &[(kind, json!(other))], name, parts);

    let mut older = definitions();
    let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    older[0].pointer_mut(spec).unwrap().as_object_mut().unwrap().remove("weight");
    let parts = ["is older", "spec.weight", "kubectl apply"];
    finds(definitions::check, &[(kind, json!(older))], name, parts);
    assert_eq!(
        definitions::check(&Facts::default()),
        Vec::new(),
        "what was not read is not missing"
    );
}

#[test]
fn dropped_fields_are_found_in_what_was_applied() {
    let applied = json!({"spec": {"limit": {"cpu": 20}, "limits": {"cpu": 1}}}).to_string();
    let pool = |applied: &str| {
        json!([{"metadata": {"name": "p", "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": applied,
        }}, "spec": {"limits": {"cpu": "1"}}}])
    };
    let parts = ["spec.limit is unknown", "spec.limit was applied", "write limits for spec.limit"];
    finds(slips::unknown_fields, &[(Kind::NodePool, pool(&applied))], "NodePool/p", parts);
    is_well(slips::unknown_fields, &[(Kind::NodePool, pool("{}"))]);
    is_well(slips::no_limits, &[(Kind::NodePool, pool("{}"))]);
    let bare = json!([{"metadata": {"name": "p"}, "spec": {}}]);
    let parts = ["no limit", "spec.limits is empty", "kubectl patch nodepools.karpenter.sh p"];
    finds(slips::no_limits, &[(Kind::NodePool, bare)], "NodePool/p", parts);
}

#[test]
fn fields_on_which_nothing_acts_are_found() {
    let class = |spec: Value| json!([{"metadata": {"name": "c"}, "spec": spec}]);
    let parts = ["not acted on yet", "spec.placementGroupSelector is set", "another class"];
    let grouped = class(json!({"placementGroupSelector": {"name": "g"}}));
    finds(slips::unread_fields, &[(Kind::EC2NodeClass, grouped)], "EC2NodeClass/c", parts);
    is_well(slips::unread_fields, &[(Kind::EC2NodeClass, class(json!({"role": "r"})))]);
}

#[test]
fn false_conditions_are_repeated_once() {
    let class = |status: &str| {
        json!([{"metadata": {"name": "c"}, "status": {"conditions": [
            {"type": "SubnetsReady", "status": status, "reason": "SubnetsNotFound",
             "message": "no subnet has the tag; tag one", "lastTransitionTime": "2026-01-01T00:00:00Z"},
            {"type": "Ready", "status": status, "reason": "x", "message": "sum"},
        ]}}])
    };
    let parts = [
        "SubnetsReady is false: no subnet has the tag; tag one",
        "SubnetsNotFound",
        "kubectl describe",
    ];
    finds(conditions::check, &[(Kind::EC2NodeClass, class("False"))], "EC2NodeClass/c", parts);
    is_well(conditions::check, &[(Kind::EC2NodeClass, class("True"))]);
    let claim = json!([{"metadata": {"name": "n"}, "status": {"conditions": [
        {"type": "Consolidatable", "status": "False", "message": "busy"},
    ]}}]);
    is_well(conditions::check, &[(Kind::NodeClaim, claim)]);
}

#[test]
fn a_node_role_must_be_mapped_as_a_node() {
    let class = json!([{"metadata": {"name": "c"}, "spec": {"role": "NodeRole"}}]);
    let map = |rows: &str| json!([{"metadata": {"name": "aws-auth"}, "data": {"mapRoles": rows}}]);
    let with = |rows: &str| [(Kind::EC2NodeClass, class.clone()), (Kind::ConfigMap, map(rows))];
    let good = "- rolearn: arn:aws:iam::1:role/NodeRole\n  username: system:node:{{EC2PrivateDNSName}}\n  \
                groups: [system:bootstrappers, system:nodes]\n";
    is_well(identity::node_roles, &with(good));
    let parts = ["unless an access entry", "0 entries", "create-access-entry"];
    finds(identity::node_roles, &with(""), "Role/NodeRole", parts);
    let bad = good.replace(", system:nodes", "");
    let parts = ["not as a node", "system:bootstrappers", "system:nodes"];
    finds(identity::node_roles, &with(&bad), "Role/NodeRole", parts);
    let node = json!([{
        "metadata": {"labels": {"karpenter.sh/nodepool": "p"}},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }]);
    let mut joined = with("").to_vec();
    joined.push((Kind::Node, node));
    is_well(identity::node_roles, &joined);
}

fn own_pod(spec: Value) -> Value {
    json!([{"metadata": {"name": "l-0", "namespace": "kube-system", "labels": {
        "app.kubernetes.io/name": "longshore", "app.kubernetes.io/instance": "longshore",
        "app.kubernetes.io/component": "actuator",
    }}, "spec": spec}])
}

#[test]
fn a_service_account_needs_its_role() {
    let account = |annotations: Value| json!([{"metadata": {"name": "l", "namespace": "kube-system", "annotations": annotations}}]);
    let pod = own_pod(json!({"serviceAccountName": "l"}));
    let with =
        |annotations| [(Kind::ServiceAccount, account(annotations)), (Kind::Pod, pod.clone())];
    let object = "ServiceAccount/kube-system/l";
    let parts = ["has no role", "no annotation eks.amazonaws.com/role-arn", "kubectl annotate"];
    finds(identity::service_accounts, &with(json!({})), object, parts);
    let role = json!({"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/r"});
    is_well(identity::service_accounts, &with(role.clone()));
    let mut odd = role;
    odd["eks.amazonaws.com/sts-regional-endpoints"] = "yes".into();
    let parts = ["neither", "\"yes\"", "sts-regional-endpoints=true"];
    finds(identity::service_accounts, &with(odd), object, parts);
}

#[test]
fn our_own_pods_stay_off_managed_nodes() {
    let pools = (Kind::NodePool, json!([{"metadata": {"name": "p"}}]));
    let nodes = (
        Kind::Node,
        json!([
            {"metadata": {"name": "ours", "labels": {"karpenter.sh/nodepool": "p"}}},
            {"metadata": {"name": "fargate", "labels": {"eks.amazonaws.com/compute-type": "fargate"}}},
            {"metadata": {"name": "group", "labels": {}}},
        ]),
    );
    let with = |spec: Value| [pools.clone(), nodes.clone(), (Kind::Pod, own_pod(spec))];
    let object = "Pod/kube-system/l-0";
    let parts = ["runs on a node that it manages", "node ours", "DoesNotExist"];
    finds(placement::own_pods, &with(json!({"nodeName": "ours"})), object, parts);
    let parts = ["may land", "no required node affinity", "kubectl patch deployment"];
    finds(placement::own_pods, &with(json!({"nodeName": "group"})), object, parts);
    is_well(placement::own_pods, &with(json!({"nodeName": "fargate"})));
    let affinity = json!({"nodeName": "group", "affinity": {"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "karpenter.sh/nodepool", "operator": "DoesNotExist"}]},
        ]},
    }}});
    is_well(placement::own_pods, &with(affinity));
}

#[test]
fn core_dns_may_run_on_fargate_where_nothing_else_is() {
    let dns = |value: &str| {
        (
            Kind::Deployment,
            json!([{
                "metadata": {"name": "coredns", "namespace": "kube-system"},
                "spec": {"template": {"metadata": {"annotations": {"eks.amazonaws.com/compute-type": value}}}},
            }]),
        )
    };
    let nodes =
        |labels: Value| (Kind::Node, json!([{"metadata": {"name": "n", "labels": labels}}]));
    let fargate = || nodes(json!({"eks.amazonaws.com/compute-type": "fargate"}));
    let object = "Deployment/kube-system/coredns";
    let parts = ["kept off Fargate", "0 replicas ready", "\"op\":\"remove\""];
    finds(placement::core_dns, &[dns("ec2"), fargate()], object, parts);
    is_well(placement::core_dns, &[dns("fargate"), fargate()]);
    is_well(placement::core_dns, &[dns("ec2"), nodes(json!({}))]);
}

#[test]
fn an_autoscaler_at_a_full_pool_is_told() {
    let pool = |used: &str| {
        (
            Kind::NodePool,
            json!([{
                "metadata": {"name": "p"}, "spec": {"limits": {"cpu": 20}},
                "status": {"resources": {"cpu": used}},
            }]),
        )
    };
    let scaler = (
        Kind::HorizontalPodAutoscaler,
        json!([{
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "maxReplicas": 50},
            "status": {"desiredReplicas": 40},
        }]),
    );
    let deployment = (
        Kind::Deployment,
        json!([{
            "metadata": {"name": "web", "namespace": "shop"}, "status": {"readyReplicas": 18},
        }]),
    );
    let with = |used| [pool(used), scaler.clone(), deployment.clone()];
    let object = "HorizontalPodAutoscaler/shop/web";
    let parts =
        ["asks for 40 pods, of which 18", "uses 19500m of its limit of 20 cpu", "spec.limits"];
    finds(autoscaling::check, &with("19500m"), object, parts);
    is_well(autoscaling::check, &with("10"));
}

#[test]
fn budgets_that_never_yield_are_told() {
    let budget = |spec: Value| {
        (
            Kind::PodDisruptionBudget,
            json!([{"metadata": {"name": "b", "namespace": "shop"}, "spec": spec}]),
        )
    };
    let parts = ["never allows", "maxUnavailable is 0", "kubectl patch pdb -n shop b"];
    let object = "PodDisruptionBudget/shop/b";
    finds(placement::blocking_budgets, &[budget(json!({"maxUnavailable": 0}))], object, parts);
    is_well(placement::blocking_budgets, &[budget(json!({"minAvailable": 1}))]);
}

#[test]
fn a_provisioner_comes_with_the_manifest_it_amounts_to() {
    let provisioner = json!([{"apiVersion": "karpenter.sh/v1alpha5", "kind": "Provisioner",
    "metadata": {"name": "dev"}, "spec": {
        "provider": {"instanceProfile": "nodes", "amiFamily": "Bottlerocket",
            "subnetSelector": {"Name": "a*"}, "securityGroupSelector": {"Name": "b"}},
        "requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}],
        "limits": {"resources": {"cpu": "10"}}, "ttlSecondsAfterEmpty": 30,
    }}]);
    let found = legacy::check(&facts(&[(Kind::Provisioner, provisioner)]));
    assert_eq!((found.len(), found[0].object.as_str()), (1, "Provisioner/dev"));
    let text = found[0].remedy.strip_prefix("kubectl apply -f - <<'END'\n").unwrap();
    let text = text.strip_suffix("END").unwrap();
    let manifests: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
    assert_eq!(manifests[0]["kind"], "EC2NodeClass");
    assert_eq!(manifests[0]["spec"]["amiSelectorTerms"], json!([{"alias": "bottlerocket@latest"}]));
    assert_eq!(manifests[1]["spec"]["limits"]["cpu"], "10000m");
    assert_eq!(manifests[1]["spec"]["disruption"]["consolidateAfter"], "30s");
    assert_eq!(manifests[1]["spec"]["template"]["spec"]["expireAfter"], "Never");
    for (manifest, kind) in manifests.iter().zip(["EC2NodeClass", "NodePool"]) {
        let kind =
            longshore_watcher::api::Kind::of(manifest).filter(|it| it.name() == kind).unwrap();
        assert_eq!(longshore_watcher::api::unknown_fields(kind, manifest), []);
    }
}

#[test]
fn a_report_says_what_is_well_what_is_not_and_what_was_not_seen() {
    let mut sick = facts(&[(Kind::NodePool, json!([{"metadata": {"name": "p"}, "spec": {}}]))]);
    sick.put(Kind::Pod, Fetched::Unread("forbidden".to_owned()));
    let answer = super::answer(&sick, None, Output::Table, Style::default());
    assert_eq!(answer.ending, Ending::Attention);
    assert!(
        answer.text.contains("advice   pools without limits\n         NodePool/p: this pool has")
    );
    assert!(answer.text.contains("ok       CoreDNS can run\n"));
    assert!(answer.remarks[0].contains("Pod objects could not be read (forbidden)"));
    let json = super::answer(&sick, None, Output::Json, Style::default()).text;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["checks"][5]["findings"][0]["severity"], "advice");
    assert_eq!(
        super::answer(&facts(&[]), None, Output::Table, Style::default()).ending,
        Ending::Well
    );
}
