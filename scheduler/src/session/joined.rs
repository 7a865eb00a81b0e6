//! A node as the life of its claim sees it.

use longshore_core::vocabulary::taint::{Taint, UNREGISTERED};
use longshore_proto::types::v1;

use crate::wire::time_ms;

/// What counts of a node until it is in service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    /// Name.
    pub name: String,
    /// True while it is not ready, or something besides our own taint keeps pods away for now.
    pub starting: bool,
    /// When it was created, in milliseconds since 1970.
    pub create_ms: i64,
}

impl Joined {
    /// From the watched node.
    #[must_use]
    pub fn new(node: &v1::Node) -> Self {
        let passing = |key: &str| key != UNREGISTERED && Taint::is_ephemeral_key(key);
        Self {
            name: node.name.clone(),
            starting: !node.ready || node.taints.iter().any(|taint| passing(&taint.key)),
            create_ms: node.create_time.as_ref().map_or(0, time_ms),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starting(ready: bool, taint: &str) -> bool {
        let taint = v1::Taint { key: taint.to_owned(), ..Default::default() };
        Joined::new(&v1::Node { ready, taints: vec![taint], ..Default::default() }).starting
    }

    #[test]
    fn only_what_passes_by_itself_is_waited_for() {
        assert!(!starting(true, UNREGISTERED));
        assert!(starting(false, UNREGISTERED));
        assert!(starting(true, "node.kubernetes.io/not-ready"));
        assert!(!starting(true, "example.com/dedicated"), "a taint that stays");
    }
}
