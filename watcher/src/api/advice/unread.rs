//! Fields of an EC2NodeClass on which nothing acts yet.
//!
//! Invariant: a test gives each field other values and looks whether anything goes to the scheduler
//! for it; those for which nothing does are these.

use std::fmt;

use serde_json::Value;

use crate::api::crd::Kind;

/// A field that is accepted and checked, and on which nothing acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnreadField {
    /// Where it stands, such as `spec.blockDeviceMappings[].ebs.volumeInitializationRate`.
    pub path: &'static str,
    /// What happens instead.
    pub instead: &'static str,
}

impl fmt::Display for UnreadField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not acted on yet: {}", self.path, self.instead)
    }
}

const fn unread(path: &'static str, instead: &'static str) -> UnreadField {
    UnreadField { path, instead }
}

/// All of them.
pub const UNREAD: [UnreadField; 7] = [
    unread("spec.placementGroupSelector", "instances are launched in no placement group"),
    unread("spec.networkInterfaces", "instances get one network interface, the primary one"),
    unread("spec.ipPrefixCount", "no prefix is given to the network interface"),
    unread("spec.connectionTracking", "EC2's own time-outs hold"),
    unread("spec.cpuOptions", "EC2's own options hold, and types are not chosen by them"),
    unread("spec.context", "EC2 Fleet is called without it"),
    unread(
        "spec.blockDeviceMappings[].ebs.volumeInitializationRate",
        "the volume is filled at EC2's own pace",
    ),
];

/// Those that an object has.
#[must_use]
pub fn unread_fields(kind: Kind, object: &Value) -> Vec<UnreadField> {
    let own = UNREAD.iter().filter(|_| kind == Kind::EC2NodeClass);
    own.filter(|field| has(object, field.path)).copied().collect()
}

/// True when there is something at a path; one through a list means any of its items.
fn has(value: &Value, path: &str) -> bool {
    let (step, rest) = path.split_once('.').unwrap_or((path, ""));
    let found = &value[step.trim_end_matches("[]")];
    match found {
        Value::Null => false,
        Value::Array(items) if step.ends_with("[]") => items.iter().any(|item| has(item, rest)),
        Value::Array(items) if rest.is_empty() => !items.is_empty(),
        _ if rest.is_empty() => true,
        Value::Array(_) | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        Value::Object(_) => has(found, rest),
    }
}
