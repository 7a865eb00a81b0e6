//! Who may do what: nodes that join, and pods that speak to AWS.
//!
//! Invariant: access entries cannot be seen through the Kubernetes API; a finding about a missing
//! mapping says so, and is not made while nodes of the class do join.

use std::collections::BTreeSet;

use longshore_watcher::api::keys::annotations::{ROLE_ARN, STS_REGIONAL_ENDPOINTS};
use longshore_watcher::api::keys::labels::{NODE_POOL, PROVISIONER_NAME};
use serde_json::Value;

use super::facts::{Facts, Kind, annotation, is_true, label, list, name};
use super::{Finding, Severity};

const GROUPS: [&str; 2] = ["system:bootstrappers", "system:nodes"];
const USER: &str = "system:node:{{EC2PrivateDNSName}}";

/// Roles of node classes that `aws-auth` does not map, or maps wrongly.
pub fn node_roles(facts: &Facts) -> Vec<Finding> {
    if !facts.read(Kind::ConfigMap) {
        return Vec::new();
    }
    let map = facts.of(Kind::ConfigMap).find(|it| it["metadata"]["name"] == "aws-auth");
    let rows = map.map(rows).unwrap_or_default();
    let joined = facts.of(Kind::Node).any(|node| {
        let ours = label(node, NODE_POOL).or(label(node, PROVISIONER_NAME)).is_some();
        ours && is_true(node, "Ready")
    });
    let classes = facts.of(Kind::EC2NodeClass);
    let roles: BTreeSet<&str> = classes.filter_map(|it| it["spec"]["role"].as_str()).collect();
    roles.into_iter().filter_map(|role| of_role(role, &rows, joined)).collect()
}

/// The entries of `mapRoles`; none when the text is no list.
fn rows(map: &Value) -> Vec<Value> {
    let text = map["data"]["mapRoles"].as_str().unwrap_or_default();
    serde_saphyr::from_str::<Vec<Value>>(text).unwrap_or_default()
}

fn of_role(role: &str, rows: &[Value], joined: bool) -> Option<Finding> {
    let plain = role.rsplit('/').next().unwrap_or(role);
    let is_it = |row: &&Value| {
        row["rolearn"].as_str().and_then(|arn| arn.rsplit('/').next()) == Some(plain)
    };
    let (message, evidence) = match rows.iter().find(is_it) {
        None if joined => return None,
        None => (
            "is not in aws-auth: unless an access entry maps it, instances boot and never join",
            format!(
                "mapRoles has {} entries, none for it, and no node of ours is ready",
                rows.len()
            ),
        ),
        Some(row) => {
            let groups: Vec<&str> = list(&row["groups"]).filter_map(Value::as_str).collect();
            if row["username"] == USER && GROUPS.iter().all(|group| groups.contains(group)) {
                return None;
            }
            ("is mapped in aws-auth, but not as a node", format!("entry: {row}"))
        }
    };
    let arn = format!("arn:aws:iam::ACCOUNT:role/{plain}");
    Some(Finding {
        severity: Severity::Problem,
        object: format!("Role/{plain}"),
        message: message.to_owned(),
        evidence,
        remedy: format!(
            "aws eks create-access-entry --cluster-name CLUSTER --type EC2_LINUX \
             --principal-arn {arn}\nor, in ConfigMap kube-system/aws-auth under mapRoles:\n\
             - rolearn: {arn}\n  username: {USER}\n  groups: [{}]",
            GROUPS.join(", ")
        ),
    })
}

/// Service accounts of our pods that cannot speak to AWS as they should.
pub fn service_accounts(facts: &Facts) -> Vec<Finding> {
    let pods: Vec<&Value> = facts.of(Kind::Pod).filter(|pod| speaks_to_aws(pod)).collect();
    let accounts = facts.of(Kind::ServiceAccount).filter(|account| {
        pods.iter().any(|pod| {
            let named = pod["spec"]["serviceAccountName"].as_str().unwrap_or("default");
            account["metadata"]["name"] == named
                && account["metadata"]["namespace"] == pod["metadata"]["namespace"]
        })
    });
    accounts.flat_map(|account| of_account(account, &pods)).collect()
}

/// The scheduler holds no credentials; the watcher does where it runs everything (`up`).
fn speaks_to_aws(pod: &Value) -> bool {
    match label(pod, "app.kubernetes.io/component") {
        Some("scheduler" | "metrics") => false,
        Some("watcher") => list(&pod["spec"]["containers"])
            .any(|it| list(&it["command"]).chain(list(&it["args"])).any(|word| word == "up")),
        _ => true,
    }
}

fn of_account(account: &Value, pods: &[&Value]) -> Vec<Finding> {
    let full = name("ServiceAccount", account);
    let text = |field: &str| account["metadata"][field].as_str().unwrap_or_default();
    let annotate = |pair: &str| {
        let (namespace, plain) = (text("namespace"), text("name"));
        format!("kubectl annotate --overwrite serviceaccount -n {namespace} {plain} {pair}")
    };
    let mut found = Vec::new();
    let finding = |message: &str, evidence: String, remedy: String| Finding {
        severity: Severity::Problem,
        object: full.clone(),
        message: message.to_owned(),
        evidence,
        remedy,
    };
    let identified = pods.iter().any(|pod| has_pod_identity(pod));
    if annotation(account, ROLE_ARN).is_none() && !identified {
        found.push(finding(
            "has no role: its pods act as the node's role, which may not launch instances",
            format!("no annotation {ROLE_ARN}, and its pods have no pod identity"),
            annotate(&format!("{ROLE_ARN}=arn:aws:iam::ACCOUNT:role/ROLE"))
                + "   # then restart its pods",
        ));
    }
    let regional = annotation(account, STS_REGIONAL_ENDPOINTS);
    if let Some(value) = regional.filter(|value| !matches!(*value, "true" | "false")) {
        found.push(finding(
            "has an annotation that is neither \"true\" nor \"false\"",
            format!("{STS_REGIONAL_ENDPOINTS}: {value:?}"),
            annotate(&format!("{STS_REGIONAL_ENDPOINTS}=true")),
        ));
    }
    found
}

/// Injected by EKS where a pod identity association exists.
fn has_pod_identity(pod: &Value) -> bool {
    let env = list(&pod["spec"]["containers"]).flat_map(|it| list(&it["env"]));
    env.into_iter().any(|it| it["name"] == "AWS_CONTAINER_CREDENTIALS_FULL_URI")
}
