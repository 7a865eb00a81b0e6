//! One account in one region, and where its actuators keep their ledger.
//!
//! Invariant: handles only; each is the one truth of what it names.

use std::net::IpAddr;

use crate::cloud;
use crate::etcd::Etcd;
use crate::region::Region;

/// One account in one region.
#[derive(Clone)]
pub struct Site {
    /// The truth.
    pub region: Region,
    /// What goes wrong with its API.
    pub weather: cloud::Weather,
    /// Address of its API.
    pub address: IpAddr,
    /// Where its actuators keep their ledger; it stays empty where they do without.
    pub etcd: Etcd,
}
