//! The walkthroughs on a real control plane: from `kubectl apply` to nodes gone.
//!
//! Invariant: the manifests are those of `deploy/examples`, unchanged; what is asserted is what a
//! user would see with kubectl and in the EC2 console.

mod devices;
mod drain;
mod objects;
mod repair;
mod reservations;
mod rights;
mod rollout;
pub mod scene;
mod shapes;
mod w0;
mod w1;
pub mod w2;
mod w3;
