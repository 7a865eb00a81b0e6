//! Who may do what: nodes that join, and pods that speak to AWS.
//!
//! Invariant: access entries are only seen through AWS; where it was not asked, a finding about a
//! missing mapping says so. None is made while nodes do join.

use std::collections::BTreeSet;

use longshore_actuator::ec2::inspect::AccessEntry;
use longshore_watcher::api::keys::annotations::{ROLE_ARN, STS_REGIONAL_ENDPOINTS};
use longshore_watcher::api::keys::labels::{NODE_POOL, PROVISIONER_NAME};
use serde_json::Value;

use super::facts::{Facts, Kind, annotation, is_true, label, list, name};
use super::{Finding, Severity};

const GROUPS: [&str; 2] = ["system:bootstrappers", "system:nodes"];
const USER: &str = "system:node:{{EC2PrivateDNSName}}";

/// Names of the roles that node classes name.
pub fn roles_of_nodes(facts: &Facts) -> BTreeSet<String> {
    let classes = facts.of(Kind::EC2NodeClass);
    classes
        .filter_map(|it| it["spec"]["role"].as_str())
        .map(|role| plain(role).to_owned())
        .collect()
}

/// Names of the roles that service accounts of our pods name.
pub fn roles_of_accounts(facts: &Facts) -> BTreeSet<String> {
    let arns = accounts(facts).0.into_iter().filter_map(|it| annotation(it, ROLE_ARN));
    arns.map(|arn| plain(arn).to_owned()).collect()
}

/// Name of a role, without path.
fn plain(role: &str) -> &str {
    role.rsplit('/').next().unwrap_or(role)
}

/// Roles of node classes that nothing lets into the cluster, or not as nodes.
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
    let roles = roles_of_nodes(facts).into_iter();
    let found = roles.filter_map(|role| {
        let known = facts.account().and_then(|account| account.roles.get(&role));
        // A role that is not there is told of the node class.
        if known.is_some_and(|known| known.arn == Ok(None)) {
            return None;
        }
        let entry = known.and_then(|known| known.entry.as_ref()?.as_ref().ok());
        let wrong = match entry {
            Some(Some(entry)) => as_other(entry),
            Some(None) | None => unmapped(&role, &rows, entry.is_some()).filter(|it| {
                // Nodes that do join show that something else lets them in.
                it.row || !joined
            }),
        };
        wrong.map(|wrong| of_role(facts, &role, wrong))
    });
    found.collect()
}

/// The entries of `mapRoles`; none when the text is no list.
fn rows(map: &Value) -> Vec<Value> {
    let text = map["data"]["mapRoles"].as_str().unwrap_or_default();
    serde_saphyr::from_str::<Vec<Value>>(text).unwrap_or_default()
}

/// Why nodes of a role do not join.
struct Wrong {
    severity: Severity,
    message: &'static str,
    evidence: String,
    /// Whether it is a row of `aws-auth` that is wrong.
    row: bool,
}

/// What is wrong with an access entry.
fn as_other(entry: &AccessEntry) -> Option<Wrong> {
    let node = entry.kind.starts_with("EC2");
    let by_groups = GROUPS.iter().all(|group| entry.groups.iter().any(|it| it == group));
    (!node && !by_groups).then(|| Wrong {
        severity: Severity::Problem,
        message: "has an access entry, but not as a node",
        evidence: format!("type {}, groups [{}]", entry.kind, entry.groups.join(", ")),
        row: false,
    })
}

/// What is wrong with a role's row in `aws-auth`. Without AWS, an access entry may exist.
fn unmapped(role: &str, rows: &[Value], asked: bool) -> Option<Wrong> {
    let is_it = |row: &&Value| row["rolearn"].as_str().map(plain) == Some(role);
    let Some(row) = rows.iter().find(is_it) else {
        let (severity, message, entries) = if asked {
            let message = "is not let into the cluster: instances boot and never join";
            (Severity::Problem, message, "there is no access entry")
        } else {
            let message =
                "is not in aws-auth: unless an access entry lets it in, instances never join";
            (Severity::Advice, message, "access entries were not looked at")
        };
        let evidence = format!("mapRoles has {} entries, none for it; {entries}", rows.len());
        return Some(Wrong { severity, message, evidence, row: false });
    };
    let groups: Vec<&str> = list(&row["groups"]).filter_map(Value::as_str).collect();
    let as_node = row["username"] == USER && GROUPS.iter().all(|group| groups.contains(group));
    (!as_node).then(|| Wrong {
        severity: Severity::Problem,
        message: "is mapped in aws-auth, but not as a node",
        evidence: format!("entry: {row}"),
        row: true,
    })
}

fn of_role(facts: &Facts, role: &str, wrong: Wrong) -> Finding {
    let account = facts.account();
    let arn = account.and_then(|account| account.roles.get(role)?.arn.clone().ok().flatten());
    let arn = arn.unwrap_or_else(|| format!("arn:aws:iam::ACCOUNT:role/{role}"));
    let cluster = account.map(|account| account.cluster.as_str());
    let cluster = cluster.filter(|name| !name.is_empty()).unwrap_or("CLUSTER");
    Finding {
        severity: wrong.severity,
        object: format!("Role/{role}"),
        message: wrong.message.to_owned(),
        evidence: wrong.evidence,
        remedy: format!(
            "aws eks create-access-entry --cluster-name {cluster} --type EC2_LINUX \
             --principal-arn {arn}\n# or, in ConfigMap kube-system/aws-auth under mapRoles:\n\
             - rolearn: {arn}\n  username: {USER}\n  groups: [{}]",
            GROUPS.join(", ")
        ),
    }
}

/// Service accounts of our pods that cannot speak to AWS as they should.
pub fn service_accounts(facts: &Facts) -> Vec<Finding> {
    let (accounts, pods) = accounts(facts);
    let found = accounts.into_iter().flat_map(|account| {
        let role = annotation(account, ROLE_ARN).and_then(|arn| wrong_role(facts, account, arn));
        of_account(account, &pods).into_iter().chain(role)
    });
    found.collect()
}

/// Service accounts of our pods that speak to AWS, and those pods.
fn accounts(facts: &Facts) -> (Vec<&Value>, Vec<&Value>) {
    let pods: Vec<&Value> = facts.of(Kind::Pod).filter(|pod| speaks_to_aws(pod)).collect();
    let accounts = facts.of(Kind::ServiceAccount).filter(|account| {
        pods.iter().any(|pod| {
            let named = pod["spec"]["serviceAccountName"].as_str().unwrap_or("default");
            account["metadata"]["name"] == named
                && account["metadata"]["namespace"] == pod["metadata"]["namespace"]
        })
    });
    (accounts.collect(), pods)
}

/// An annotation that names a role which is not there, or is the nodes' own.
fn wrong_role(facts: &Facts, account: &Value, arn: &str) -> Option<Finding> {
    let found = facts.account()?.roles.get(plain(arn))?.arn.as_ref().ok()?;
    let (message, evidence) = match found {
        None => ("is not there", format!("iam:GetRole knows no role {:?}", plain(arn))),
        Some(there) if there != arn => ("has another ARN", format!("the role is {there}")),
        Some(_) if roles_of_nodes(facts).contains(plain(arn)) => {
            let message = "is the nodes' own, which may not launch instances";
            (message, "a node class names it in spec.role".to_owned())
        }
        Some(_) => return None,
    };
    let text = |field: &str| account["metadata"][field].as_str().unwrap_or_default();
    Some(Finding {
        severity: Severity::Problem,
        object: name("ServiceAccount", account),
        message: format!("the role in its annotation {ROLE_ARN} {message}"),
        evidence: format!("{arn}; {evidence}"),
        remedy: format!(
            "kubectl annotate --overwrite serviceaccount -n {} {} {ROLE_ARN}=ARN   # of the \
             controller's role; then restart its pods",
            text("namespace"),
            text("name")
        ),
    })
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
