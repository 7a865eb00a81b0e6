//! The command refuses manifests: exit code, file, object, field and the way out.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use longshore_it::parts::binary;
use serde_json::{Value, json};

use super::stage::{self, says};

/// Asks `longshore plan -f FILE`; its exit code, and all that it writes.
fn plan(name: &str, text: &str) -> Result<(i32, String)> {
    let dir = tempfile::tempdir()?;
    let file: PathBuf = dir.path().join(name);
    std::fs::write(&file, text)?;
    let mut command = Command::new(binary::workspace_program("longshore")?);
    let output = command.args(["plan", "-f"]).arg(&file).env("NO_COLOR", "1").output()?;
    let code = output.status.code().context("killed")?;
    let written = [output.stdout, output.stderr].concat();
    Ok((code, String::from_utf8(written)?))
}

/// What `longshore plan` says of a pool and a pod, after a change to them.
fn plan_objects(name: &str, change: impl FnOnce(&mut [Value; 2])) -> Result<(i32, String)> {
    let mut objects = [stage::pool("good", "good", "c5"), stage::pod("web", "good", "1")];
    change(&mut objects);
    plan(name, &json!({ "kind": "List", "apiVersion": "v1", "items": objects }).to_string())
}

fn refused((code, text): (i32, String), parts: &[&str]) -> Result<()> {
    ensure!(code == 2, "exit code {code}: {text}");
    says(&text, parts)
}

#[test]
fn good_manifests_are_planned() -> Result<()> {
    let (code, text) = plan_objects("good.json", |_| {})?;
    ensure!(code == 0, "exit code {code}: {text}");
    says(&text, &["1 pod: 1 on 1 new node"])
}

#[test]
fn malformed_yaml() -> Result<()> {
    let text = "apiVersion: v1\nkind: [Pod\nmetadata: {name: web}\n";
    let parts = ["error: ", "bad.yaml: line 3 column 9", "bad.yaml:3:9", "mend the text"];
    refused(plan("bad.yaml", text)?, &parts)
}

#[test]
fn a_document_that_is_no_object() -> Result<()> {
    let parts =
        ["bad.yaml:1", "no Kubernetes object", "give it apiVersion, kind and metadata.name"];
    refused(plan("bad.yaml", "name: web\n")?, &parts)
}

#[test]
fn a_field_of_another_type() -> Result<()> {
    let found = plan_objects("bad.json", |[_, pod]| {
        pod["spec"]["containers"][0]["resources"] = json!([1]);
    })?;
    let parts = ["Pod/default/web", "spec.containers[0].resources", "`kubectl explain pod.spec."];
    refused(found, &parts)
}

#[test]
fn an_unknown_operator() -> Result<()> {
    let found = plan_objects("bad.json", |[pool, _]| {
        pool["spec"]["template"]["spec"]["requirements"][0]["operator"] = "Has".into();
    })?;
    let parts = [
        "bad.json:1: NodePool/good: spec.template.spec.requirements[0].operator",
        "`Has`",
        "expected one of `In`, `NotIn`, `Exists`",
    ];
    refused(found, &parts)
}

#[test]
fn a_negative_quantity() -> Result<()> {
    let found = plan_objects("bad.json", |[pool, pod]| {
        pool["spec"]["limits"] = json!({ "cpu": "-5" });
        pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "-1".into();
    })?;
    // Both objects at fault are named, not only the first.
    let parts = [
        "bad.json:1: NodePool/good: spec.limits[cpu]: \"-5\" is negative",
        "bad.json:1: Pod/default/web: spec.containers[pause].resources.requests[cpu]: \"-1\" is negative",
        "resources are zero or more",
    ];
    refused(found, &parts)
}

#[test]
fn a_requirement_that_nobody_satisfies() -> Result<()> {
    let (code, text) = plan_objects("odd.json", |[pool, _]| {
        *pool = stage::pool("good", "good", "zz9");
    })?;
    ensure!(code == 3, "exit code {code}: {text}");
    let parts = [
        "NOT PLACED",
        "Pod/web in namespace default",
        "NodePool/good: no instance type has karpenter.k8s.aws/instance-family In [zz9]",
        "widen them",
    ];
    says(&text, &parts)
}
