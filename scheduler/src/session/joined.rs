//! A node as the life of its claim sees it.

use longshore_core::vocabulary::taint::{DISRUPTED, Taint, UNREGISTERED};
use longshore_proto::types::v1;

use crate::wire::time_ms;

/// What counts of a node until it is in service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    /// Name.
    pub name: String,
    /// When it was first seen ready, with nothing but our own taint to keep pods away for now, in
    /// milliseconds of the session; None before.
    pub fit_ms: Option<i64>,
    /// When it was first seen at all, in milliseconds of the session.
    pub seen_ms: i64,
    /// Whether its kubelet says that it is well.
    pub ready: bool,
    /// Whether it was let into service: nothing keeps pods away any more because it has just come.
    pub open: bool,
    /// Whether it has the taint of a node that is to go.
    pub disrupted: bool,
    /// What is wrong with it, and when that is put up with no longer, in milliseconds since 1970.
    pub ailing: Option<(String, i64)>,
}

impl Joined {
    /// From the watched node, and what was known of it.
    #[must_use]
    pub fn new(node: &v1::Node, before: Option<&Self>, now_ms: i64) -> Self {
        let fit = node.ready && !node.taints.iter().any(|taint| Taint::is_passing_key(&taint.key));
        let since_ms = || before.and_then(|before| before.fit_ms).unwrap_or(now_ms);
        Self {
            name: node.name.clone(),
            fit_ms: fit.then(since_ms),
            seen_ms: before.map_or(now_ms, |before| before.seen_ms),
            ready: node.ready,
            open: !node.taints.iter().any(|taint| taint.key == UNREGISTERED),
            disrupted: node.taints.iter().any(|taint| taint.key == DISRUPTED),
            ailing: node.repair_time.as_ref().map(|at| (node.ailment.clone(), time_ms(at))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(ready: bool, taint: &str, before: Option<&Joined>, now_ms: i64) -> Joined {
        let taint = v1::Taint { key: taint.to_owned(), ..Default::default() };
        let node = v1::Node { ready, taints: vec![taint], ..Default::default() };
        Joined::new(&node, before, now_ms)
    }

    #[test]
    fn only_what_passes_by_itself_is_waited_for() {
        let fit = |ready, taint| joined(ready, taint, None, 7).fit_ms;
        assert_eq!(fit(true, UNREGISTERED), Some(7));
        assert_eq!(fit(false, UNREGISTERED), None);
        assert_eq!(fit(true, "node.kubernetes.io/not-ready"), None);
        assert_eq!(fit(true, "example.com/dedicated"), Some(7), "a taint that stays");
    }

    #[test]
    fn a_node_is_open_once_it_was_registered() {
        let open = |taint| joined(true, taint, None, 7).open;
        assert!(!open(UNREGISTERED));
        assert!(open("node.kubernetes.io/not-ready") && open(DISRUPTED));
    }

    #[test]
    fn a_node_is_fit_since_it_was_first_seen_so() {
        let first = joined(true, UNREGISTERED, None, 7);
        let second = joined(true, UNREGISTERED, Some(&first), 8);
        assert_eq!(second.fit_ms, Some(7));
        let lost = joined(false, UNREGISTERED, Some(&second), 9);
        assert_eq!(joined(true, UNREGISTERED, Some(&lost), 10).fit_ms, Some(10));
    }
}
