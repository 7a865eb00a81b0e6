//! What two crates have to write down, since neither may know the other, is the same in both.
//!
//! Invariant: each pair is compared by value, not by text.

use longshore_core::vocabulary::labels as planner;
use longshore_watcher::api::keys::labels as watcher;

#[test]
fn planner_and_watcher_rewrite_the_same_labels() {
    for (alias, today) in watcher::ALIASES {
        assert_eq!(planner::canonical(alias), today, "{alias}");
    }
}
