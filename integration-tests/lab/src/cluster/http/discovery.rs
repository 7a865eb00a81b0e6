//! Discovery documents.
//!
//! Invariant: what is listed is what the registry serves at that moment.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::cluster::resources::{Registry, Resource};

const VERBS: [&str; 8] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// `/version`.
pub fn version(minor: u32) -> Value {
    json!({
        "major": "1",
        "minor": minor.to_string(),
        "gitVersion": format!("v1.{minor}.0-longshore-lab"),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": "linux/amd64",
    })
}

/// `/api`.
pub fn core_versions() -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [],
    })
}

/// `/apis`.
pub fn groups(registry: &Registry) -> Value {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for resource in registry.all().filter(|resource| !resource.group.is_empty()) {
        let known = versions.entry(&resource.group).or_default();
        for version in &resource.versions {
            if !known.contains(&version.as_str()) {
                known.push(version);
            }
        }
    }
    let groups: Vec<Value> = versions.iter().map(|(group, known)| describe(group, known)).collect();
    json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups })
}

/// `/apis/GROUP`; none when nothing of the group is served.
pub fn group(registry: &Registry, name: &str) -> Option<Value> {
    let all = groups(registry);
    let found = all["groups"].as_array()?.iter().find(|group| group["name"] == name)?;
    let mut found = found.clone();
    found["kind"] = json!("APIGroup");
    found["apiVersion"] = json!("v1");
    Some(found)
}

fn describe(group: &str, versions: &[&str]) -> Value {
    let entry = |version: &&str| {
        let group_version = format!("{group}/{version}");
        json!({ "groupVersion": group_version, "version": version })
    };
    let entries: Vec<Value> = versions.iter().map(entry).collect();
    json!({ "name": group, "versions": entries, "preferredVersion": entries.first() })
}

/// `/api/v1` and `/apis/GROUP/VERSION`; none when nothing is served there.
pub fn resources(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let is_served = |resource: &&Arc<Resource>| {
        resource.group == group && resource.versions.iter().any(|served| served == version)
    };
    let rows: Vec<Value> = registry.all().filter(is_served).flat_map(|found| rows(found)).collect();
    let group_version =
        if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    (!rows.is_empty()).then(|| {
        json!({
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": group_version,
            "resources": rows,
        })
    })
}

fn rows(resource: &Resource) -> Vec<Value> {
    let row = |name: String, kind: &str, verbs: &[&str]| {
        json!({
            "name": name,
            "singularName": resource.singular,
            "namespaced": resource.namespaced,
            "kind": kind,
            "verbs": verbs,
        })
    };
    let plural = &resource.plural;
    let mut main = row(plural.clone(), &resource.kind, &VERBS);
    main["shortNames"] = json!(resource.short_names);
    main["categories"] = json!(resource.categories);
    let mut rows = vec![main];
    if resource.status {
        rows.push(row(format!("{plural}/status"), &resource.kind, &["get", "patch", "update"]));
    }
    if resource.scale {
        let mut scale = row(format!("{plural}/scale"), "Scale", &["get", "patch", "update"]);
        scale["group"] = json!("autoscaling");
        scale["version"] = json!("v1");
        rows.push(scale);
    }
    if plural == "pods" {
        let mut eviction = row("pods/eviction".into(), "Eviction", &["create"]);
        eviction["group"] = json!("policy");
        eviction["version"] = json!("v1");
        rows.push(eviction);
        rows.push(row("pods/binding".into(), "Binding", &["create"]));
    }
    rows
}
