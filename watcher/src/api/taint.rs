//! Taints that nodes carry.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema::{LABEL_VALUE, QUALIFIED_NAME, date_time};

/// A taint: pods that do not tolerate it stay away.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    /// Key.
    #[schemars(length(min = 1), regex(pattern = QUALIFIED_NAME))]
    pub key: String,
    /// Value; may be missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = LABEL_VALUE))]
    pub value: Option<String>,
    /// What happens to pods without a toleration.
    pub effect: TaintEffect,
    /// When it was put on; ignored here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "date_time")]
    pub time_added: Option<Time>,
}

/// What a taint does.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum TaintEffect {
    /// New pods stay away.
    NoSchedule,
    /// New pods stay away if they can.
    PreferNoSchedule,
    /// New pods stay away, running ones are evicted.
    NoExecute,
}

impl TaintEffect {
    /// As Kubernetes writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        }
    }
}
