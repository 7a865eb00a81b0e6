//! What is known of a definition: its names, its columns, and each field with what is checked.
//!
//! Invariant: a description is no fact. Patterns and rules are known by a digest of their text
//! without its spaces: two definitions are told apart by it, and none is copied.

use std::collections::BTreeMap;
use std::fmt;

use longshore_proto::content::hash_of_bytes;
use serde_json::Value;

/// Attributes by name.
pub(super) type Attributes = BTreeMap<String, String>;

const HEAD: &str = "# What Karpenter's published definitions say. Do not edit: `UPDATE_EXPECT=1` \
                    rewrites it\n# (see objects.rs). Patterns and rules are digests of their text.\n";

/// All objects of one side.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Facts {
    /// Version of what publishes them; empty for ours.
    pub version: String,
    /// By kind.
    pub objects: BTreeMap<String, Object>,
}

/// One definition.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Object {
    /// Names, scope, versions and columns.
    pub about: Attributes,
    /// By path: `spec.limits.*`, `spec.template.spec.taints[].key`.
    pub fields: BTreeMap<String, Attributes>,
}

impl Facts {
    /// Reads what [`fmt::Display`] writes.
    pub(super) fn read(text: &str) -> Self {
        let mut facts = Self { version: String::new(), objects: BTreeMap::new() };
        let mut kind = String::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (word, rest) = line.split_once(' ').unwrap();
            let object = facts.objects.entry(kind.clone());
            match word {
                "karpenter" => rest.clone_into(&mut facts.version),
                "kind" => rest.clone_into(&mut kind),
                "about" => object.or_default().about.extend(attribute(rest)),
                _ => {
                    let attributes = rest.split(" | ").filter_map(attribute).collect();
                    object.or_default().fields.insert(word.to_owned(), attributes);
                }
            }
        }
        facts
    }
}

fn attribute(text: &str) -> Option<(String, String)> {
    text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()))
}

impl fmt::Display for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEAD}karpenter {}", self.version)?;
        for (kind, object) in &self.objects {
            writeln!(f, "kind {kind}")?;
            for (name, value) in &object.about {
                writeln!(f, "about {name}={value}")?;
            }
            for (path, attributes) in &object.fields {
                let all: Vec<_> =
                    attributes.iter().map(|(name, it)| format!("{name}={it}")).collect();
                writeln!(f, "{path} {}", all.join(" | "))?;
            }
        }
        Ok(())
    }
}

impl Object {
    /// What a definition says. It has one version.
    pub(super) fn of(definition: &Value) -> Self {
        let spec = &definition["spec"];
        let [version] = spec["versions"].as_array().unwrap().as_slice() else {
            panic!("another number of versions than one: say in the page how they differ")
        };
        let schema = &version["schema"]["openAPIV3Schema"];
        let mut object = Self { about: about(spec, version), fields: BTreeMap::new() };
        for part in ["spec", "status"] {
            object.add(part, &schema["properties"][part], is_required(schema, part));
        }
        object
    }

    /// Fields that hold no others.
    pub(super) fn leaves(&self) -> impl Iterator<Item = &String> {
        let spec = self.fields.keys().filter(|path| path.starts_with("spec."));
        spec.filter(|path| {
            let inner = |other: &String| {
                other.strip_prefix(path.as_str()).is_some_and(|rest| rest.starts_with(['.', '[']))
            };
            !self.fields.keys().any(inner)
        })
    }

    fn add(&mut self, path: &str, schema: &Value, required: bool) {
        let mut attributes: Attributes =
            schema.as_object().unwrap().iter().filter_map(said).collect();
        if schema["x-kubernetes-int-or-string"] == true {
            attributes.insert("type".to_owned(), "int-or-string".to_owned());
        }
        if required {
            attributes.insert("required".to_owned(), "yes".to_owned());
        }
        self.fields.insert(path.to_owned(), attributes);
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            self.add(&format!("{path}.{name}"), property, is_required(schema, name));
        }
        for (inner, suffix) in [("items", "[]"), ("additionalProperties", ".*")] {
            if schema[inner].is_object() {
                self.add(&format!("{path}{suffix}"), &schema[inner], false);
            }
        }
    }
}

/// Names, scope, subresources and columns.
fn about(spec: &Value, version: &Value) -> Attributes {
    let mut about = Attributes::new();
    for (name, value) in spec["names"].as_object().unwrap() {
        about.insert(name.clone(), text(value));
    }
    for name in ["group", "scope"] {
        about.insert(name.to_owned(), text(&spec[name]));
    }
    about.insert("version".to_owned(), text(&version["name"]));
    for name in ["served", "storage", "subresources", "deprecated"] {
        if !version[name].is_null() {
            about.insert(name.to_owned(), text(&version[name]));
        }
    }
    let columns = version["additionalPrinterColumns"].as_array().into_iter().flatten();
    for (at, column) in columns.enumerate() {
        let priority = column["priority"].as_i64().unwrap_or(0);
        let [path, type_, name] = ["jsonPath", "type", "name"].map(|key| text(&column[key]));
        about.insert(
            format!("column {at:02}"),
            format!("{name}: {type_} {path}, priority {priority}"),
        );
    }
    about
}

fn is_required(schema: &Value, name: &str) -> bool {
    schema["required"].as_array().is_some_and(|names| names.iter().any(|it| it == name))
}

/// A keyword of a schema as an attribute; none for what others say.
fn said((keyword, value): (&String, &Value)) -> Option<(String, String)> {
    let name = keyword.strip_prefix("x-kubernetes-").unwrap_or(keyword);
    let value = match name {
        // That a number may be text is its type; of this it may be said once more, by anyOf.
        "description" | "properties" | "items" | "required" | "int-or-string" | "anyOf" => {
            return None;
        }
        "additionalProperties" if value.is_object() => return None,
        "pattern" => digest(value),
        "enum" => sorted(value.as_array().unwrap().iter().map(text)),
        "validations" => sorted(value.as_array().unwrap().iter().map(|rule| digest(&rule["rule"]))),
        _ => text(value),
    };
    Some((name.to_owned(), value))
}

fn sorted(values: impl Iterator<Item = String>) -> String {
    let mut values: Vec<String> = values.collect();
    values.sort_unstable();
    values.join(" ")
}

fn digest(text: &Value) -> String {
    let words: Vec<&str> = text.as_str().unwrap().split_whitespace().collect();
    hash_of_bytes::<4>(words.concat().as_bytes())
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[test]
fn a_definition_is_read() {
    let schema = serde_json::json!({ "properties": {
        "spec": { "type": "object", "required": ["a"], "properties": {
            "a": { "type": "array", "items": { "type": "string", "pattern": "^a b$" } },
            "b": { "type": "object", "additionalProperties": {
                "x-kubernetes-int-or-string": true, "anyOf": [], "description": "any",
            } },
        } },
        "status": { "type": "object" },
    } });
    let object = Object::of(&serde_json::json!({ "spec": {
        "group": "g", "scope": "Cluster", "names": { "kind": "K", "shortNames": ["k"] },
        "versions": [{ "name": "v1", "schema": { "openAPIV3Schema": schema } }],
    } }));
    assert_eq!(object.leaves().collect::<Vec<_>>(), ["spec.a[]", "spec.b.*"]);
    let objects = [("K".to_owned(), object)].into();
    let facts = Facts { version: "1".to_owned(), objects };
    let text = facts.to_string();
    assert_eq!(
        text.strip_prefix(HEAD).unwrap(),
        "karpenter 1\nkind K\nabout group=g\nabout kind=K\nabout scope=Cluster\n\
         about shortNames=[\"k\"]\nabout version=v1\nspec type=object\n\
         spec.a required=yes | type=array\nspec.a[] pattern=b917cc04 | type=string\n\
         spec.b type=object\nspec.b.* type=int-or-string\nstatus type=object\n"
    );
    assert_eq!(Facts::read(&text), facts);
}
