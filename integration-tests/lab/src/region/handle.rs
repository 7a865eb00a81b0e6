//! What a test holds of a running region: its address, its truth, and the means to disturb it.
//!
//! Invariant: everything done here is visible to callers only through the wire, as in life.

use std::net::SocketAddr;
use std::sync::Arc;

use jiff::Timestamp;
use longshore_ec2_data::DataError;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::calls::CallRecord;
use super::clock::Clock;
use super::config::{QueueConfig, RateLimit, RegionConfig, RoleConfig};
use super::faults::{Fault, LaunchFault};
use super::iam::PolicyError;
use super::images::{self, Release};
use super::offer::Offer;
use super::server::{self, Shared};
use super::world::{BY_USER, InstanceRecord, Queue, World};
use crate::instance::{Instance, InstanceSource};

/// Why a region could not be started or told something.
#[derive(Debug, Error)]
pub enum RegionError {
    /// The listening socket could not be had.
    #[error("region: cannot listen on 127.0.0.1: {0}")]
    Listen(#[from] std::io::Error),
    /// A role carries a policy document that cannot be evaluated.
    #[error("region: {0}")]
    Policy(#[from] PolicyError),
    /// There are no facts about the region.
    #[error("region: {0}")]
    Data(#[from] DataError),
    /// No such instance.
    #[error("region: no instance {0}; ids come from launches in this region")]
    NoInstance(String),
    /// No such queue.
    #[error("region: no queue {0}; queues are those of RegionConfig::queues")]
    NoQueue(String),
    /// The instance is neither of the spot market nor of a capacity reservation.
    #[error("region: instance {0} is on-demand, so EC2 does not interrupt it; use kill")]
    NotInterruptible(String),
}

/// A simulated region.
#[derive(Debug)]
pub struct Region;

/// A running region; clones share it, and it ends with the last of them.
#[derive(Clone, Debug)]
pub struct RegionHandle {
    pub(super) shared: Arc<Shared>,
    address: SocketAddr,
    _tasks: Arc<JoinSet<()>>,
}

impl Region {
    /// Starts a region on a free port of the loopback interface.
    ///
    /// # Errors
    /// When there is no port, or a role's policy cannot be used.
    pub async fn start(config: RegionConfig) -> Result<RegionHandle, RegionError> {
        Region::start_at(config, SocketAddr::from(([127, 0, 0, 1], 0))).await
    }

    /// Starts a region at an address of one's own choice; port 0 is a free one.
    ///
    /// # Errors
    /// As for [`Region::start`].
    pub async fn start_at(
        config: RegionConfig,
        address: SocketAddr,
    ) -> Result<RegionHandle, RegionError> {
        let clock = Clock::start();
        let shared = Arc::new(Shared::new(World::new(config, clock.now())?, clock));
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let mut tasks = JoinSet::new();
        tasks.spawn(server::accept(listener, Arc::clone(&shared)));
        tasks.spawn(server::keep_time(Arc::clone(&shared)));
        Ok(RegionHandle { shared, address, _tasks: Arc::new(tasks) })
    }
}

/// Reading the truth.
impl RegionHandle {
    /// URL for every service, as `AWS_ENDPOINT_URL` takes it.
    pub fn endpoint_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every call so far, in order of arrival; of a region that lives for days the newest ones.
    pub fn calls(&self) -> Vec<CallRecord> {
        self.shared.with(|world, _| world.calls.kept())
    }

    /// Calls of one API, for example `ec2:CreateFleet`.
    pub fn calls_of(&self, api: &str) -> Vec<CallRecord> {
        let mut calls = self.calls();
        calls.retain(|call| call.api == api);
        calls
    }

    /// How often a client token has been used to launch; repeats answered from memory count.
    pub fn token_uses(&self, client_token: &str) -> u32 {
        self.shared.with(|world, _| world.tokens.get(client_token).map_or(0, |memory| memory.calls))
    }

    /// One instance with all that EC2 knows of it.
    pub fn record(&self, instance_id: &str) -> Option<InstanceRecord> {
        self.shared.with(|world, _| world.instances.get(instance_id).cloned())
    }

    /// What an hour of an offer costs now, in millionths of a dollar; 0 for what is not sold.
    pub fn price_micro_usd_per_hour(&self, offer: &Offer) -> u64 {
        self.shared.with(|world, now| world.price_of(offer, now))
    }

    /// What all pending and running instances together cost an hour now, in millionths of a dollar.
    pub fn spend_micro_usd_per_hour(&self) -> u64 {
        self.shared.with(|world, now| {
            let held = world.instances.values().filter(|record| record.holds_capacity());
            held.map(|record| world.price_of(&record.offer(), now)).sum()
        })
    }
}

/// Capacity, prices, faults.
impl RegionHandle {
    /// Sets how many more instances an offer yields; 0 answers `InsufficientInstanceCapacity`,
    /// `None` is without limit.
    pub fn set_capacity(&self, offer: Offer, instances: Option<u32>) {
        self.shared.with(|world, _| world.market.set_capacity(offer, instances));
    }

    /// Sets the free addresses of a subnet.
    pub fn set_free_addresses(&self, subnet_id: &str, free: u32) {
        self.shared.with(|world, _| world.addresses.set_free(subnet_id, free));
    }

    /// Sets an on-demand price.
    pub fn set_on_demand_price(&self, instance_type: &str, micro_usd_per_hour: u64) {
        self.shared.with(|world, _| world.prices.set_on_demand(instance_type, micro_usd_per_hour));
    }

    /// Sets a spot price from now on; the history keeps the earlier ones.
    pub fn set_spot_price(&self, instance_type: &str, zone: &str, micro_usd_per_hour: u64) {
        self.shared.with(|world, now| {
            world.prices.set_spot(instance_type, zone, (now, micro_usd_per_hour));
        });
    }

    /// Scripts a fault for the next call of an API (`ec2:CreateFleet`); faults queue up.
    pub fn fail_next(&self, api: &str, fault: Fault) {
        self.fail_next_calls(api, 1, &fault);
    }

    /// Scripts the same fault for the next `calls` calls of an API.
    pub fn fail_next_calls(&self, api: &str, calls: u32, fault: &Fault) {
        self.shared.with(|world, _| {
            for _ in 0..calls {
                world.faults.push(api, fault.clone());
            }
        });
    }

    /// Scripts a refusal of launches within an otherwise good call.
    pub fn refuse_launch(&self, fault: LaunchFault) {
        self.shared.with(|world, _| world.faults.refuse_launch(fault));
    }

    /// Forgets every scripted fault.
    pub fn clear_faults(&self) {
        self.shared.with(|world, _| world.faults.clear());
    }

    /// Limits the rate of an API, or lifts the limit.
    pub fn set_rate_limit(&self, api: &str, limit: Option<RateLimit>) {
        self.shared.with(|world, _| match limit {
            Some(limit) => world.config.rate_limits.insert(api.to_owned(), limit),
            None => world.config.rate_limits.remove(api),
        });
    }

    /// Adds a role, or replaces one with its policies; callers that act as it are affected at once.
    ///
    /// # Errors
    /// When a policy document cannot be used.
    pub fn put_role(&self, role: &RoleConfig) -> Result<(), RegionError> {
        Ok(self.shared.with(|world, _| world.access.put_role(role))?)
    }

    /// Removes a role, for example the spot service-linked one.
    pub fn remove_role(&self, name: &str) {
        self.shared.with(|world, _| world.access.roles.remove(name));
    }

    /// Publishes images of a release and turns the moving parameters to them.
    pub fn release_images(&self, release: &Release) {
        self.shared.with(|world, _| {
            world.config.images.extend(images::images_of(release));
            world.config.parameters.extend(images::parameters_of(release));
        });
    }
}

/// What happens to instances and queues.
impl RegionHandle {
    /// Warns of the end of an instance of the spot market or of a capacity reservation, and takes
    /// it back after the notice period.
    ///
    /// # Errors
    /// When there is no such instance or it is a plain on-demand one.
    pub fn interrupt_spot(&self, instance_id: &str) -> Result<(), RegionError> {
        self.on_instance(instance_id, |world, now| world.interrupt(instance_id, now))?
            .then_some(())
            .ok_or_else(|| RegionError::NotInterruptible(instance_id.to_owned()))
    }

    /// Recommends to rebalance a spot instance.
    ///
    /// # Errors
    /// When there is no such instance.
    pub fn rebalance(&self, instance_id: &str) -> Result<(), RegionError> {
        self.on_instance(instance_id, |world, now| world.announce_rebalance(instance_id, now))
    }

    /// Ends an instance from outside, as a person in the console would.
    ///
    /// # Errors
    /// When there is no such instance.
    pub fn kill(&self, instance_id: &str) -> Result<(), RegionError> {
        self.on_instance(instance_id, |world, now| world.terminate(instance_id, BY_USER, now))
    }

    /// Schedules a change (`instance-retirement`, `instance-stop`, …) for a later time: an AWS
    /// Health message and an event in DescribeInstanceStatus.
    ///
    /// # Errors
    /// When there is no such instance.
    pub fn schedule_change(
        &self,
        instance_id: &str,
        event_code: &str,
        start: Timestamp,
    ) -> Result<(), RegionError> {
        self.on_instance(instance_id, |world, now| {
            world.schedule_change(instance_id, event_code, (start, now));
        })
    }

    /// Makes the checks of an instance fail, or pass again: the instance's own, and the system's.
    ///
    /// # Errors
    /// When there is no such instance.
    pub fn set_impaired(
        &self,
        instance_id: &str,
        instance_check: bool,
        system_check: bool,
    ) -> Result<(), RegionError> {
        self.on_instance(instance_id, |world, now| {
            if let Some(record) = world.instances.get_mut(instance_id) {
                record.health.instance_impaired_since = instance_check.then_some(now);
                record.health.system_impaired_since = system_check.then_some(now);
            }
        })
    }

    /// Creates a queue; one of that name stays as it is.
    pub fn create_queue(&self, queue: &QueueConfig) {
        self.shared.with(|world, _| {
            world.queues.entry(queue.name.clone()).or_insert_with(|| Queue::new(queue));
        });
    }

    /// Puts a message into a queue, as any sender may.
    ///
    /// # Errors
    /// When there is no queue of that name.
    pub fn send_message(&self, queue: &str, body: &str) -> Result<(), RegionError> {
        self.shared.with(|world, now| {
            let id = world.ids.uuid("message");
            let found = world.queues.get_mut(queue);
            let found = found.ok_or_else(|| RegionError::NoQueue(queue.to_owned()))?;
            found.send(id, body.to_owned(), now);
            Ok(())
        })
    }

    fn on_instance<T>(
        &self,
        instance_id: &str,
        act: impl FnOnce(&mut World, Timestamp) -> T,
    ) -> Result<T, RegionError> {
        self.shared.with(|world, now| {
            if !world.instances.contains_key(instance_id) {
                return Err(RegionError::NoInstance(instance_id.to_owned()));
            }
            Ok(act(world, now))
        })
    }
}

impl InstanceSource for RegionHandle {
    fn changes(&self) -> watch::Receiver<u64> {
        self.shared.changed.subscribe()
    }

    fn instances(&self) -> Vec<Instance> {
        self.shared
            .with(|world, _| world.instances.values().map(|record| record.seen.clone()).collect())
    }
}
