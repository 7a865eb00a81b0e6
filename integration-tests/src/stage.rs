//! A stage for whole-system runs: the three services as processes, and hands to act and eyes to
//! see.
//!
//! Invariant: services are reached as users reach them: by their flags, their ports and the
//! Kubernetes API.

pub mod agreement;
pub mod crowd;
pub mod edges;
pub mod eyes;
pub mod fleet;
pub mod hands;
pub mod home;
pub mod iam;
pub mod karpenter;
pub mod keys;
pub mod ledger;
pub mod question;
pub mod rights;
pub mod services;
pub mod together;
pub mod up;
pub mod world;
