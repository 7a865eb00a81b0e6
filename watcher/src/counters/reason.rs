//! Reasons as Karpenter's metrics have them.
//!
//! Invariant: a reason that both know has Karpenter's name; another one is told as ours, in small
//! letters with underscores.

use std::borrow::Cow;

/// The label of a reason: of a condition (`Underutilized`) or of a refusal (`OUTCOME_UNKNOWN`).
#[must_use]
pub fn shown(reason: &str) -> Cow<'static, str> {
    match reason {
        "InstanceTerminated" => Cow::Borrowed("garbage_collected"),
        "NotLaunched" => Cow::Borrowed("launch_timeout"),
        "NODE_CLASS_NOT_READY" | "NodeClassNotReady" => Cow::Borrowed("nodeclass_not_ready"),
        other if other.contains('_') => Cow::Owned(other.to_lowercase()),
        other => Cow::Owned(snake_case(other)),
    }
}

fn snake_case(camel_case: &str) -> String {
    let mut out = String::with_capacity(camel_case.len() + 2);
    for character in camel_case.chars() {
        if character.is_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.extend(character.to_lowercase());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_karpenter_knows_has_its_name() {
        let table = [
            ("Underutilized", "underutilized"),
            ("Empty", "empty"),
            ("Unhealthy", "unhealthy"),
            ("RegistrationTimeout", "registration_timeout"),
            ("InstanceTerminated", "garbage_collected"),
            ("NotLaunched", "launch_timeout"),
            ("INSUFFICIENT_CAPACITY", "insufficient_capacity"),
            ("NODE_CLASS_NOT_READY", "nodeclass_not_ready"),
            ("InitializationTimeout", "initialization_timeout"),
        ];
        for (reason, label) in table {
            assert_eq!(shown(reason), label);
        }
    }
}
