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
    let kind = value["kind"].as_str().unwrap_or_default().to_lowercase();
    let decoded = crd::decode::<Traced<T>>(value).map(|traced| traced.0);
    decoded.map_err(|error| with_way_out(&kind, &error.to_string()))
}

/// Adds where it is said what the field may be.
fn with_way_out(kind: &str, error: &str) -> String {
    let path = error.split(": ").next().unwrap_or_default();
    let fields = path.split('.').map(|field| field.split('[').next().unwrap_or_default());
    let named = fields.filter(|field| !field.is_empty() && *field != "?");
    let what = [kind].into_iter().chain(named).collect::<Vec<_>>().join(".");
    format!("{error}; `kubectl explain {what}` says what it may be")
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

    #[test]
    fn the_way_out_leads_to_the_field() {
        let pod = json!({"kind": "Pod", "spec": {"containers": [{"name": "a", "resources": [1]}]}});
        let error = decode::<k8s_openapi::api::core::v1::Pod>(pod).unwrap_err();
        assert!(error.starts_with("spec.containers[0].resources: "), "{error}");
        assert!(error.contains("`kubectl explain pod.spec.containers.resources`"), "{error}");
    }
}
