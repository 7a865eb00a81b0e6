//! Replacing and patching objects.
//!
//! Invariant: a write that changes nothing leaves the resource version alone; identity and deletion
//! marks survive whatever the body says; generation counts changes outside metadata and status.

use std::sync::Arc;

use serde_json::Value;

use super::{ApiError, Part, Server, State, Stored, Target, WriteOptions};
use super::{admission, object, ownership};
use crate::cluster::patch::Patch;

/// Metadata only the server may set.
const SERVER_METADATA: [&str; 6] = [
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "managedFields",
];

impl Server {
    /// Replaces an object, guarded by `metadata.resourceVersion` where the body has one.
    ///
    /// # Errors
    /// NotFound, Conflict when the object moved on, Invalid when a field may not change.
    pub fn update(
        &self,
        target: &Target,
        mut body: Value,
        options: &WriteOptions,
    ) -> Result<Arc<Stored>, ApiError> {
        object::check_shape(&body)?;
        target.claim_kind(&mut body)?;
        let mut state = self.lock();
        let old = state.find(target)?;
        state.replace(target, (&old, body), options, &self.clock().stamp())
    }

    /// Patches an object. Server-side apply creates it when absent.
    ///
    /// # Errors
    /// As [`Server::update`], and BadRequest or UnsupportedMediaType for patches that do not apply.
    pub fn patch(
        &self,
        target: &Target,
        patch: &Patch,
        options: &WriteOptions,
    ) -> Result<Arc<Stored>, ApiError> {
        let now = self.clock().now();
        let mut state = self.lock();
        let old = match (state.find(target), patch) {
            (Err(ApiError::NotFound { .. }), Patch::Apply { config, .. })
                if options.part == Part::Main =>
            {
                let applied = crate::cluster::patch::fields::stated(config, target.resource.custom);
                let options = WriteOptions { applied: Some(applied), ..options.clone() };
                return state.create(target, config.clone(), &options, now);
            }
            (found, _) => found?,
        };
        let speaking = in_version(&old.value, target);
        let mut options = options.clone();
        let body = match patch {
            Patch::Apply { config, force } => {
                let (body, fields) =
                    ownership::apply(&speaking, config, (target, &options), *force)?;
                options.applied = Some(fields);
                body
            }
            Patch::Json(_) | Patch::Merge(_) | Patch::Strategic(_) => {
                patch.apply_to(&speaking, target.resource.custom)?
            }
        };
        object::check_shape(&body)?;
        state.replace(target, (&old, body), &options, &crate::cluster::clock::stamp(now))
    }

    /// Changes an object by a function of its present state, as the cluster's own controllers do.
    /// A change that yields the same object is not stored.
    ///
    /// # Errors
    /// As [`Server::update`].
    pub fn modify(
        &self,
        target: &Target,
        part: Part,
        change: impl FnOnce(&mut Value),
    ) -> Result<Arc<Stored>, ApiError> {
        let mut state = self.lock();
        let old = state.find(target)?;
        let mut body = old.value.clone();
        change(&mut body);
        let options = WriteOptions { part, ..WriteOptions::default() };
        state.replace(target, (&old, body), &options, &self.clock().stamp())
    }
}

impl State {
    /// Stores `body` in place of `old`, as far as `options.part` allows.
    pub(super) fn replace(
        &mut self,
        target: &Target,
        (old, body): (&Arc<Stored>, Value),
        options: &WriteOptions,
        stamp: &str,
    ) -> Result<Arc<Stored>, ApiError> {
        check_preconditions(target, old, &body)?;
        let mut new = restrict(target, &old.value, body, options.part);
        keep_identity(&old.value, &mut new);
        target.conform(&mut new);
        let id = target.resource.id();
        admission::on_update(&id, &old.value, &mut new, stamp)
            .map_err(|fault| target.invalid(fault.field, fault.message))?;
        check_finalizers(target, &old.value, &new)?;
        if new == old.value && options.manager.is_none() {
            return Ok(Arc::clone(old));
        }
        bump_generation(&old.value, &mut new);
        let manager = options.manager.as_deref().unwrap_or_default();
        ownership::record(&old.value, &mut new, (target, options), (manager, stamp));
        if new == old.value {
            return Ok(Arc::clone(old));
        }
        if options.dry_run {
            return Ok(Stored::new(old.revision, new));
        }
        Ok(self.commit(target, new))
    }
}

/// The object as a client of the target's version reads it.
pub(super) fn in_version(object: &Value, target: &Target) -> Value {
    let mut object = object.clone();
    object["apiVersion"] = Value::from(target.resource.api_version(&target.version));
    object
}

fn check_preconditions(target: &Target, old: &Stored, body: &Value) -> Result<(), ApiError> {
    let metadata = &body["metadata"];
    let name = object::name(body);
    if !name.is_empty() && name != target.key.name {
        return Err(ApiError::BadRequest(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            target.key.name
        )));
    }
    let uid = metadata["uid"].as_str().unwrap_or_default();
    if !uid.is_empty() && uid != object::uid(&old.value) {
        return Err(target.conflict(format!(
            "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
            object::uid(&old.value)
        )));
    }
    let version = metadata["resourceVersion"].as_str().unwrap_or_default();
    if !version.is_empty() && version != old.revision.to_string() {
        return Err(target.conflict(
            "the object has been modified; please apply your changes to the latest version and \
             try again",
        ));
    }
    Ok(())
}

/// An object on its way out takes no new finalizers.
fn check_finalizers(target: &Target, old: &Value, new: &Value) -> Result<(), ApiError> {
    let is_new = |name: &&str| !object::finalizers(old).any(|known| known == *name);
    match object::finalizers(new).find(is_new).filter(|_| object::is_deleting(old)) {
        None => Ok(()),
        Some(added) => Err(target.invalid(
            "metadata.finalizers",
            format!(
                "Forbidden: no new finalizers can be added if the object is being deleted, found \
                 new finalizers []string{{{added:?}}}"
            ),
        )),
    }
}

/// Takes from `body` only what the part may write, and everything else from `old`.
fn restrict(target: &Target, old: &Value, mut body: Value, part: Part) -> Value {
    if !target.resource.status {
        return body;
    }
    let own = body["status"].take();
    match part {
        Part::Main => with_status(body, old["status"].clone()),
        Part::Status => {
            let mut kept = old.clone();
            kept["apiVersion"] = body["apiVersion"].clone();
            if !target.resource.custom {
                for field in ["labels", "annotations"] {
                    put_or_remove(&mut kept["metadata"], field, body["metadata"][field].take());
                }
            }
            with_status(kept, own)
        }
    }
}

fn with_status(mut object: Value, status: Value) -> Value {
    put_or_remove(&mut object, "status", status);
    object
}

fn put_or_remove(map: &mut Value, field: &str, value: Value) {
    if value.is_null() {
        object::remove(map, field);
    } else {
        map[field] = value;
    }
}

fn keep_identity(old: &Value, new: &mut Value) {
    for field in ["name", "namespace", "resourceVersion"] {
        put_or_remove(&mut new["metadata"], field, old["metadata"][field].clone());
    }
    for field in SERVER_METADATA {
        put_or_remove(&mut new["metadata"], field, old["metadata"][field].clone());
    }
    for field in ["labels", "annotations", "finalizers", "ownerReferences"] {
        let value = &new["metadata"][field];
        let empty = value.is_null()
            || value.as_array().is_some_and(Vec::is_empty)
            || value.as_object().is_some_and(serde_json::Map::is_empty);
        if empty {
            object::remove(&mut new["metadata"], field);
        }
    }
}

fn bump_generation(old: &Value, new: &mut Value) {
    let differs = |(field, value): (&String, &Value), other: &Value| {
        !["apiVersion", "metadata", "status"].contains(&field.as_str()) && other[field] != *value
    };
    let changed = new.as_object().into_iter().flatten().any(|field| differs(field, old))
        || old.as_object().into_iter().flatten().any(|field| differs(field, new));
    if changed {
        let generation = old["metadata"]["generation"].as_i64().unwrap_or(0) + 1;
        new["metadata"]["generation"] = Value::from(generation);
    }
}
