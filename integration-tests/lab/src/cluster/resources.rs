//! Which kinds the API server serves: the built-in table and what CustomResourceDefinitions add.
//!
//! Invariant: a resource is found by group, version and plural, and by nothing else; every version
//! of a resource reads and writes the same stored objects.

mod builtin;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::object;
use super::schema::Schema;

/// One kind of object and how it is served.
#[derive(Clone, Debug, Default)]
pub struct Resource {
    /// API group; empty for the core group.
    pub group: String,
    /// Served versions, preferred first.
    pub versions: Vec<String>,
    /// Plural name used in paths.
    pub plural: String,
    /// Singular name, for discovery.
    pub singular: String,
    /// Kind.
    pub kind: String,
    /// Short names, for discovery.
    pub short_names: Vec<String>,
    /// Categories, for discovery.
    pub categories: Vec<String>,
    /// True when objects live in namespaces.
    pub namespaced: bool,
    /// True when `status` is written through its own subresource.
    pub status: bool,
    /// True when the `scale` subresource is served.
    pub scale: bool,
    /// True when objects come from a CustomResourceDefinition.
    pub custom: bool,
    /// Structural schemas by version; built-in kinds have none.
    pub schemas: BTreeMap<String, Schema>,
}

impl Resource {
    /// Plural and group, `deployments.apps`; just the plural for the core group. Identifies the
    /// resource in the store and in messages.
    pub fn id(&self) -> String {
        resource_id(&self.group, &self.plural)
    }

    /// `apiVersion` of objects in `version`.
    pub fn api_version(&self, version: &str) -> String {
        match self.group.as_str() {
            "" => version.to_owned(),
            group => format!("{group}/{version}"),
        }
    }

    /// The version a client gets when it names none.
    pub fn preferred_version(&self) -> &str {
        self.versions.first().map_or("v1", String::as_str)
    }

    /// Kind of the list object.
    pub fn list_kind(&self) -> String {
        format!("{}List", self.kind)
    }

    /// Reads a CustomResourceDefinition; none when it serves no version.
    pub fn of_definition(definition: &Value) -> Option<Self> {
        let spec = &definition["spec"];
        let names = &spec["names"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let list = |value: &Value| object::items(value).iter().map(text).collect::<Vec<_>>();
        let served = || object::items(&spec["versions"]).iter().filter(|v| v["served"] == true);
        let mut versions: Vec<String> = served().map(|version| text(&version["name"])).collect();
        versions.sort_by_key(|version| std::cmp::Reverse(version_rank(version)));
        let singular = match text(&names["singular"]) {
            singular if singular.is_empty() => text(&names["kind"]).to_lowercase(),
            singular => singular,
        };
        let has = |subresource: &str| served().any(|v| v["subresources"][subresource].is_object());
        let schema = |version: &Value| {
            Some((
                text(&version["name"]),
                Schema::structural(&version["schema"]["openAPIV3Schema"])?,
            ))
        };
        (!versions.is_empty()).then(|| Self {
            group: text(&spec["group"]),
            versions,
            plural: text(&names["plural"]),
            singular,
            kind: text(&names["kind"]),
            short_names: list(&names["shortNames"]),
            categories: list(&names["categories"]),
            namespaced: spec["scope"] == "Namespaced",
            status: has("status"),
            scale: has("scale"),
            custom: true,
            schemas: served().filter_map(schema).collect(),
        })
    }
}

/// Plural and group joined as messages and the store name a resource.
pub fn resource_id(group: &str, plural: &str) -> String {
    if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") }
}

/// Orders versions as discovery does: stable before beta before alpha, newer before older.
fn version_rank(version: &str) -> (u8, u32, u32) {
    let rest = version.strip_prefix('v').unwrap_or(version);
    let (stage, major, minor) = match rest.split_once("beta").map(|parts| (1, parts)) {
        Some((stage, (major, minor))) => (stage, major, minor),
        None => match rest.split_once("alpha") {
            Some((major, minor)) => (0, major, minor),
            None => (2, rest, "0"),
        },
    };
    (stage, major.parse().unwrap_or(0), minor.parse().unwrap_or(0))
}

/// All resources being served.
#[derive(Debug)]
pub struct Registry {
    resources: BTreeMap<(String, String), Arc<Resource>>,
}

impl Registry {
    /// The built-in kinds.
    pub fn builtin() -> Self {
        let keyed = |resource: Resource| {
            ((resource.group.clone(), resource.plural.clone()), Arc::new(resource))
        };
        Self { resources: builtin::resources().map(keyed).collect() }
    }

    /// Finds what a path names.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Resource>> {
        let resource = self.resources.get(&(group.to_owned(), plural.to_owned()))?;
        resource.versions.iter().any(|served| served == version).then(|| Arc::clone(resource))
    }

    /// Finds a resource by `apiVersion` and `kind`, as owner references name it.
    pub fn find_kind(&self, api_version: &str, kind: &str) -> Option<Arc<Resource>> {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let mut found = self.resources.values();
        found.find(|resource| resource.group == group && resource.kind == kind).cloned()
    }

    /// Finds a resource by [`Resource::id`].
    pub fn find_id(&self, id: &str) -> Option<Arc<Resource>> {
        let (plural, group) = id.split_once('.').unwrap_or((id, ""));
        self.resources.get(&(group.to_owned(), plural.to_owned())).cloned()
    }

    /// Every resource, ordered by group and plural.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.values()
    }

    /// Serves what a definition defines, in place of what it defined before.
    pub fn register(&mut self, resource: Resource) {
        let key = (resource.group.clone(), resource.plural.clone());
        self.resources.insert(key, Arc::new(resource));
    }

    /// Stops serving a custom resource.
    pub fn unregister(&mut self, group: &str, plural: &str) {
        let key = (group.to_owned(), plural.to_owned());
        if self.resources.get(&key).is_some_and(|resource| resource.custom) {
            self.resources.remove(&key);
        }
    }
}
