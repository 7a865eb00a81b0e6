//! The in-cluster part of Longshore: observes one cluster, keeps a scheduler informed over
//! ClusterService.Sync, and carries out its directives against the API server.
//!
//! Invariant: talks to the Kubernetes API and to its scheduler, and to nothing else.

pub mod api;
pub mod args;
pub mod bounded;
pub mod buffers;
pub mod counters;
pub mod directives;
pub mod events;
pub mod facts;
pub mod foresight;
pub mod index;
pub mod karpenter;
pub mod lease;
pub mod lifecycle;
pub mod losses;
pub mod names;
pub mod observe;
pub mod patch;
pub mod project;
pub mod service;
pub mod session;

pub use args::{Args, Config};
pub use service::{Duty, Watcher};
