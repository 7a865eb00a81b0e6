//! Files to what a plan is asked about: manifests as the watcher would read them from a cluster,
//! and neutral files of bare numbers.
//!
//! Invariant: reads files and nothing else. An object takes the watcher's own way, so that what is
//! planned from files is what would be planned in the cluster.

mod buffers;
mod decode;
pub mod inventory;
pub mod kinds;
pub mod manifest;
pub mod neutral;
pub mod workload;
