//! The truth of the region: everything calls read and change, in one place under one lock.
//!
//! Invariant: synchronous and without IO; time comes in as an argument; the order of iteration is
//! fixed, so that one seed and one sequence of calls give one run.

mod access;
mod addresses;
mod buckets;
mod events;
mod ids;
mod instances;
mod launch;
mod lifecycle;
mod market;
mod prices;
mod queues;
mod templates;

use std::collections::BTreeMap;

use indexmap::IndexMap;
use jiff::Timestamp;

pub use access::{Access, Caller, Role, unique_id};
pub use addresses::Addresses;
pub use buckets::Buckets;
pub use ids::Ids;
pub use instances::{Health, InstanceRecord};
pub use launch::LaunchOrder;
pub use lifecycle::BY_USER;
pub use market::Market;
pub use prices::{PricePoint, Prices};
pub use queues::{Message, Queue};
pub use templates::{Template, TemplateData};

use super::calls::CallLog;
use super::catalogue::TypeFacts;
use super::config::{RegionConfig, SubnetConfig};
use super::faults::Faults;
use super::iam::PolicyError;
use super::offer::Offer;
use super::wire::{Body, Request, Result as Answered};

/// Everything.
#[derive(Debug)]
pub struct World {
    /// What the region started from; subnets, images and parameters are read from here.
    pub config: RegionConfig,
    /// Types by name.
    pub types: BTreeMap<String, TypeFacts>,
    /// Source of ids.
    pub ids: Ids,
    /// Roles, profiles, credentials.
    pub access: Access,
    /// Instances in order of launch.
    pub instances: IndexMap<String, InstanceRecord>,
    /// Launch templates by name.
    pub templates: BTreeMap<String, Template>,
    /// Replies of launches by client token.
    pub tokens: BTreeMap<String, TokenMemory>,
    /// Capacity.
    pub market: Market,
    /// Prices.
    pub prices: Prices,
    /// Free addresses.
    pub addresses: Addresses,
    /// Queues by name.
    pub queues: BTreeMap<String, Queue>,
    /// Scripted faults.
    pub faults: Faults,
    /// Request token buckets.
    pub buckets: Buckets,
    /// Every call so far.
    pub calls: CallLog,
    /// Grows with every change of an instance.
    pub revision: u64,
}

/// What a client token has bought already.
#[derive(Clone, Debug)]
pub struct TokenMemory {
    /// Digest of the request that used it first.
    pub digest: String,
    /// The reply it got.
    pub reply: Body,
    /// Calls that came with this token.
    pub calls: u32,
}

/// Answers one API.
pub type Handler = fn(&mut World, &Call<'_>) -> Answered<Body>;

/// One call being answered.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// What is asked.
    pub request: &'a Request,
    /// Who asks.
    pub caller: &'a Caller,
    /// When.
    pub now: Timestamp,
}

impl World {
    /// A world as configured, beginning now.
    ///
    /// # Errors
    /// When a role carries a policy document that cannot be evaluated.
    pub fn new(config: RegionConfig, now: Timestamp) -> Result<World, PolicyError> {
        let by_name = |types: &[TypeFacts]| {
            types.iter().map(|facts| (facts.name().to_owned(), facts.clone())).collect()
        };
        let queues = config.queues.iter().map(|queue| (queue.name.clone(), Queue::new(queue)));
        Ok(World {
            types: by_name(&config.instance_types),
            ids: Ids::new(config.seed),
            access: Access::new(&config)?,
            instances: IndexMap::new(),
            templates: BTreeMap::new(),
            tokens: BTreeMap::new(),
            market: Market::default(),
            prices: Prices::new(config.seed, config.weather, now),
            addresses: Addresses::new(&config.subnets),
            queues: queues.collect(),
            faults: Faults::default(),
            buckets: Buckets::default(),
            calls: CallLog::default(),
            revision: 0,
            config,
        })
    }

    /// ARN of an EC2 resource of this account, for example of kind `subnet`.
    pub fn ec2_arn(&self, kind: &str, id: &str) -> String {
        let RegionConfig { name, account_id, .. } = &self.config;
        format!("arn:aws:ec2:{name}:{account_id}:{kind}/{id}")
    }

    /// The subnet of an id.
    pub fn subnet(&self, id: &str) -> Option<&SubnetConfig> {
        self.config.subnets.iter().find(|subnet| subnet.id == id)
    }

    /// Zone id of a zone name; the name itself when the zone is unknown.
    pub fn zone_id(&self, zone: &str) -> String {
        let found = self.config.zones.iter().find(|candidate| candidate.name == zone);
        found.map_or(zone, |candidate| &candidate.id).to_owned()
    }

    /// When the next hidden message of any queue can be received again.
    pub fn next_message(&self, now: Timestamp) -> Option<Timestamp> {
        self.queues.values().filter_map(|queue| queue.next_visible(now)).min()
    }

    /// Current price of an offer in millionths of a dollar an hour; 0 for what is not sold.
    pub fn price_of(&self, offer: &Offer, now: Timestamp) -> u64 {
        let Some(facts) = self.types.get(&offer.instance_type) else { return 0 };
        match offer.spot {
            true => self.prices.spot(facts, &offer.zone, now).unwrap_or(0),
            false => self.prices.on_demand(facts),
        }
    }

    /// Notes that an instance changed.
    pub fn touch(&mut self) {
        self.revision += 1;
    }
}
