//! How Kubernetes names an instance: `aws:///ZONE/INSTANCE`.
//!
//! Invariant: what is written here is read back equal.

/// EC2 id inside a provider id; empty when there is none.
#[must_use]
pub fn instance_id(provider_id: &str) -> &str {
    provider_id.rsplit('/').next().unwrap_or_default()
}

/// The provider id of an instance.
#[must_use]
pub fn of(zone: &str, instance_id: &str) -> String {
    format!("aws:///{zone}/{instance_id}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_survive() {
        assert_eq!(instance_id(&of("us-east-1a", "i-1")), "i-1");
        assert_eq!(instance_id(""), "");
    }
}
