//! The API server's verbs on its objects, without any transport.
//!
//! Invariant: one lock guards all state; each verb reads, decides and writes under it once, so
//! that every write sees the state it was decided on. Nothing waits while it is held.

mod create;
mod delete;
mod list;
mod ownership;
mod pods;
mod scale;
mod update;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::admission;
use super::clock::Clock;
use super::error::ApiError;
use super::identity::Identity;
use super::object;
use super::resources::{Registry, Resource};
use super::store::{Key, Store, Stored};

pub use delete::{DeleteOptions, Deleted, Propagation};
pub use list::{ListOptions, Page, Selection};

/// Id of the resource that defines resources.
pub const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";

/// What a request is about.
#[derive(Clone, Debug)]
pub struct Target {
    /// The resource.
    pub resource: Arc<Resource>,
    /// The version the client speaks.
    pub version: String,
    /// Namespace and name; the name is empty for collections.
    pub key: Key,
}

/// The part of an object a write may touch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Part {
    /// Everything but status, where status has its own subresource.
    #[default]
    Main,
    /// Only status.
    Status,
}

/// How a write is to be done.
#[derive(Clone, Debug, Default)]
pub struct WriteOptions {
    /// Name recorded in `metadata.managedFields`; nothing is recorded without one.
    pub manager: Option<String>,
    /// True to answer without storing.
    pub dry_run: bool,
    /// What may be written.
    pub part: Part,
    /// Fields claimed by server-side apply; set by [`Server::patch`], not by callers.
    pub applied: Option<Value>,
}

/// Everything behind the lock.
pub struct State {
    /// Objects.
    pub store: Store,
    /// Kinds.
    pub registry: Registry,
    /// Source of names and uids.
    pub identity: Identity,
}

/// The API server.
pub struct Server {
    state: Mutex<State>,
    clock: Clock,
}

impl Server {
    /// An API server over an empty store.
    pub fn new(clock: Clock, seed: u64, history_per_resource: usize) -> Self {
        let state = State {
            store: Store::new(history_per_resource),
            registry: Registry::builtin(),
            identity: Identity::seeded(seed),
        };
        Self { state: Mutex::new(state), clock }
    }

    /// The cluster's clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Exclusive access to the state. Never held across an await.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A target by resource id, for the cluster's own controllers.
    ///
    /// # Errors
    /// [`ApiError::NoResource`] when nothing of that id is served.
    pub fn target(&self, id: &str, key: Key) -> Result<Target, ApiError> {
        let resource = self.lock().registry.find_id(id).ok_or(ApiError::NoResource)?;
        let version = resource.preferred_version().to_owned();
        Ok(Target { resource, version, key })
    }

    /// Reads one object.
    ///
    /// # Errors
    /// [`ApiError::NotFound`].
    pub fn get(&self, target: &Target) -> Result<Arc<Stored>, ApiError> {
        self.lock().find(target)
    }
}

impl State {
    fn find(&self, target: &Target) -> Result<Arc<Stored>, ApiError> {
        let found = self.store.get(&target.resource.id(), &target.key).cloned();
        found.ok_or_else(|| target.not_found())
    }

    /// Stores a new state of an object, or removes it when that state completes its deletion.
    fn commit(&mut self, target: &Target, object: Value) -> Arc<Stored> {
        let id = target.resource.id();
        let stored = if is_finished(&id, &object) {
            self.store.remove(&id, object)
        } else {
            self.store.put(&id, object)
        };
        if id == DEFINITIONS {
            self.follow_definition(&stored.value);
        }
        stored
    }

    /// Removes an object at once.
    fn erase(&mut self, target: &Target, last: Value) -> Arc<Stored> {
        let id = target.resource.id();
        let stored = self.store.remove(&id, last);
        if id == DEFINITIONS {
            self.follow_definition(&stored.value);
        }
        stored
    }

    /// Serves or stops serving what a definition defines, after the definition was written.
    fn follow_definition(&mut self, definition: &Value) {
        let key = Key::of(definition);
        if self.store.get(DEFINITIONS, &key).is_some() {
            if let Some(resource) = Resource::of_definition(definition) {
                self.registry.register(resource);
            }
            return;
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (group, plural) =
            (text(&definition["spec"]["group"]), text(&definition["spec"]["names"]["plural"]));
        self.registry.unregister(&group, &plural);
        let id = super::resources::resource_id(&group, &plural);
        let orphans: Vec<Value> =
            self.store.list(&id, "", None).map(|(_, stored)| stored.value.clone()).collect();
        for orphan in orphans {
            self.store.remove(&id, orphan);
        }
    }
}

impl Target {
    fn not_found(&self) -> ApiError {
        ApiError::NotFound { resource: self.resource.id(), name: self.key.name.clone() }
    }

    fn conflict(&self, message: impl Into<String>) -> ApiError {
        ApiError::Conflict {
            resource: self.resource.id(),
            name: self.key.name.clone(),
            message: message.into(),
        }
    }

    fn invalid(&self, field: &str, message: impl Into<String>) -> ApiError {
        ApiError::Invalid {
            kind: self.resource.kind.clone(),
            name: self.key.name.clone(),
            field: field.to_owned(),
            message: message.into(),
        }
    }

    fn forbidden(&self, message: &str) -> ApiError {
        let (resource, name) = (self.resource.id(), &self.key.name);
        ApiError::Forbidden(format!("{resource} \"{name}\" is forbidden: {message}"))
    }

    /// Checks that the body is of this target's kind, or fills the kind in.
    fn claim_kind(&self, object: &mut Value) -> Result<(), ApiError> {
        let api_version = self.resource.api_version(&self.version);
        for (field, expected) in [("apiVersion", &api_version), ("kind", &self.resource.kind)] {
            let given = object[field].as_str().unwrap_or_default();
            if !given.is_empty() && given != expected {
                return Err(ApiError::BadRequest(format!(
                    "{field} in the body is {given:?}, the path serves {expected:?}"
                )));
            }
            object[field] = Value::from(expected.as_str());
        }
        Ok(())
    }

    /// Prunes and defaults a custom object; built-in kinds pass unchanged.
    fn conform(&self, object: &mut Value) {
        if let Some(schema) = self.resource.schemas.get(&self.version) {
            schema.admit(object);
        }
    }
}

/// True when nothing keeps an object whose deletion was asked for.
fn is_finished(id: &str, object: &Value) -> bool {
    let grace = object["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
    let is_full = id == "namespaces" && !object::items(&object["spec"]["finalizers"]).is_empty();
    let is_held = object::finalizers(object).next().is_some();
    object::is_deleting(object) && grace == 0 && !is_held && !is_full
}
