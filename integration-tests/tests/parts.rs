//! The real parts behave as the tests that use them assume.

mod binary;
mod control_plane;
mod cut_proxy;
mod etcd;
mod node;
mod process;
