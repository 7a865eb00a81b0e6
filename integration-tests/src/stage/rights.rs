//! The rights that the chart gives the watcher: installed on a real control plane as helm renders
//! them, and held against what the watcher asks for.
//!
//! Invariant: nothing is granted here that the chart does not grant.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use kube::api::PostParams;
use serde_json::Value;

use super::hands;
use crate::parts::control_plane::audit::ACCOUNT;
use crate::parts::{ControlPlane, binary};

/// Release and namespace: the account's name comes from them.
const RELEASE: (&str, &str) = ("longshore", "kube-system");
/// Kinds of the chart that are about rights.
const KINDS: [&str; 7] = [
    "ServiceAccount",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
];
/// Longest that a test lasts.
const TOKEN_SECONDS: i64 = 7_200;

/// A verb on a resource, with its subresource: what a rule grants and a request needs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    group: String,
    resource: String,
    verb: String,
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.object())
    }
}

impl Right {
    /// What it is a right on, as group/resource.
    fn object(&self) -> String {
        let group = if self.group.is_empty() { "core" } else { &self.group };
        format!("{group}/{}", self.resource)
    }
}

/// What was granted, and where is written what was asked for.
#[derive(Clone, Debug)]
pub struct Rights {
    granted: BTreeSet<Right>,
    log: PathBuf,
}

/// What came of requests.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// How often each right was made use of.
    pub used: BTreeMap<Right, usize>,
    /// How often each resource, group/name, was listed as the first events of a watch.
    pub streamed: BTreeMap<String, usize>,
    /// Requests that were denied, by rule or by policy.
    pub denied: Vec<String>,
}

impl Rights {
    /// Installs them; returns the kubeconfig of the account as well.
    ///
    /// # Errors
    /// When helm or the API server refuses.
    pub async fn install(plane: &ControlPlane) -> Result<(PathBuf, Self)> {
        let dir = plane.log_dir().join("rights");
        std::fs::create_dir_all(&dir)?;
        render(&dir.join("chart.yaml"))?;
        let mut objects = hands::manifests(&dir)?;
        objects.retain(|object| KINDS.iter().any(|kind| object["kind"] == *kind));
        let (client, (account, namespace)) = (plane.client(), RELEASE);
        hands::apply(&client, &objects).await?;
        let accounts: Api<ServiceAccount> = Api::namespaced(client, namespace);
        let spec = TokenRequestSpec {
            expiration_seconds: Some(TOKEN_SECONDS),
            ..TokenRequestSpec::default()
        };
        let request = TokenRequest { spec, ..TokenRequest::default() };
        let answer =
            accounts.create_token_request(account, &PostParams::default(), &request).await?;
        let token = answer.status.context("no token was given")?.token;
        let kubeconfig = plane.kubeconfig_for_token("watcher", &token)?;
        let observed = plane.observed().context("nobody is observed")?;
        let rules = objects.iter().filter(|object| !is_for_people(object));
        let granted = rules.filter_map(|object| object["rules"].as_array()).flatten();
        let granted = granted.flat_map(rights).collect();
        Ok((kubeconfig, Self { granted, log: observed.log.clone() }))
    }

    /// What the account has asked for.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn asked(&self) -> Result<Asked> {
        let log = std::fs::read_to_string(&self.log).context("the audit log")?;
        let mut asked = Asked::default();
        for line in log.lines() {
            // The last line may be half written.
            let Ok(event) = serde_json::from_str::<Value>(line) else { continue };
            if event["user"]["username"] == ACCOUNT {
                asked.note(&event);
            }
        }
        Ok(asked)
    }

    /// Rights that were granted and not made use of.
    #[must_use]
    pub fn unused(&self, asked: &Asked) -> Vec<String> {
        let unused = self.granted.iter().filter(|right| !asked.used.contains_key(right));
        unused.map(ToString::to_string).collect()
    }
}

impl Asked {
    fn note(&mut self, event: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let object = &event["objectRef"];
        let (resource, part) = (text(&object["resource"]), text(&object["subresource"]));
        // Discovery is everybody's.
        if resource.is_empty() {
            return;
        }
        let resource = if part.is_empty() { resource } else { format!("{resource}/{part}") };
        let right =
            Right { group: text(&object["apiGroup"]), resource, verb: text(&event["verb"]) };
        let code = event["responseStatus"]["code"].as_u64().unwrap_or_default();
        let why = text(&event["responseStatus"]["message"]);
        if code == 403 || why.contains("ValidatingAdmissionPolicy") {
            self.denied.push(format!("{right} {}: {why}", text(&object["name"])));
        }
        if text(&event["requestURI"]).contains("sendInitialEvents=true") {
            *self.streamed.entry(right.object()).or_default() += 1;
        }
        *self.used.entry(right).or_default() += 1;
    }
}

/// The chart where only a watcher runs.
fn render(file: &Path) -> Result<()> {
    let (release, namespace) = RELEASE;
    let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/chart");
    let output = Command::new(binary::part_program("helm", "helm")?)
        .args(["template", release, "--namespace", namespace, "--values"])
        .arg(chart.join("ci/remote-values.yaml"))
        .arg(chart)
        .output()?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "helm template: {error}");
    Ok(std::fs::write(file, output.stdout)?)
}

/// True for the role that is added to those of administrators.
fn is_for_people(object: &Value) -> bool {
    !object["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-admin"].is_null()
}

/// The rights of a rule.
fn rights(rule: &Value) -> Vec<Right> {
    let list = |name: &str| {
        let texts = rule[name].as_array().into_iter().flatten();
        texts.filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
    };
    let (groups, resources, verbs) = (list("apiGroups"), list("resources"), list("verbs"));
    let mut rights = Vec::new();
    for group in &groups {
        for resource in &resources {
            let right = |verb: &String| Right {
                group: group.clone(),
                resource: resource.clone(),
                verb: verb.clone(),
            };
            rights.extend(verbs.iter().map(right));
        }
    }
    rights
}
