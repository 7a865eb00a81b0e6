//! Selector terms: how an EC2NodeClass finds subnets, security groups, images, capacity
//! reservations and placement groups.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::schema::rules;

/// Tag key to value; `*` matches any value.
pub type TagSelector = BTreeMap<String, String>;

/// Selects subnets by tags or by id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SubnetSelectorTerm {
    /// Tags, all of which must match.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "tags")]
    pub tags: TagSelector,
    /// Subnet id; excludes tags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^subnet-[0-9a-z]+$"))]
    pub id: Option<String>,
}

/// Selects security groups by tags, by id or by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecurityGroupSelectorTerm {
    /// Tags, all of which must match.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "tags")]
    pub tags: TagSelector,
    /// Security group id; excludes tags and name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^sg-[0-9a-z]+$"))]
    pub id: Option<String>,
    /// Security group name, which is not the value of a tag Name; excludes tags and id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Selects images by alias, id, parameter, name, owner or tags.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AmiSelectorTerm {
    /// Family and version of an EKS image, such as `al2023@latest`; must be the only term.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 30), extend("x-kubernetes-validations" = alias_rules()))]
    pub alias: Option<String>,
    /// Tags, all of which must match.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "tags")]
    pub tags: TagSelector,
    /// Image id; excludes everything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^ami-[0-9a-z]+$"))]
    pub id: Option<String>,
    /// Image name, with wildcards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Account id of the image's owner, `self` or `amazon`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Name or ARN of an SSM parameter that holds an image id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssm_parameter: Option<String>,
}

/// Selects capacity reservations by id, or by tags, owner and match criteria.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapacityReservationSelectorTerm {
    /// Tags, all of which must match.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "tags")]
    pub tags: TagSelector,
    /// Reservation id; excludes everything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^cr-[0-9a-z]+$"))]
    pub id: Option<String>,
    /// Account id of the owner.
    #[serde(rename = "ownerID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[0-9]{12}$"))]
    pub owner_id: Option<String>,
    /// Which instances the reservation accepts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_match_criteria: Option<InstanceMatchCriteria>,
}

/// Which instances a capacity reservation accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum InstanceMatchCriteria {
    /// Every instance that fits.
    Open,
    /// Those that name it.
    Targeted,
}

impl InstanceMatchCriteria {
    /// As EC2 writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Targeted => "targeted",
        }
    }

    /// Reads what EC2 writes; nothing for what it does not.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        [Self::Open, Self::Targeted].into_iter().find(|criteria| criteria.as_str() == text)
    }
}

/// Selects a placement group by name or by id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlacementGroupSelector {
    /// Name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub name: Option<String>,
    /// Placement group id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^pg-[0-9a-z]+$"))]
    pub id: Option<String>,
}

fn tags(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 20,
        "additionalProperties": { "type": "string" },
        "x-kubernetes-validations": rules(&[(
            "self.all(k, k != '' && self[k] != '')",
            "neither key nor value of a tag may be empty; the value * matches any",
        )]),
    })
}

/// Families an alias may name, and the family field each implies.
const ALIAS_FAMILIES: [(&str, &str); 6] = [
    ("al2", "AL2"),
    ("al2023", "AL2023"),
    ("bottlerocket", "Bottlerocket"),
    ("windows2019", "Windows2019"),
    ("windows2022", "Windows2022"),
    ("windows2025", "Windows2025"),
];

fn alias_rules() -> Value {
    let names = ALIAS_FAMILIES.map(|(name, _)| name);
    let known = format!("self.split('@')[0] in {}", json!(names));
    let message = format!("the families of aliases are {}", names.join(", "));
    rules(&[
        (
            "self.matches('^[a-zA-Z0-9]+@.+$')",
            "write an alias as family@version, such as al2023@latest",
        ),
        (&known, &message),
        (
            "!self.startsWith('windows') || self.split('@')[1] == 'latest'",
            "Windows aliases know only the version latest",
        ),
    ])
}

pub(super) fn subnet_term_rules() -> Value {
    rules(&[
        ("self.size() != 0", "at least one term is needed"),
        ("self.all(x, has(x.tags) || has(x.id))", "each term needs tags or an id"),
        ("!self.exists(x, has(x.id) && has(x.tags))", "a term with an id may not have tags"),
    ])
}

pub(super) fn security_group_term_rules() -> Value {
    rules(&[
        ("self.size() != 0", "at least one term is needed"),
        (
            "self.all(x, has(x.tags) || has(x.id) || has(x.name))",
            "each term needs tags, an id or a name",
        ),
        (
            "!self.exists(x, has(x.id) && (has(x.tags) || has(x.name)))",
            "a term with an id may have neither tags nor name",
        ),
        (
            "!self.exists(x, has(x.name) && (has(x.tags) || has(x.id)))",
            "a term with a name may have neither tags nor id",
        ),
    ])
}

pub(super) fn capacity_reservation_term_rules() -> Value {
    rules(&[
        (
            "self.all(x, has(x.tags) || has(x.id) || has(x.instanceMatchCriteria))",
            "each term needs tags, an id or instanceMatchCriteria",
        ),
        (
            "!self.exists(x, has(x.id) && (has(x.tags) || has(x.ownerID) \
             || has(x.instanceMatchCriteria)))",
            "a term with an id may have nothing else",
        ),
    ])
}

pub(super) fn ami_term_rules() -> Value {
    rules(&[
        (
            "self.all(x, has(x.alias) || has(x.tags) || has(x.id) || has(x.name) \
             || has(x.ssmParameter))",
            "each term needs an alias, tags, an id, a name or an ssmParameter",
        ),
        (
            "!self.exists(x, has(x.id) && (has(x.alias) || has(x.tags) || has(x.name) \
             || has(x.owner)))",
            "a term with an id may have nothing else",
        ),
        (
            "!self.exists(x, has(x.alias) && (has(x.id) || has(x.tags) || has(x.name) \
             || has(x.owner)))",
            "a term with an alias may have nothing else",
        ),
        (
            "self.size() == 1 || !self.exists(x, has(x.alias))",
            "a term with an alias must be the only term",
        ),
    ])
}

/// Rules between an EC2NodeClass's fields: its role, and its family against its aliases.
pub(super) fn node_class_family_rules() -> Value {
    let mut all = vec![
        json!({
            "rule": "has(self.role) != has(self.instanceProfile)",
            "message": "set role or instanceProfile, exactly one of them",
        }),
        json!({
            "rule": "has(self.amiFamily) || self.amiSelectorTerms.exists(x, has(x.alias))",
            "message": "amiFamily is needed where no term is an alias",
        }),
    ];
    all.extend(ALIAS_FAMILIES.map(|(alias, family)| {
        json!({
            "rule": format!(
                "!has(self.amiFamily) || self.amiFamily in ['Custom', '{family}'] \
                 || !self.amiSelectorTerms.exists(x, has(x.alias) \
                 && x.alias.startsWith('{alias}@'))"
            ),
            "message": format!("with an alias {alias}@*, amiFamily is {family} or Custom"),
        })
    }));
    all.into()
}
