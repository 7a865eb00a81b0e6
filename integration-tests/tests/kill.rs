//! Services killed without warning in the middle of their work, above a real etcd
//! cluster.
//!
//! Invariant: each test ends with the books: instances, ledger, NodeClaims and Nodes agree, every
//! pod runs, nothing was launched twice and nothing is left over.

mod actuator;
pub mod crowd;
mod etcd;
mod rollout;
mod scheduler;
mod watcher;
