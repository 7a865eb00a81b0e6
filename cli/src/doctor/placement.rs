//! Where pods may run: our own, CoreDNS, and pods that never let go of a node.
//!
//! Invariant: a node made by a pool is known by its label, one of Fargate by its compute type.

use longshore_watcher::api::keys::labels::{EKS_COMPUTE_TYPE, NODE_POOL, PROVISIONER_NAME};
use serde_json::{Value, json};

use super::facts::{Facts, Kind, annotation, label, list, name};
use super::{Finding, Severity};

/// Field of a required affinity.
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

fn is_managed(node: &Value) -> bool {
    label(node, NODE_POOL).or(label(node, PROVISIONER_NAME)).is_some()
}

fn is_fargate(node: &Value) -> bool {
    label(node, EKS_COMPUTE_TYPE) == Some("fargate")
}

/// Our own pods that run, or may run, on nodes that they manage.
pub fn own_pods(facts: &Facts) -> Vec<Finding> {
    let pools = facts.of(Kind::NodePool).chain(facts.of(Kind::Provisioner)).count();
    let pods = facts.of(Kind::Pod).filter(|_| pools > 0);
    pods.filter_map(|pod| own_pod(pod, facts)).collect()
}

fn own_pod(pod: &Value, facts: &Facts) -> Option<Finding> {
    let host = facts.of(Kind::Node).find(|n| n["metadata"]["name"] == pod["spec"]["nodeName"]);
    let on_managed = host.is_some_and(is_managed);
    if !on_managed && (keeps_away(pod) || host.is_some_and(is_fargate)) {
        return None;
    }
    let (severity, message, evidence) = if on_managed {
        let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
        let message = "runs on a node that it manages: a consolidation could remove both";
        (Severity::Problem, message, format!("node {node} has the label {NODE_POOL}"))
    } else {
        let message = "may land on a node that it manages";
        let evidence =
            "no required node affinity keeps it off, and it is not on Fargate".to_owned();
        (Severity::Advice, message, evidence)
    };
    let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default();
    let owner = label(pod, "app.kubernetes.io/instance").unwrap_or("longshore");
    let off = json!({ "key": NODE_POOL, "operator": "DoesNotExist" });
    let terms = json!({ "nodeSelectorTerms": [{ "matchExpressions": [off] }] });
    let affinity = json!({ "nodeAffinity": { REQUIRED: terms } });
    let patch = json!({ "spec": { "template": { "spec": { "affinity": affinity } } } });
    Some(Finding {
        severity,
        object: name("Pod", pod),
        message: message.to_owned(),
        evidence,
        remedy: format!(
            "kubectl patch deployment -n {namespace} {owner} --type merge -p '{patch}'"
        ),
    })
}

/// True when every alternative of the required affinity, or the selector, rules managed nodes out.
fn keeps_away(pod: &Value) -> bool {
    let selector = &pod["spec"]["nodeSelector"];
    let elsewhere =
        |key: &str| matches!(key, "eks.amazonaws.com/nodegroup" | "alpha.eksctl.io/nodegroup-name");
    if selector.as_object().into_iter().flatten().any(|(key, _)| elsewhere(key)) {
        return true;
    }
    let required = &pod["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"];
    let mut terms = list(required).peekable();
    terms.peek().is_some()
        && terms.all(|term| {
            list(&term["matchExpressions"]).any(|it| {
                let key = it["key"].as_str().unwrap_or_default();
                let absent = it["operator"] == "DoesNotExist";
                let present = it["operator"] == "In" || it["operator"] == "Exists";
                (absent && [NODE_POOL, PROVISIONER_NAME].contains(&key))
                    || (present && elsewhere(key))
            })
        })
}

/// CoreDNS kept off Fargate in a cluster where nothing else is sure to be there.
pub fn core_dns(facts: &Facts) -> Vec<Finding> {
    let dns = facts.of(Kind::Deployment).find(|it| {
        it["metadata"]["name"] == "coredns" && it["metadata"]["namespace"] == "kube-system"
    });
    let groups = facts.of(Kind::Node).any(|node| !is_managed(node) && !is_fargate(node));
    let Some(dns) = dns.filter(|_| facts.read(Kind::Node) && !groups) else { return Vec::new() };
    let template = &dns["spec"]["template"];
    if annotation(template, EKS_COMPUTE_TYPE) != Some("ec2") {
        return Vec::new();
    }
    let ready = dns["status"]["readyReplicas"].as_i64().unwrap_or(0);
    let key = EKS_COMPUTE_TYPE.replace('/', "~1");
    let path = format!("/spec/template/metadata/annotations/{key}");
    let patch = json!([{ "op": "remove", "path": path }]);
    vec![Finding {
        severity: if ready == 0 { Severity::Problem } else { Severity::Advice },
        object: name("Deployment", dns),
        message:
            "is kept off Fargate, and the cluster has no node groups: DNS waits for a node that \
                  needs DNS"
                .to_owned(),
        evidence: format!("annotation {EKS_COMPUTE_TYPE}: ec2; {ready} replicas ready"),
        remedy: format!("kubectl patch deployment coredns -n kube-system --type json -p='{patch}'"),
    }]
}

/// Budgets that never allow an eviction: their nodes can be neither consolidated nor renewed.
pub fn blocking_budgets(facts: &Facts) -> Vec<Finding> {
    let budgets = facts.of(Kind::PodDisruptionBudget).filter_map(|budget| {
        let spec = &budget["spec"];
        let none = |value: &Value| *value == 0 || *value == "0" || *value == "0%";
        let rule = match () {
            () if none(&spec["maxUnavailable"]) => "maxUnavailable is 0",
            () if spec["minAvailable"] == "100%" => "minAvailable is 100%",
            () => return None,
        };
        let text = |field: &str| budget["metadata"][field].as_str().unwrap_or_default();
        let (namespace, plain) = (text("namespace"), text("name"));
        Some(Finding {
            severity: Severity::Advice,
            object: name("PodDisruptionBudget", budget),
            message: "never allows an eviction: nodes with its pods are neither consolidated nor \
                      renewed before terminationGracePeriod"
                .to_owned(),
            evidence: rule.to_owned(),
            remedy: format!(
                "kubectl patch pdb -n {namespace} {plain} --type merge -p \
                 '{{\"spec\":{{\"minAvailable\":null,\"maxUnavailable\":1}}}}'"
            ),
        })
    });
    budgets.collect()
}
