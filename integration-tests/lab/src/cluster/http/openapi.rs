//! OpenAPI v3, as far as kubectl reads it before it lets the server validate fields.
//!
//! Invariant: every served version has a document that says its objects can be patched with
//! `fieldValidation`; schemas are left out.

use serde_json::{Map, Value, json};

use crate::cluster::resources::Registry;

/// `/openapi/v3`: where the documents are.
pub fn index(registry: &Registry) -> Value {
    let mut paths = Map::new();
    for resource in registry.all() {
        for version in &resource.versions {
            let root = root_of(&resource.group, version);
            let url = format!("/openapi/v3/{root}");
            paths.insert(root, json!({ "serverRelativeURL": url }));
        }
    }
    json!({ "paths": paths })
}

/// The document of one group and version; none when nothing is served there.
pub fn document(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let root = root_of(group, version);
    let mut paths = Map::new();
    for resource in registry.all().filter(|resource| resource.group == group) {
        if resource.versions.iter().any(|served| served == version) {
            let patch = json!({
                "parameters": [{ "name": "fieldValidation", "in": "query" }],
                "responses": {},
                "x-kubernetes-group-version-kind": {
                    "group": group,
                    "version": version,
                    "kind": resource.kind,
                },
            });
            paths
                .insert(format!("/{root}/{}/{{name}}", resource.plural), json!({ "patch": patch }));
        }
    }
    let info = json!({ "title": "Kubernetes", "version": "lab" });
    (!paths.is_empty()).then(|| json!({ "openapi": "3.0.0", "info": info, "paths": paths }))
}

fn root_of(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}
