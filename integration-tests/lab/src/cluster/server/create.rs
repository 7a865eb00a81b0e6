//! Creating objects.
//!
//! Invariant: what is stored carries a uid, a creation time, generation 1 and no trace of what only
//! the server may set.

use std::sync::Arc;

use serde_json::Value;

use super::{ApiError, Key, Server, State, Stored, Target, WriteOptions};
use super::{admission, object, ownership};

impl Server {
    /// Creates an object; the name may be left to `metadata.generateName`.
    ///
    /// # Errors
    /// AlreadyExists, BadRequest for malformed bodies, NotFound or Forbidden for a namespace that
    /// is missing or going away, Invalid for names and fields that break a rule.
    pub fn create(
        &self,
        target: &Target,
        body: Value,
        options: &WriteOptions,
    ) -> Result<Arc<Stored>, ApiError> {
        self.lock().create(target, body, options, self.clock().now())
    }
}

impl State {
    pub(super) fn create(
        &mut self,
        target: &Target,
        mut body: Value,
        options: &WriteOptions,
        now: jiff::Timestamp,
    ) -> Result<Arc<Stored>, ApiError> {
        object::check_shape(&body)?;
        target.claim_kind(&mut body)?;
        if body["metadata"]["resourceVersion"].as_str().is_some_and(|version| !version.is_empty()) {
            return Err(ApiError::BadRequest(
                "resourceVersion should not be set on objects to be created".into(),
            ));
        }
        self.claim_namespace(target, &mut body)?;
        let target = self.claim_name(target, &mut body)?;
        if self.store.get(&target.resource.id(), &target.key).is_some() {
            return Err(ApiError::AlreadyExists {
                resource: target.resource.id(),
                name: target.key.name,
            });
        }
        let stamp = crate::cluster::clock::stamp(now);
        self.stamp_new(&target, &mut body, &stamp);
        target.conform(&mut body);
        admission::on_create(&target.resource.id(), &mut body, &self.store, &stamp)
            .map_err(|fault| target.invalid(fault.field, fault.message))?;
        if let Some(manager) = &options.manager {
            let nothing = serde_json::json!({});
            ownership::record(&nothing, &mut body, (&target, options), (manager, &stamp));
        }
        if options.dry_run {
            return Ok(Stored::new(self.store.revision(), body));
        }
        Ok(self.commit(&target, body))
    }

    fn claim_namespace(&self, target: &Target, body: &mut Value) -> Result<(), ApiError> {
        let given = object::namespace(body);
        if !target.resource.namespaced {
            object::remove(&mut body["metadata"], "namespace");
            return Ok(());
        }
        let expected = &target.key.namespace;
        if !given.is_empty() && given != expected {
            return Err(ApiError::BadRequest(
                "the namespace of the provided object does not match the namespace sent on the \
                 request"
                    .into(),
            ));
        }
        body["metadata"]["namespace"] = Value::from(expected.as_str());
        match self.store.get("namespaces", &Key::new("", expected)) {
            None => {
                Err(ApiError::NotFound { resource: "namespaces".into(), name: expected.clone() })
            }
            Some(namespace) if object::is_deleting(&namespace.value) => {
                Err(target.forbidden(&format!(
                    "unable to create new content in namespace {expected} because it is being \
                     terminated"
                )))
            }
            Some(_) => Ok(()),
        }
    }

    fn claim_name(&mut self, target: &Target, body: &mut Value) -> Result<Target, ApiError> {
        let mut name = object::name(body).to_owned();
        if name.is_empty() {
            name.clone_from(&target.key.name);
        }
        if name.is_empty()
            && let Some(base) = body["metadata"]["generateName"].as_str()
        {
            name = self.identity.name_from(base);
        }
        body["metadata"]["name"] = Value::from(name.as_str());
        let key = Key { namespace: target.key.namespace.clone(), name };
        let target = Target { key, ..target.clone() };
        match name_fault(&target.key.name) {
            Some(fault) => Err(target.invalid("metadata.name", fault)),
            None => Ok(target),
        }
    }

    fn stamp_new(&mut self, target: &Target, body: &mut Value, stamp: &str) {
        let metadata = &mut body["metadata"];
        for field in
            ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "managedFields"]
        {
            object::remove(metadata, field);
        }
        metadata["uid"] = Value::from(self.identity.uid());
        metadata["creationTimestamp"] = Value::from(stamp);
        metadata["generation"] = Value::from(1);
        let keeps_status = !target.resource.status || target.resource.kind == "Node";
        if !keeps_status {
            object::remove(body, "status");
        }
    }
}

fn name_fault(name: &str) -> Option<&'static str> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
    if name.is_empty() {
        Some("Required value: name or generateName is required")
    } else if name.len() > 253 {
        Some("Too long: may not be more than 253 bytes")
    } else if !name.chars().all(allowed) {
        Some("Invalid value: a lowercase RFC 1123 subdomain is required")
    } else {
        None
    }
}
