//! Deleting objects: grace periods, finalizers, propagation.
//!
//! Invariant: an object leaves the store only when no finalizer names it and its grace is over.

use std::sync::Arc;

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{ApiError, ListOptions, Server, State, Stored, Target};
use super::{is_finished, object};
use crate::cluster::clock;

/// What becomes of dependents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Propagation {
    /// The garbage collector deletes them afterwards.
    #[default]
    Background,
    /// They go first.
    Foreground,
    /// They stay.
    Orphan,
}

/// How a deletion is to be done.
#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    /// Seconds of grace; the object's own default when absent.
    pub grace_seconds: Option<i64>,
    /// What becomes of dependents.
    pub propagation: Propagation,
    /// Refuse unless the object has this uid.
    pub uid: Option<String>,
    /// Refuse unless the object has this resource version.
    pub resource_version: Option<String>,
    /// True to answer without deleting.
    pub dry_run: bool,
}

/// Outcome of a deletion.
#[derive(Clone, Debug)]
pub enum Deleted {
    /// The object is gone; its last state.
    Gone(Arc<Stored>),
    /// The object stays until grace or finalizers are done.
    Pending(Arc<Stored>),
}

impl Server {
    /// Deletes one object, or starts to.
    ///
    /// # Errors
    /// NotFound, Conflict when a precondition does not hold.
    pub fn delete(&self, target: &Target, options: &DeleteOptions) -> Result<Deleted, ApiError> {
        self.lock().delete(target, options, self.clock().now())
    }

    /// Deletes everything a selection holds and returns what was deleted.
    ///
    /// # Errors
    /// As [`Server::delete`]; objects that vanish meanwhile are no error.
    pub fn delete_collection(
        &self,
        target: &Target,
        list: &ListOptions,
        options: &DeleteOptions,
    ) -> Result<Vec<Arc<Stored>>, ApiError> {
        let page = self.list(target, list)?;
        let mut state = self.lock();
        for stored in &page.items {
            let key = super::Key::of(&stored.value);
            let one = Target { key, ..target.clone() };
            match state.delete(&one, options, self.clock().now()) {
                Ok(_) | Err(ApiError::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(page.items)
    }
}

impl State {
    pub(super) fn delete(
        &mut self,
        target: &Target,
        options: &DeleteOptions,
        now: jiff::Timestamp,
    ) -> Result<Deleted, ApiError> {
        let old = self.find(target)?;
        check(target, &old, options)?;
        if options.dry_run {
            return Ok(Deleted::Pending(old));
        }
        let mut last = old.value.clone();
        add_propagation_finalizer(&mut last, options.propagation);
        let id = target.resource.id();
        mark(&id, &mut last, options, now);
        if id == "namespaces" {
            last["status"]["phase"] = Value::from("Terminating");
        }
        if last == old.value {
            return Ok(Deleted::Pending(old));
        }
        if is_finished(&id, &last) {
            // An object that leaves at once was never seen as deleting.
            if !object::is_deleting(&old.value) {
                last = old.value.clone();
            }
            return Ok(Deleted::Gone(self.erase(target, last)));
        }
        Ok(Deleted::Pending(self.commit(target, last)))
    }
}

fn check(target: &Target, old: &Stored, options: &DeleteOptions) -> Result<(), ApiError> {
    let uid = object::uid(&old.value);
    if let Some(asked) = options.uid.as_deref().filter(|asked| *asked != uid) {
        return Err(target.conflict(format!(
            "Precondition failed: UID in precondition: {asked}, UID in object meta: {uid}"
        )));
    }
    let revision = old.revision.to_string();
    if let Some(asked) = options.resource_version.as_ref().filter(|asked| **asked != revision) {
        return Err(target.conflict(format!(
            "Precondition failed: ResourceVersion in precondition: {asked}, ResourceVersion in \
             object meta: {revision}"
        )));
    }
    Ok(())
}

fn add_propagation_finalizer(object: &mut Value, propagation: Propagation) {
    let name = match propagation {
        Propagation::Background => return,
        Propagation::Foreground => "foregroundDeletion",
        Propagation::Orphan => "orphan",
    };
    if object::is_deleting(object) || object::finalizers(object).any(|finalizer| finalizer == name)
    {
        return;
    }
    let finalizers = &mut object["metadata"]["finalizers"];
    match finalizers.as_array_mut() {
        Some(list) => list.push(json!(name)),
        None => *finalizers = json!([name]),
    }
}

/// Sets or shortens the grace that an object has left.
fn mark(id: &str, object: &mut Value, options: &DeleteOptions, now: jiff::Timestamp) {
    let grace = grace_seconds(id, object, options);
    let metadata = &mut object["metadata"];
    let left = metadata["deletionGracePeriodSeconds"].as_i64();
    if metadata["deletionTimestamp"].is_string() && left.is_none_or(|left| left <= grace) {
        return;
    }
    let at = now.checked_add(SignedDuration::from_secs(grace)).unwrap_or(now);
    metadata["deletionTimestamp"] = json!(clock::stamp(at));
    metadata["deletionGracePeriodSeconds"] = json!(grace);
    if let Some(generation) = metadata["generation"].as_i64() {
        metadata["generation"] = json!(generation + 1);
    }
}

fn grace_seconds(id: &str, object: &Value, options: &DeleteOptions) -> i64 {
    if id != "pods" {
        return 0;
    }
    let unassigned = object["spec"]["nodeName"].as_str().unwrap_or_default().is_empty();
    let ended = ["Succeeded", "Failed"].iter().any(|phase| object["status"]["phase"] == *phase);
    if unassigned || ended {
        return 0;
    }
    let own = object["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(30);
    options.grace_seconds.unwrap_or(own).max(0)
}
