//! Annotations by which an object's owner asks something of Longshore.
//!
//! Invariant: a value without a meaning is a fault that names the annotation and what it may say.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::fault::{FieldFault, Problem};

/// What an annotation says; nothing where it is not there.
pub fn text<'a>(metadata: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

/// The fault of a value that has no meaning, with what has one.
pub fn wrong(key: &str, value: &str, allowed: &'static str) -> FieldFault {
    let problem = Problem::Unknown { value: value.to_owned(), allowed };
    FieldFault::new(format!("metadata.annotations[{key}]"), problem)
}
