//! A simulated region and a simulated cluster, for tests, benchmarks and the demo.
//!
//! Invariant: nothing here is reached by a short cut. Services talk to the region over the EC2, SQS
//! and other AWS wire protocols and to the cluster over the Kubernetes API, exactly as in
//! production.

pub mod cluster;
pub mod control;
pub mod instance;
pub mod kubelet;
pub mod program;
pub mod region;
pub mod trap;
pub mod tripwire;
