//! The custom resource definitions, generated from the types.
//!
//! Invariant: what the derive cannot say is corrected here and nowhere else. The API server drops
//! a null of a field that is not nullable, which is what makes an empty `weight:` in a manifest
//! mean the same as none; so no field of ours is nullable.

use std::fmt;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    AWSNodeTemplate, CapacityBuffer, EC2NodeClass, NodeClaim, NodeOverlay, NodePool, Provisioner,
};

/// The kinds of the API, in the order in which they are installed and listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// NodePool, karpenter.sh/v1.
    NodePool,
    /// NodeClaim, karpenter.sh/v1.
    NodeClaim,
    /// NodeOverlay, karpenter.sh/v1alpha1.
    NodeOverlay,
    /// CapacityBuffer, autoscaling.x-k8s.io/v1beta1.
    CapacityBuffer,
    /// EC2NodeClass, karpenter.k8s.aws/v1.
    EC2NodeClass,
    /// Provisioner, karpenter.sh/v1alpha5.
    Provisioner,
    /// AWSNodeTemplate, karpenter.k8s.aws/v1alpha1.
    AWSNodeTemplate,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::NodePool,
        Self::NodeClaim,
        Self::NodeOverlay,
        Self::CapacityBuffer,
        Self::EC2NodeClass,
        Self::Provisioner,
        Self::AWSNodeTemplate,
    ];

    /// The kind of an object by its `apiVersion` and `kind`; none when it is none of ours.
    #[must_use]
    pub fn of(object: &Value) -> Option<Self> {
        let (version, kind) = (object["apiVersion"].as_str()?, object["kind"].as_str()?);
        Self::ALL.into_iter().find(|ours| ours.api_version() == version && ours.name() == kind)
    }

    /// `kind` of an object.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NodePool => "NodePool",
            Self::NodeClaim => "NodeClaim",
            Self::NodeOverlay => "NodeOverlay",
            Self::CapacityBuffer => "CapacityBuffer",
            Self::EC2NodeClass => "EC2NodeClass",
            Self::Provisioner => "Provisioner",
            Self::AWSNodeTemplate => "AWSNodeTemplate",
        }
    }

    /// `apiVersion` of an object.
    #[must_use]
    pub const fn api_version(self) -> &'static str {
        match self {
            Self::NodePool | Self::NodeClaim => "karpenter.sh/v1",
            Self::NodeOverlay => "karpenter.sh/v1alpha1",
            Self::CapacityBuffer => "autoscaling.x-k8s.io/v1beta1",
            Self::EC2NodeClass => "karpenter.k8s.aws/v1",
            Self::Provisioner => "karpenter.sh/v1alpha5",
            Self::AWSNodeTemplate => "karpenter.k8s.aws/v1alpha1",
        }
    }

    /// Its definition, as it is installed.
    #[must_use]
    pub fn definition(self) -> CustomResourceDefinition {
        let mut definition = match self {
            Self::NodePool => NodePool::crd(),
            Self::NodeClaim => NodeClaim::crd(),
            Self::NodeOverlay => NodeOverlay::crd(),
            Self::CapacityBuffer => CapacityBuffer::crd(),
            Self::EC2NodeClass => EC2NodeClass::crd(),
            Self::Provisioner => Provisioner::crd(),
            Self::AWSNodeTemplate => AWSNodeTemplate::crd(),
        };
        definition.spec.names.list_kind = Some(format!("{}List", self.name()));
        for version in &mut definition.spec.versions {
            if let Some(schema) =
                version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut())
            {
                correct(schema);
                complete_root(schema);
            }
        }
        definition
    }

    /// Schema of the whole object.
    #[must_use]
    pub fn schema(self) -> JSONSchemaProps {
        let version = self.definition().spec.versions.into_iter().next();
        version.and_then(|version| version.schema?.open_api_v3_schema).unwrap_or_default()
    }

    /// Name of its file under `deploy/crds`.
    #[must_use]
    pub fn file_name(self) -> String {
        let definition = self.definition();
        format!("{}_{}.yaml", definition.spec.group, definition.spec.names.plural)
    }

    /// Content of its file under `deploy/crds`.
    ///
    /// # Errors
    /// When the definition cannot be written as YAML, which a test excludes.
    pub fn file_content(self) -> Result<String, serde_saphyr::ser::Error> {
        let mut definition = serde_json::json!(self.definition());
        whole_numbers(&mut definition);
        let yaml = serde_saphyr::to_string(&definition)?;
        Ok(format!("# Generated from longshore_watcher::api; see watcher/src/bin/crds.rs.\n{yaml}"))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Decodes an object that did not come from an API server (a file, a test) as one would: nulls
/// count as missing and defaults are filled in.
///
/// # Errors
/// When a field has the wrong type or a required one is missing.
pub fn decode<T: DeserializeOwned>(mut object: Value) -> Result<T, serde_json::Error> {
    drop_nulls(&mut object);
    serde_json::from_value(object)
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Takes off what the derive adds for `Option`, and names of Rust types.
fn correct(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    schema.title = None;
    for property in schema.properties.iter_mut().flat_map(|properties| properties.values_mut()) {
        correct(property);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        correct(items);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        correct(values);
    }
}

/// Adds the fields that every object has, of which the derive says nothing.
fn complete_root(schema: &mut JSONSchemaProps) {
    let of_type = |type_: &str, description: &str| JSONSchemaProps {
        type_: Some(type_.into()),
        description: Some(description.into()),
        ..JSONSchemaProps::default()
    };
    let properties = schema.properties.get_or_insert_default();
    properties.insert("apiVersion".into(), of_type("string", "Group and version of the object."));
    properties.insert("kind".into(), of_type("string", "Kind of the object."));
    properties.insert(
        "metadata".into(),
        JSONSchemaProps { type_: Some("object".into()), ..JSONSchemaProps::default() },
    );
}

/// Bounds are floating-point in the schema's type; whole ones are written as the integers they are.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(whole_numbers),
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Number(number) => {
            let text = number.to_string();
            if let Some(Ok(whole)) = text.strip_suffix(".0").map(str::parse::<i64>) {
                *value = whole.into();
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests;
