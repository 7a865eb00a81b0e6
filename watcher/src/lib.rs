//! The in-cluster part of Longshore: observes one cluster, keeps a scheduler informed over
//! ClusterService.Sync, and carries out its directives against the API server.
//!
//! Invariant: talks to the Kubernetes API and to its scheduler, and to nothing else.

pub mod api;
pub mod index;
pub mod names;
pub mod project;
