//! The real parts behave as the tests that use them assume.

mod control_plane;
mod cut_proxy;
mod etcd;
mod process;
