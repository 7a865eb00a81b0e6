//! What is asked of a kind of objects that is watched.
//!
//! Invariant: an object is read, taken in and forgotten by the rules of its kind, and nobody else
//! asks which kind it is.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::DeserializeOwned;

use super::{Index, Source};
use crate::project::Fault;

/// Namespace (empty for cluster-scoped objects) and name.
pub type Name = (String, String);

/// Name of an object by its metadata.
#[must_use]
pub fn name_of(meta: &ObjectMeta) -> Name {
    (meta.namespace.clone().unwrap_or_default(), meta.name.clone().unwrap_or_default())
}

/// An object whose kind is watched.
pub trait Watched: DeserializeOwned {
    /// Its kind.
    const SOURCE: Source;
    /// Whether its text may be told when it is wrong: not that of what containers are given.
    const QUOTABLE: bool = true;

    /// The object, from the text of its JSON: all of it, or as much as is asked for.
    ///
    /// # Errors
    /// What cannot be decoded.
    fn decode(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }

    /// Adds or replaces the object.
    ///
    /// # Errors
    /// What is wrong with it; it is then not in the view.
    fn apply(self, index: &mut Index) -> Result<(), Fault>;

    /// Removes the object; removing an unknown one is no error.
    fn forget(index: &mut Index, name: &Name);

    /// The node that it is on, for what is on one.
    fn node_name(&self) -> Option<&str> {
        None
    }
}
