//! Structural schemas of custom resources: what is pruned and what is defaulted.
//!
//! Invariant: pruning never removes what a schema knows; kind, apiVersion and metadata are never
//! touched at the root.

use std::collections::BTreeMap;

use serde_json::Value;

/// The part of an OpenAPI v3 schema that decides about pruning and defaults.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    properties: BTreeMap<String, Schema>,
    additional: Option<Box<Schema>>,
    items: Option<Box<Schema>>,
    default: Option<Value>,
    keeps_unknown: bool,
    is_embedded: bool,
}

impl Schema {
    /// Reads `openAPIV3Schema`; none when the definition gives no schema.
    pub fn structural(schema: &Value) -> Option<Self> {
        schema.is_object().then(|| Self::read(schema))
    }

    fn read(schema: &Value) -> Self {
        let properties = schema["properties"].as_object().into_iter().flatten();
        let nested = |field: &str| Self::structural(&schema[field]).map(Box::new);
        Self {
            properties: properties.map(|(key, inner)| (key.clone(), Self::read(inner))).collect(),
            additional: nested("additionalProperties"),
            items: nested("items"),
            default: schema.get("default").cloned(),
            keeps_unknown: schema["x-kubernetes-preserve-unknown-fields"] == true
                || schema["additionalProperties"] == true,
            is_embedded: schema["x-kubernetes-embedded-resource"] == true,
        }
    }

    /// Drops unknown fields of a whole object and fills in defaults. Returns the paths dropped.
    pub fn admit(&self, object: &mut Value) -> Vec<String> {
        let mut dropped = Vec::new();
        let Some(map) = object.as_object_mut() else { return dropped };
        for (field, value) in map.iter_mut() {
            if ["apiVersion", "kind", "metadata"].contains(&field.as_str()) {
                continue;
            }
            if let Some(schema) = self.properties.get(field) {
                schema.visit(value, field, &mut dropped);
            }
        }
        if !self.keeps_unknown {
            let known = |field: &str| {
                ["apiVersion", "kind", "metadata"].contains(&field)
                    || self.properties.contains_key(field)
            };
            dropped.extend(map.keys().filter(|field| !known(field)).cloned());
            map.retain(|field, _| known(field));
        }
        dropped
    }

    fn visit(&self, value: &mut Value, path: &str, dropped: &mut Vec<String>) {
        if let Some(list) = value.as_array_mut() {
            let items = self.items.as_deref().into_iter();
            items.for_each(|schema| {
                list.iter_mut().enumerate().for_each(|(index, item)| {
                    schema.visit(item, &format!("{path}[{index}]"), dropped);
                });
            });
            return;
        }
        let Some(map) = value.as_object_mut() else { return };
        for (field, schema) in &self.properties {
            if let (None, Some(default)) = (map.get(field), &schema.default) {
                map.insert(field.clone(), default.clone());
            }
        }
        let mut unknown = Vec::new();
        for (field, inner) in map.iter_mut() {
            let inner_path = format!("{path}.{field}");
            match self.properties.get(field).or(self.additional.as_deref()) {
                Some(schema) => schema.visit(inner, &inner_path, dropped),
                None if self.keeps(field) => {}
                None => unknown.push(field.clone()),
            }
        }
        for field in unknown {
            map.remove(&field);
            dropped.push(format!("{path}.{field}"));
        }
    }

    fn keeps(&self, field: &str) -> bool {
        let embedded = ["apiVersion", "kind", "metadata"];
        self.keeps_unknown || (self.is_embedded && embedded.contains(&field))
    }
}
