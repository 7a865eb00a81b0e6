//! Garbage collection by owner references.
//!
//! Invariant: a dependent goes when all its owners are gone, or when an owner that is being deleted
//! in the foreground waits for it; never while another owner lives.

use std::sync::Arc;

use serde_json::Value;

use super::work::{Context, Outcome};
use super::world::Reference;
use crate::cluster::object;
use crate::cluster::server::{DeleteOptions, Part, Propagation};
use crate::cluster::store::{Key, Stored};

pub(super) fn reconcile(context: &mut Context<'_>, uid: &str) -> Outcome {
    let dependents: Vec<Reference> = context.world.dependents_of(uid).cloned().collect();
    let owner = find_owner(context, uid, &dependents);
    let is_orphaning = owner.as_ref().is_some_and(|(_, owner)| has_finalizer(owner, "orphan"));
    let is_foreground =
        owner.as_ref().is_some_and(|(_, owner)| has_finalizer(owner, "foregroundDeletion"));
    if is_orphaning {
        dependents.iter().try_for_each(|dependent| disown(context, dependent, uid))?;
    } else if owner.is_none() || is_foreground {
        let options = DeleteOptions {
            propagation: if is_foreground {
                Propagation::Foreground
            } else {
                Propagation::Background
            },
            ..DeleteOptions::default()
        };
        for (resource, key) in &dependents {
            let Some(dependent) = context.get(resource, key) else { continue };
            if !object::is_deleting(&dependent) && !has_other_owner(context, &dependent, uid) {
                context.delete(resource, key, &options)?;
            }
        }
    }
    let Some(((resource, key), owner)) = owner else { return Ok(()) };
    if object::is_deleting(&owner) && (is_orphaning || dependents.is_empty()) {
        return release(context, (&resource, &key));
    }
    Ok(())
}

fn has_finalizer(object: &Value, name: &str) -> bool {
    object::is_deleting(object) && object::finalizers(object).any(|finalizer| finalizer == name)
}

/// The owner of this uid, wherever it is stored.
fn find_owner(
    context: &Context<'_>,
    uid: &str,
    dependents: &[Reference],
) -> Option<(Reference, Arc<Stored>)> {
    if let Some((resource, key)) = dependents.first() {
        let dependent = context.get(resource, key)?;
        let references = object::items(&dependent["metadata"]["ownerReferences"]);
        let reference = references.iter().find(|owner| owner["uid"] == uid)?;
        return lookup(context, reference, &key.namespace);
    }
    let state = context.server.lock();
    for resource in state.store.resources() {
        let found = state
            .store
            .list(&resource, "", None)
            .find(|(_, stored)| object::uid(&stored.value) == uid);
        if let Some((key, stored)) = found {
            return Some(((resource, key.clone()), Arc::clone(stored)));
        }
    }
    None
}

fn lookup(
    context: &Context<'_>,
    reference: &Value,
    namespace: &str,
) -> Option<(Reference, Arc<Stored>)> {
    let text = |field: &str| reference[field].as_str().unwrap_or_default();
    let found = context.server.lock().registry.find_kind(text("apiVersion"), text("kind"))?;
    let namespace = if found.namespaced { namespace } else { "" };
    let key = Key::new(namespace, text("name"));
    let owner = context.get(&found.id(), &key).filter(|owner| object::uid(owner) == text("uid"))?;
    Some(((found.id(), key), owner))
}

fn has_other_owner(context: &Context<'_>, dependent: &Value, uid: &str) -> bool {
    let namespace = object::namespace(dependent);
    let mut others = object::items(&dependent["metadata"]["ownerReferences"])
        .iter()
        .filter(|owner| owner["uid"] != uid);
    others.any(|owner| {
        lookup(context, owner, namespace).is_some_and(|(_, owner)| !object::is_deleting(&owner))
    })
}

fn disown(context: &Context<'_>, (resource, key): &Reference, uid: &str) -> Outcome {
    context.modify(resource, key, Part::Main, |dependent| {
        if let Some(owners) = dependent["metadata"]["ownerReferences"].as_array_mut() {
            owners.retain(|owner| owner["uid"] != uid);
        }
    })
}

fn release(context: &Context<'_>, (resource, key): (&str, &Key)) -> Outcome {
    context.modify(resource, key, Part::Main, |owner| {
        if let Some(list) = owner["metadata"]["finalizers"].as_array_mut() {
            list.retain(|name| name != "orphan" && name != "foregroundDeletion");
        }
    })
}
