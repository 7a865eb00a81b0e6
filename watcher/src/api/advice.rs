//! What the API server accepts in silence and a user would rather hear about.
//!
//! Invariant: warnings never change what an object means; what is known is read from the generated
//! schemas, so a new field is never reported as unknown.

mod unread;

use std::fmt;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::Value;

pub use self::unread::{UNREAD, UnreadField, unread_fields};
use super::crd::Kind;

/// Names at least this similar (0 to 1, by Jaro and Winkler) are taken for a slip.
const SIMILARITY_MIN: f64 = 0.8;

/// Something about an object that its author would want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    /// A field that no schema knows; the API server drops it.
    UnknownField(UnknownField),
    /// A field on which nothing acts yet.
    UnreadField(UnreadField),
    /// A pool that may grow without bound.
    NoLimit(Kind),
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownField(field) => field.fmt(f),
            Self::UnreadField(field) => field.fmt(f),
            Self::NoLimit(kind) => {
                let field = if *kind == Kind::Provisioner { "limits.resources" } else { "limits" };
                write!(f, "this pool has no limit; set spec.{field} to bound what it may cost")
            }
        }
    }
}

/// A field that no schema knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownField {
    /// Where it stands, such as `spec.limit` or `spec.template.spec.taints[0].val`.
    pub path: String,
    /// What was probably meant: a name at the same place, or a path elsewhere in the object.
    pub suggestion: Option<String>,
}

impl fmt::Display for UnknownField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is unknown and will be ignored", self.path)?;
        match &self.suggestion {
            Some(suggestion) => write!(f, "; did you mean {suggestion}?"),
            None => Ok(()),
        }
    }
}

/// All warnings about an object as its author wrote it.
#[must_use]
pub fn warnings(kind: Kind, object: &Value) -> Vec<Warning> {
    let unknown = unknown_fields(kind, object).into_iter().map(Warning::UnknownField);
    let unread = unread_fields(kind, object).into_iter().map(Warning::UnreadField);
    unknown
        .chain(unread)
        .chain(lacks_limit(kind, object).then_some(Warning::NoLimit(kind)))
        .collect()
}

/// Whether the object is a pool that may grow without bound: no resource is limited, nor the
/// number of nodes.
#[must_use]
pub fn lacks_limit(kind: Kind, object: &Value) -> bool {
    let spec = &object["spec"];
    let limits = match kind {
        Kind::NodePool if spec["replicas"].is_null() => &spec["limits"],
        Kind::Provisioner => &spec["limits"]["resources"],
        Kind::NodePool
        | Kind::NodeClaim
        | Kind::NodeOverlay
        | Kind::CapacityBuffer
        | Kind::EC2NodeClass
        | Kind::AWSNodeTemplate => return false,
    };
    limits.as_object().is_none_or(serde_json::Map::is_empty)
}

/// Fields of an object that its schema does not know, in the order of the object; last those of
/// the in-line provider of a Provisioner, where no schema of the API server looks.
#[must_use]
pub fn unknown_fields(kind: Kind, object: &Value) -> Vec<UnknownField> {
    let schema = kind.schema();
    let mut search = Search { spec: property(&schema, "spec"), place: "spec", found: Vec::new() };
    search.visit(&schema, object, "");
    let mut found = search.found;
    if kind == Kind::Provisioner {
        let template = Kind::AWSNodeTemplate.schema();
        if let Some(spec) = property(&template, "spec") {
            let place = "spec.provider";
            let mut search = Search { spec: Some(spec), place, found: Vec::new() };
            search.visit(spec, &object["spec"]["provider"], place);
            found.extend(search.found);
        }
    }
    found
}

/// A walk along an object and its schema.
struct Search<'a> {
    /// Where a field that stands in the wrong place is looked for, and its path.
    spec: Option<&'a JSONSchemaProps>,
    place: &'static str,
    found: Vec<UnknownField>,
}

impl Search<'_> {
    fn visit(&mut self, schema: &JSONSchemaProps, value: &Value, path: &str) {
        match value {
            Value::Object(fields) => {
                for (name, field) in fields {
                    self.visit_field(schema, name, field, path);
                }
            }
            Value::Array(items) => {
                if let Some(JSONSchemaPropsOrArray::Schema(of_item)) = &schema.items {
                    for (index, item) in items.iter().enumerate() {
                        self.visit(of_item, item, &format!("{path}[{index}]"));
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn visit_field(&mut self, schema: &JSONSchemaProps, name: &str, value: &Value, path: &str) {
        let here = join(path, name);
        if let Some(known) = property(schema, name) {
            // The API server itself knows metadata; its schema says nothing about it.
            if here != "metadata" {
                self.visit(known, value, &here);
            }
            return;
        }
        match &schema.additional_properties {
            Some(JSONSchemaPropsOrBool::Schema(of_value)) => self.visit(of_value, value, &here),
            Some(JSONSchemaPropsOrBool::Bool(true)) => {}
            Some(JSONSchemaPropsOrBool::Bool(false)) | None => {
                if schema.x_kubernetes_preserve_unknown_fields != Some(true) {
                    let elsewhere = || elsewhere(self.spec?, name, self.place);
                    let suggestion = similar(schema, name).or_else(elsewhere);
                    self.found.push(UnknownField { path: here, suggestion });
                }
            }
        }
    }
}

fn property<'a>(schema: &'a JSONSchemaProps, name: &str) -> Option<&'a JSONSchemaProps> {
    schema.properties.as_ref()?.get(name)
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// The most similar name at the same place.
fn similar(schema: &JSONSchemaProps, name: &str) -> Option<String> {
    let lower = name.to_lowercase();
    let score = |known: &str| strsim::jaro_winkler(&lower, &known.to_lowercase());
    let names = schema.properties.iter().flat_map(|properties| properties.keys());
    let best = names.max_by(|a, b| score(a).total_cmp(&score(b)))?;
    (score(best) >= SIMILARITY_MIN).then(|| best.clone())
}

/// Path of a field of exactly this name, the first in the order of the schema, lists left out.
fn elsewhere(schema: &JSONSchemaProps, name: &str, path: &str) -> Option<String> {
    let properties = schema.properties.as_ref()?;
    if properties.contains_key(name) {
        return Some(join(path, name));
    }
    properties.iter().find_map(|(step, nested)| elsewhere(nested, name, &join(path, step)))
}

#[cfg(test)]
mod tests;
