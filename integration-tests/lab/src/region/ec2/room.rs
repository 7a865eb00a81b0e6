//! What is left to buy while one request is dealt out: capacity, addresses, quotas, reservations.
//!
//! Invariant: nothing is taken from the world before a request is decided; a refusal takes nothing.

use std::collections::BTreeMap;

use super::super::offer::Offer;
use super::super::wire::{AwsError, Result};
use super::super::world::World;
use super::admit::Candidate;

/// What is left while a request is dealt out: nothing is taken from the world before it is decided.
#[derive(Clone, Debug)]
pub struct Room {
    capacity: BTreeMap<Offer, u32>,
    addresses: BTreeMap<String, u32>,
    reservations: BTreeMap<String, u32>,
    vcpus: BTreeMap<bool, u32>,
}

impl World {
    /// Takes one instance out of what is left.
    ///
    /// # Errors
    /// EC2's code for what has run out.
    pub fn take(&mut self, room: &mut Room, candidate: &Candidate) -> Result<()> {
        if let Some((code, message)) = self.faults.refusal(&candidate.offer) {
            return Err(AwsError::client(code, message));
        }
        let vcpus = self.type_of(candidate)?.hardware.vcpus;
        room.take(self, candidate, vcpus)
    }

    /// What is left now.
    pub fn room(&self) -> Room {
        let used = |spot: bool| {
            let running = self.instances.values().filter(|record| record.holds_capacity());
            running.filter(|record| record.seen.spot == spot).map(|record| record.vcpus).sum()
        };
        let quotas = self.config.quotas;
        let limits = [(false, quotas.on_demand_vcpus), (true, quotas.spot_vcpus)];
        let left =
            |(spot, limit): (bool, Option<u32>)| Some((spot, limit?.saturating_sub(used(spot))));
        let reservations = self.config.reservations.iter();
        Room {
            capacity: BTreeMap::new(),
            addresses: BTreeMap::new(),
            reservations: reservations
                .map(|found| (found.id.clone(), self.reservation_room(found)))
                .collect(),
            vcpus: limits.into_iter().filter_map(left).collect(),
        }
    }
}

impl Room {
    /// Instances of an offer that could still be taken, as far as capacity goes.
    pub fn depth(&self, world: &World, offer: &Offer) -> u32 {
        let left = self.capacity.get(offer).copied().or_else(|| world.market.capacity(offer));
        left.unwrap_or(u32::MAX)
    }

    fn take(&mut self, world: &World, candidate: &Candidate, vcpus: u32) -> Result<()> {
        let Candidate { offer, subnet_id, .. } = candidate;
        let reserved = self.reserved(candidate)?;
        let depth = self.depth(world, offer);
        if depth == 0 && reserved.is_none() {
            return Err(insufficient_capacity(world, offer));
        }
        let free = self.addresses.get(subnet_id).copied();
        let free = free.unwrap_or_else(|| world.addresses.free(subnet_id));
        if free == 0 {
            return Err(no_addresses(subnet_id));
        }
        if let Some(left) = self.vcpus.get_mut(&offer.spot) {
            *left = left.checked_sub(vcpus).ok_or_else(|| over_quota(world, offer.spot))?;
        }
        if depth != u32::MAX {
            self.capacity.insert(offer.clone(), depth.saturating_sub(1));
        }
        self.addresses.insert(subnet_id.clone(), free - 1);
        if let Some(left) = reserved.and_then(|id| self.reservations.get_mut(id)) {
            *left -= 1;
        }
        Ok(())
    }

    /// The reservation aimed at, when it has room.
    fn reserved<'a>(&self, candidate: &'a Candidate) -> Result<Option<&'a str>> {
        let Some(id) = candidate.data.reservation_id.as_deref() else { return Ok(None) };
        match self.reservations.get(id) {
            None => Err(AwsError::client(
                "InvalidCapacityReservationId.NotFound",
                format!("The capacity reservation '{id}' does not exist"),
            )),
            Some(0) => Err(AwsError::client(
                "ReservationCapacityExceeded",
                "The requested reservation does not have sufficient compatible and available \
                 capacity for this request.",
            )),
            Some(_) => Ok(Some(id)),
        }
    }
}

fn insufficient_capacity(world: &World, offer: &Offer) -> AwsError {
    let Offer { instance_type, zone, spot } = offer;
    let message = if *spot {
        "There is no Spot capacity available that matches your request.".to_owned()
    } else {
        let elsewhere = world.types.get(instance_type).into_iter().flat_map(|f| f.zones.keys());
        let others: Vec<&str> =
            elsewhere.filter(|other| *other != zone).map(String::as_str).collect();
        format!(
            "We currently do not have sufficient {instance_type} capacity in the Availability Zone \
             you requested ({zone}). Our system will be working on provisioning additional \
             capacity. You can currently get {instance_type} capacity by not specifying an \
             Availability Zone in your request or choosing {}.",
            others.join(", ")
        )
    };
    AwsError::with_status(500, "InsufficientInstanceCapacity", message)
}

fn no_addresses(subnet_id: &str) -> AwsError {
    let message = format!(
        "There are not enough free addresses in subnet '{subnet_id}' to satisfy the requested \
         number of instances."
    );
    AwsError::client("InsufficientFreeAddressesInSubnet", message)
}

fn over_quota(world: &World, spot: bool) -> AwsError {
    if spot {
        return AwsError::client(
            "MaxSpotInstanceCountExceeded",
            "Max spot instance count exceeded",
        );
    }
    let limit = world.config.quotas.on_demand_vcpus.unwrap_or(0);
    let message = format!(
        "You have requested more vCPU capacity than your current vCPU limit of {limit} allows for \
         the instance bucket that the specified instance type belongs to. Please visit \
         http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit."
    );
    AwsError::client("VcpuLimitExceeded", message)
}
