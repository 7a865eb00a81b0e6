//! Namespaces: the default service account while they live, emptying them when they go.
//!
//! Invariant: a namespace disappears only after everything in it has.

use serde_json::json;

use super::work::{Context, Outcome};
use crate::cluster::error::ApiError;
use crate::cluster::object;
use crate::cluster::server::{DeleteOptions, Part};
use crate::cluster::store::Key;

pub(super) fn reconcile(context: &mut Context<'_>, name: &str) -> Outcome {
    let Some(namespace) = context.get("namespaces", &Key::new("", name)) else { return Ok(()) };
    if object::is_deleting(&namespace) {
        return empty(context, name);
    }
    let account = json!({ "metadata": { "name": "default", "namespace": name } });
    match context.create("serviceaccounts", account) {
        Ok(()) | Err(ApiError::AlreadyExists { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

fn empty(context: &Context<'_>, name: &str) -> Outcome {
    let inside: Vec<(String, Key)> = {
        let state = context.server.lock();
        let resources = state.store.resources();
        let of = |resource: &String| {
            let rows = state.store.list(resource, name, None);
            let keys = rows.filter(|(key, _)| key.namespace == name).map(|(key, _)| key.clone());
            keys.map(|key| (resource.clone(), key)).collect::<Vec<_>>()
        };
        resources.iter().flat_map(of).collect()
    };
    for (resource, key) in &inside {
        context.delete(resource, key, &DeleteOptions::default())?;
    }
    if inside.is_empty() {
        context.modify("namespaces", &Key::new("", name), Part::Main, |namespace| {
            namespace["spec"]["finalizers"] = json!([]);
        })?;
    }
    Ok(())
}
