//! Objects from documents, with the path of the field that cannot be read.
//!
//! Invariant: decodes exactly as the watcher does; the path is all that is added.

use longshore_watcher::api::crd;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// An object whose decoding errors name the field.
struct Traced<T>(Box<T>);

impl<'de, T: DeserializeOwned> Deserialize<'de> for Traced<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde_path_to_error::deserialize(deserializer)
            .map(|object| Self(Box::new(object)))
            .map_err(|error| D::Error::custom(format!("{}: {}", error.path(), error.inner())))
    }
}

/// Decodes an object.
///
/// # Errors
/// The path of the first field that cannot be read, what is wrong with it and what would be right.
pub fn decode<T: DeserializeOwned>(value: Value) -> Result<Box<T>, String> {
    let decoded = crd::decode::<Traced<T>>(value).map(|traced| traced.0);
    decoded.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use longshore_watcher::api::NodePool;
    use serde_json::json;

    use super::*;

    #[test]
    fn errors_name_the_field_and_what_would_be_right() {
        let pool = json!({"metadata": {"name": "p"}, "spec": {"template": {"spec": {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "c"},
            "requirements": [{"key": "kubernetes.io/arch", "operator": "Inn", "values": []}],
        }}}});
        let error = decode::<NodePool>(pool).unwrap_err();
        let expected = "spec.template.spec.requirements[0].operator: unknown variant `Inn`, \
                        expected one of `In`, `NotIn`";
        assert!(error.starts_with(expected), "{error}");
    }
}
