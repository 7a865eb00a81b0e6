//! What plans of the bench minimise.
//!
//! Invariant: the same as the peer's, so that prices compare, and a bound is one of the price.

use longshore_scheduler::settings::{Settings, SettingsArgs};

/// Settings by which the least price is sought: without a fee for each node.
#[must_use]
pub fn least_price() -> Settings {
    SettingsArgs { node_fee: Some(0), ..SettingsArgs::default() }.settings()
}
