//! IPv4 addresses of the subnets.
//!
//! Invariant: an address is held by at most one instance; free counts never go below zero. One that
//! was given back is not given again while others were never given: a node of the same name may
//! still be there.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use super::super::config::SubnetConfig;

/// The network, its router, its resolver and one reserved: EC2 keeps the first four.
const RESERVED_AT_START: u32 = 4;

/// Free addresses by subnet id.
#[derive(Debug, Default)]
pub struct Addresses {
    subnets: BTreeMap<String, Pool>,
}

#[derive(Debug)]
struct Pool {
    base: Ipv4Addr,
    free: u32,
    next: u32,
    /// Addresses that were never given.
    fresh: u32,
    returned: BTreeSet<Ipv4Addr>,
}

impl Addresses {
    /// Addresses as configured.
    pub fn new(subnets: &[SubnetConfig]) -> Addresses {
        let pool = |subnet: &SubnetConfig| Pool {
            base: base_of(&subnet.cidr),
            free: subnet.free_addresses,
            next: RESERVED_AT_START,
            fresh: subnet.free_addresses,
            returned: BTreeSet::new(),
        };
        let subnets = subnets.iter().map(|subnet| (subnet.id.clone(), pool(subnet))).collect();
        Addresses { subnets }
    }

    /// Free addresses of a subnet.
    pub fn free(&self, subnet_id: &str) -> u32 {
        self.subnets.get(subnet_id).map_or(0, |pool| pool.free)
    }

    /// Sets the number of free addresses, as other consumers of the subnet would.
    pub fn set_free(&mut self, subnet_id: &str, free: u32) {
        if let Some(pool) = self.subnets.get_mut(subnet_id) {
            pool.free = free;
        }
    }

    /// Takes an address; `None` when the subnet has none.
    pub fn take(&mut self, subnet_id: &str) -> Option<Ipv4Addr> {
        let pool = self.subnets.get_mut(subnet_id)?;
        pool.free = pool.free.checked_sub(1)?;
        let again = if pool.fresh == 0 { pool.returned.pop_first() } else { None };
        Some(again.unwrap_or_else(|| {
            let address = Ipv4Addr::from(u32::from(pool.base).wrapping_add(pool.next));
            pool.next += 1;
            pool.fresh = pool.fresh.saturating_sub(1);
            address
        }))
    }

    /// Gives an address back.
    pub fn give_back(&mut self, subnet_id: &str, address: Ipv4Addr) {
        if let Some(pool) = self.subnets.get_mut(subnet_id)
            && pool.returned.insert(address)
        {
            pool.free += 1;
        }
    }
}

fn base_of(cidr: &str) -> Ipv4Addr {
    let address = cidr.split('/').next().unwrap_or_default();
    address.parse().unwrap_or(Ipv4Addr::UNSPECIFIED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_run_out_and_come_back() {
        let subnet = SubnetConfig {
            id: "s".to_owned(),
            zone: "z".to_owned(),
            cidr: "10.0.32.0/19".to_owned(),
            free_addresses: 2,
            tags: BTreeMap::new(),
        };
        let mut addresses = Addresses::new(std::slice::from_ref(&subnet));
        let first = addresses.take("s").expect("free");
        assert_eq!(first.to_string(), "10.0.32.4");
        assert_eq!(addresses.take("s").expect("free").to_string(), "10.0.32.5");
        assert_eq!(addresses.take("s"), None);
        addresses.give_back("s", first);
        addresses.give_back("s", first);
        assert_eq!((addresses.free("s"), addresses.take("s")), (1, Some(first)));
        let mut roomy = Addresses::new(&[SubnetConfig { free_addresses: 3, ..subnet }]);
        let first = roomy.take("s").expect("free");
        roomy.give_back("s", first);
        assert_ne!(roomy.take("s"), Some(first), "others were never given");
    }
}
