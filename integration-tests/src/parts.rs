//! Real parts for tests: a Kubernetes control plane, an etcd cluster, our own programs, bad
//! networks.
//!
//! Invariant: everything a value here starts dies with that value, writes only into a temporary
//! folder of its own, and listens on loopback ports that nobody else was given. Nothing here needs
//! a cluster or an account that somebody else runs. The programs come from `make setup`.

pub mod binary;
pub mod control_plane;
pub mod cut_proxy;
pub mod etcd;
pub mod node;
pub mod page;
pub mod poll;
pub mod ports;
pub mod process;
pub mod skew;

pub use control_plane::{ControlPlane, ControlPlaneOptions};
pub use cut_proxy::{CutProxy, Faults};
pub use etcd::EtcdCluster;
pub use process::Process;
