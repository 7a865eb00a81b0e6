//! References from pools and claims to node classes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema::rules;

/// The object that says how instances are made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeClassReference {
    /// API group, without a version.
    #[schemars(
        regex(pattern = r"^[^/]*$"),
        extend("x-kubernetes-validations" = rules(&[("self != ''", "group may not be empty")]))
    )]
    pub group: String,
    /// Kind.
    #[schemars(
        extend("x-kubernetes-validations" = rules(&[("self != ''", "kind may not be empty")]))
    )]
    pub kind: String,
    /// Name.
    #[schemars(
        extend("x-kubernetes-validations" = rules(&[("self != ''", "name may not be empty")]))
    )]
    pub name: String,
}
