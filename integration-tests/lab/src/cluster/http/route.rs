//! What a request line asks for.
//!
//! Invariant: parsing decides nothing about existence; it only names what was asked.

use std::collections::BTreeMap;

use axum::extract::Query;
use http::Uri;

use crate::cluster::error::ApiError;
use crate::cluster::selector::{FieldSelector, LabelSelector};
use crate::cluster::server::{ListOptions, Part, Selection, WriteOptions};

/// The object or collection a path names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourcePath {
    /// API group, empty for core.
    pub group: String,
    /// Version.
    pub version: String,
    /// Namespace; empty for cluster-scoped kinds and for lists over all namespaces.
    pub namespace: String,
    /// Plural name of the resource.
    pub plural: String,
    /// Object's name; empty for collections.
    pub name: String,
    /// Subresource; empty for the object itself.
    pub subresource: String,
}

/// What a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// A health check.
    Health,
    /// Server version.
    Version,
    /// `/api`.
    CoreVersions,
    /// `/apis`.
    Groups,
    /// `/apis/GROUP`.
    Group(String),
    /// `/api/v1` and `/apis/GROUP/VERSION`.
    Resources {
        /// API group.
        group: String,
        /// Version.
        version: String,
    },
    /// `/openapi/v3`.
    OpenApi,
    /// `/openapi/v3/api/v1` and `/openapi/v3/apis/GROUP/VERSION`.
    OpenApiOf {
        /// API group.
        group: String,
        /// Version.
        version: String,
    },
    /// Objects.
    Resource(ResourcePath),
    /// Nothing that is served.
    Unknown,
}

impl Route {
    /// Reads a path.
    pub fn parse(path: &str) -> Self {
        let segments: Vec<String> =
            path.split('/').filter(|segment| !segment.is_empty()).map(percent_decoded).collect();
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        match segments.as_slice() {
            ["healthz" | "readyz" | "livez", ..] => Self::Health,
            ["version"] => Self::Version,
            ["openapi", "v3"] => Self::OpenApi,
            ["openapi", "v3", "api", version] => {
                Self::OpenApiOf { group: String::new(), version: (*version).to_owned() }
            }
            ["openapi", "v3", "apis", group, version] => {
                Self::OpenApiOf { group: (*group).to_owned(), version: (*version).to_owned() }
            }
            ["api"] => Self::CoreVersions,
            ["apis"] => Self::Groups,
            ["apis", group] => Self::Group((*group).to_owned()),
            ["api", version] => {
                Self::Resources { group: String::new(), version: (*version).to_owned() }
            }
            ["apis", group, version] => {
                Self::Resources { group: (*group).to_owned(), version: (*version).to_owned() }
            }
            ["api", version, rest @ ..] => resource("", version, rest),
            ["apis", group, version, rest @ ..] => resource(group, version, rest),
            _ => Self::Unknown,
        }
    }
}

fn resource(group: &str, version: &str, rest: &[&str]) -> Route {
    let (namespace, rest) = match rest {
        // These two are subresources of the namespace itself.
        ["namespaces", _, "status" | "finalize"] => ("", rest),
        ["namespaces", namespace, inner @ ..] if !inner.is_empty() => (*namespace, inner),
        _ => ("", rest),
    };
    let (plural, name, subresource) = match rest {
        [plural] => (*plural, "", ""),
        [plural, name] => (*plural, *name, ""),
        [plural, name, subresource] => (*plural, *name, *subresource),
        _ => return Route::Unknown,
    };
    Route::Resource(ResourcePath {
        group: group.to_owned(),
        version: version.to_owned(),
        namespace: namespace.to_owned(),
        plural: plural.to_owned(),
        name: name.to_owned(),
        subresource: subresource.to_owned(),
    })
}

fn percent_decoded(segment: &str) -> String {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let hex = tail.get(..2).filter(|_| *first == b'%');
        let decoded = hex
            .and_then(|hex| std::str::from_utf8(hex).ok())
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(decoded.unwrap_or(*first));
        rest = if decoded.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Query parameters of a request.
#[derive(Clone, Debug, Default)]
pub struct Parameters(BTreeMap<String, String>);

impl Parameters {
    /// Reads the query of a URI; the last of repeated parameters counts.
    ///
    /// # Errors
    /// BadRequest for a malformed query.
    pub fn of(uri: &Uri) -> Result<Self, ApiError> {
        let query = Query::<BTreeMap<String, String>>::try_from_uri(uri);
        query.map(|Query(map)| Self(map)).map_err(|error| ApiError::BadRequest(error.to_string()))
    }

    /// A parameter's text, empty when absent.
    pub fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// True for `true` and `1`.
    pub fn flag(&self, name: &str) -> bool {
        ["true", "1"].contains(&self.text(name))
    }

    /// A number, when present and well-formed.
    pub fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.text(name).parse().ok()
    }

    /// Selectors.
    ///
    /// # Errors
    /// BadRequest for selectors that do not parse.
    pub fn selection(&self) -> Result<Selection, ApiError> {
        Ok(Selection {
            labels: LabelSelector::parse(self.text("labelSelector"))?,
            fields: FieldSelector::parse(self.text("fieldSelector"))?,
        })
    }

    /// Options of a list.
    ///
    /// # Errors
    /// As [`Parameters::selection`].
    pub fn list(&self) -> Result<ListOptions, ApiError> {
        Ok(ListOptions {
            selection: self.selection()?,
            limit: self.number("limit"),
            continue_token: self.0.get("continue").cloned(),
        })
    }

    /// Options of a write to `subresource`.
    pub fn write(&self, subresource: &str) -> WriteOptions {
        WriteOptions {
            manager: self.0.get("fieldManager").filter(|name| !name.is_empty()).cloned(),
            dry_run: self.text("dryRun") == "All",
            part: if subresource == "status" { Part::Status } else { Part::Main },
            applied: None,
        }
    }
}
