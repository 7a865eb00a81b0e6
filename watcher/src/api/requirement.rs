//! Requirements on labels, and which labels may be required.
//!
//! Invariant: the three kinds that carry requirements share one item schema and differ only in the
//! keys they permit.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::keys::labels::{AWS_INSTANCE, AWS_LAUNCH, CAPACITY_TYPE, HOSTNAME, NODE_POOL};
use super::schema::{KEY_LENGTH_MAX, LABEL_VALUE, QUALIFIED_NAME, VALUE_LENGTH_MAX, rules};

/// Longest list of requirements.
const REQUIREMENTS_MAX: u64 = 100;

/// Constrains one label of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Requirement {
    /// Label key.
    #[schemars(length(max = KEY_LENGTH_MAX), regex(pattern = QUALIFIED_NAME))]
    pub key: String,
    /// How the label's value relates to `values`.
    pub operator: Operator,
    /// At least one for In, one non-negative integer for Gt, Lt, Gte and Lte, none for Exists and
    /// DoesNotExist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        inner(length(max = VALUE_LENGTH_MAX), regex(pattern = LABEL_VALUE)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub values: Vec<String>,
    /// How many different values a launch must be able to choose among, so that it does not hang
    /// on one instance type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 50))]
    pub min_values: Option<i32>,
}

/// Relation of a label's value to a requirement's values.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum Operator {
    /// It is one of them.
    In,
    /// It is none of them, or the label is missing.
    NotIn,
    /// The label is there.
    Exists,
    /// The label is missing.
    DoesNotExist,
    /// It is greater.
    Gt,
    /// It is less.
    Lt,
    /// It is greater or equal.
    Gte,
    /// It is less or equal.
    Lte,
}

const IN_NEEDS_VALUES: (&str, &str) = (
    "self.all(x, x.operator != 'In' || (has(x.values) && x.values.size() > 0))",
    "operator In needs at least one value",
);
const NOT_IN_NEEDS_VALUES: (&str, &str) = (
    "self.all(x, x.operator != 'NotIn' || (has(x.values) && x.values.size() > 0))",
    "operator NotIn needs at least one value",
);
const ONE_INTEGER: (&str, &str) = (
    "self.all(x, !(x.operator in ['Gt', 'Lt', 'Gte', 'Lte']) || (has(x.values) \
     && x.values.size() == 1 && x.values[0].matches('^[0-9]+$')))",
    "operators Gt, Lt, Gte and Lte need exactly one value, a non-negative integer",
);
const ENOUGH_VALUES: (&str, &str) = (
    "self.all(x, x.operator != 'In' || !has(x.minValues) || (has(x.values) \
     && x.values.size() >= x.minValues))",
    "with operator In there must be at least minValues values",
);

/// Requirements in a NodePool's template.
pub fn of_node_pool(generator: &mut SchemaGenerator) -> Schema {
    let mut keys = key_rules("self", &aws_keys());
    keys.push((format!("self != '{NODE_POOL}'"), nodepool_message()));
    list(generator, &[IN_NEEDS_VALUES, ONE_INTEGER, ENOUGH_VALUES], &keys)
}

/// Requirements of a NodeClaim.
pub fn of_node_claim(generator: &mut SchemaGenerator) -> Schema {
    let keys = key_rules("self", &aws_keys());
    list(generator, &[IN_NEEDS_VALUES, ONE_INTEGER, ENOUGH_VALUES], &keys)
}

/// Requirements of a NodeOverlay: what follows from the instance type, and no `minValues`.
pub fn of_node_overlay(generator: &mut SchemaGenerator) -> Schema {
    let keys = key_rules("self", &AWS_INSTANCE);
    let mut schema = list(generator, &[IN_NEEDS_VALUES, NOT_IN_NEEDS_VALUES, ONE_INTEGER], &keys);
    if let Some(Value::Object(properties)) = schema.pointer_mut("/items/properties") {
        properties.remove("minValues");
    }
    schema
}

/// Labels as a NodePool's template gives them to nodes.
pub fn template_labels(_: &mut SchemaGenerator) -> Schema {
    schemars::json_schema!({
        "description": "Labels of the nodes, beside those that follow from the instance.",
        "type": "object",
        "maxProperties": 100,
        "additionalProperties": {
            "type": "string", "maxLength": VALUE_LENGTH_MAX, "pattern": LABEL_VALUE,
        },
        "x-kubernetes-map-type": "atomic",
        "x-kubernetes-validations": label_map_rules(),
    })
}

/// Rules for the keys of a NodePool template's labels.
fn label_map_rules() -> Value {
    let mut keys = key_rules("x", &aws_keys());
    keys.push((format!("x != '{NODE_POOL}'"), nodepool_message()));
    keys.into_iter()
        .map(
            |(rule, message)| json!({ "rule": format!("self.all(x, {rule})"), "message": message }),
        )
        .collect()
}

fn aws_keys() -> Vec<&'static str> {
    AWS_INSTANCE.into_iter().chain(AWS_LAUNCH).collect()
}

/// Domains that belong to the autoscaler admit only the keys it knows.
fn key_rules(variable: &str, aws_keys: &[&str]) -> Vec<(String, String)> {
    let well_known = [CAPACITY_TYPE, NODE_POOL];
    let reserved = |domain: &str, known: &[&str]| {
        let rule = format!(
            "{variable} in {} || !{variable}.matches('^([^/]+[.])?{domain}/')",
            json!(known),
            domain = domain.replace('.', "[.]"),
        );
        (rule, format!("the domain {domain} is reserved; use one of its well-known labels"))
    };
    vec![
        reserved(super::keys::GROUP, &well_known),
        reserved(super::keys::AWS_GROUP, aws_keys),
        (
            format!("{variable} != '{HOSTNAME}'"),
            format!("{HOSTNAME} is unknown before the node exists and may not be constrained"),
        ),
    ]
}

fn nodepool_message() -> String {
    format!("{NODE_POOL} is set to the pool's own name and may not be constrained")
}

fn list(
    generator: &mut SchemaGenerator,
    list_rules: &[(&str, &str)],
    key_rules: &[(String, String)],
) -> Schema {
    let mut schema = Vec::<Requirement>::json_schema(generator);
    schema.insert("maxItems".into(), REQUIREMENTS_MAX.into());
    schema.insert("x-kubernetes-list-type".into(), "atomic".into());
    schema.insert("x-kubernetes-validations".into(), rules(list_rules));
    if let Some(Value::Object(key)) = schema.pointer_mut("/items/properties/key") {
        let pairs: Vec<_> = key_rules.iter().map(|(r, m)| (r.as_str(), m.as_str())).collect();
        key.insert("x-kubernetes-validations".into(), rules(&pairs));
    }
    schema
}
