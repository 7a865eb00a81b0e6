//! Pieces of schema that several kinds share, and that a derive cannot say.
//!
//! Invariant: patterns are RE2 and anchored; every rule has a message that names the way out.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// A label key: an optional DNS prefix, a slash, a name.
pub const QUALIFIED_NAME: &str = concat!(
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?",
    r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"
);
/// A label value; may be empty.
pub const LABEL_VALUE: &str = r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$";
/// Longest label key: a prefix of 253, a slash and a name, with room that Karpenter grants.
pub const KEY_LENGTH_MAX: u64 = 316;
/// Longest label value.
pub const VALUE_LENGTH_MAX: u64 = 63;
/// A Kubernetes quantity of either sign.
pub const QUANTITY: &str = concat!(
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))",
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
);

/// The value of `x-kubernetes-validations`: CEL rules, each with its message.
pub fn rules(rules: &[(&str, &str)]) -> Value {
    rules.iter().map(|(rule, message)| json!({ "rule": rule, "message": message })).collect()
}

/// A list of conditions, keyed by type.
pub fn conditions(_: &mut SchemaGenerator) -> Schema {
    condition_list(&["lastTransitionTime", "message", "reason", "status", "type"], 1)
}

/// A list of conditions whose reason and message may be missing, as NodeClaims have them.
pub fn lenient_conditions(_: &mut SchemaGenerator) -> Schema {
    condition_list(&["lastTransitionTime", "status", "type"], 0)
}

fn condition_list(required: &[&str], reason_length_min: u64) -> Schema {
    let reason = match reason_length_min {
        0 => r"^([A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?|)$",
        _ => r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
    };
    json_schema!({
        "description": "State of the object, one entry for each aspect.",
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": required,
            "properties": {
                "type": {
                    "description": "Aspect.", "type": "string",
                    "maxLength": KEY_LENGTH_MAX, "pattern": QUALIFIED_NAME,
                },
                "status": {
                    "description": "Whether it holds.", "type": "string",
                    "enum": ["True", "False", "Unknown"],
                },
                "reason": {
                    "description": "Why, as one word.", "type": "string",
                    "minLength": reason_length_min, "maxLength": 1024, "pattern": reason,
                },
                "message": {
                    "description": "Why, in a sentence.", "type": "string", "maxLength": 32768,
                },
                "lastTransitionTime": {
                    "description": "When the status last changed.",
                    "type": "string", "format": "date-time",
                },
                "observedGeneration": {
                    "description": "Generation of the object that was looked at.",
                    "type": "integer", "format": "int64", "minimum": 0,
                },
            },
        },
    })
}

/// A point in time, RFC 3339.
pub fn date_time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date-time" })
}
