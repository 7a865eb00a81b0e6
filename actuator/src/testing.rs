//! A cloud for unit tests of pure parts, and the objects they start from.
//!
//! Invariant: answers nothing; whoever reaches it in a test has left the pure part.

use std::collections::BTreeMap;

use async_trait::async_trait;
use longshore_ec2_data::AmiFamily;
use longshore_proto::types::v1::{
    Candidate, CapacityType, ClusterFacts, Launch, NodeClass, SelectorTerm,
};

use crate::cloud::{
    Access, Caller, Class, CloudError, EksCluster, Fleet, Found, Image, Instance, Letter, Listing,
    Mail, Market, Network, NewProfile, Order, Outcome, Profile, SecurityGroup, SpotPrice, Subnet,
    Template, TemplateRef, TypeInZone,
};
use crate::nodeclass::{ClassImage, Conditions, Resolved};

/// A cloud that answers nothing.
pub struct Nothing;

fn silent<T>(action: &'static str) -> Result<T, CloudError> {
    Err(CloudError {
        class: Class::Unknown,
        action,
        code: "Silent".to_owned(),
        message: "this cloud answers nothing".to_owned(),
        request_id: String::new(),
    })
}

#[async_trait]
impl Fleet for Nothing {
    async fn launch(&self, _: &Order) -> Result<Outcome, CloudError> {
        silent("launch")
    }
    async fn instances(&self) -> Result<Vec<Instance>, CloudError> {
        silent("instances")
    }
    async fn instances_by_id(&self, _: &[String]) -> Result<Found, CloudError> {
        silent("instances_by_id")
    }
    async fn instances_of_launch(&self, _: &str, _: &str) -> Result<Vec<Instance>, CloudError> {
        silent("instances_of_launch")
    }
    async fn terminate(&self, _: &[String]) -> Result<(), CloudError> {
        silent("terminate")
    }
    async fn ensure_template(&self, _: &Template) -> Result<(), CloudError> {
        silent("ensure_template")
    }
    async fn templates(&self) -> Result<Vec<TemplateRef>, CloudError> {
        silent("templates")
    }
    async fn delete_template(&self, _: &str) -> Result<(), CloudError> {
        silent("delete_template")
    }
}

#[async_trait]
impl Network for Nothing {
    async fn subnets(&self, _: &[SelectorTerm]) -> Result<Vec<Subnet>, CloudError> {
        silent("subnets")
    }
    async fn security_groups(&self, _: &[SelectorTerm]) -> Result<Vec<SecurityGroup>, CloudError> {
        silent("security_groups")
    }
    async fn images(&self, _: &[SelectorTerm]) -> Result<Vec<Image>, CloudError> {
        silent("images")
    }
    async fn parameter(&self, _: &str) -> Result<Option<String>, CloudError> {
        silent("parameter")
    }
    async fn eks_cluster(&self, _: &str) -> Result<EksCluster, CloudError> {
        silent("eks_cluster")
    }
}

#[async_trait]
impl Access for Nothing {
    async fn caller(&self) -> Result<Caller, CloudError> {
        silent("caller")
    }
    async fn decode_denial(&self, _: &str) -> Result<String, CloudError> {
        silent("decode_denial")
    }
    async fn profile(&self, _: &str) -> Result<Option<Profile>, CloudError> {
        silent("profile")
    }
    async fn create_profile(&self, _: &NewProfile) -> Result<(), CloudError> {
        silent("create_profile")
    }
    async fn profiles_of_role(&self, _: &str) -> Result<Vec<String>, CloudError> {
        silent("profiles_of_role")
    }
}

#[async_trait]
impl Market for Nothing {
    async fn listing(&self) -> Result<Listing, CloudError> {
        silent("listing")
    }
    async fn on_demand_prices(&self) -> Result<BTreeMap<String, i64>, CloudError> {
        silent("on_demand_prices")
    }
    async fn spot_prices(&self) -> Result<Vec<SpotPrice>, CloudError> {
        silent("spot_prices")
    }
}

#[async_trait]
impl Mail for Nothing {
    async fn queue_url(&self, _: &str) -> Result<String, CloudError> {
        silent("queue_url")
    }
    async fn receive(&self, _: &str) -> Result<Vec<Letter>, CloudError> {
        silent("receive")
    }
    async fn discard(&self, _: &str, _: &str) -> Result<(), CloudError> {
        silent("discard")
    }
}

/// A class with two zones, images of both architectures, and nothing special.
pub fn resolved() -> Resolved {
    let subnet = |id: &str, zone: &str, free_addresses: i32| Subnet {
        id: id.to_owned(),
        zone: zone.to_owned(),
        zone_id: format!("id-{zone}"),
        free_addresses,
        tags: BTreeMap::new(),
    };
    let image = |arch: &str| ClassImage {
        id: format!("ami-{arch}"),
        name: String::new(),
        arch: arch.to_owned(),
        variant: None,
    };
    Resolved {
        cluster_id: "c-1".to_owned(),
        cluster: ClusterFacts { name: "dev".to_owned(), ..ClusterFacts::default() },
        class: NodeClass { name: "EC2NodeClass/default".to_owned(), ..NodeClass::default() },
        family: AmiFamily::Al2023,
        subnets: vec![subnet("s-a1", "a", 5), subnet("s-a2", "a", 9), subnet("s-b", "b", 7)],
        security_groups: Vec::new(),
        images: vec![image("amd64"), image("arm64")],
        instance_profile: "profile".to_owned(),
        conditions: Conditions::default(),
    }
}

/// Types sold in zones a and b.
pub fn listing(types: &[&str]) -> Listing {
    let facts = longshore_ec2_data::Dataset::embedded().unwrap();
    let mut listing = Listing::default();
    for name in types {
        let found = facts.instance_type(name).unwrap().clone();
        listing.types.insert((*name).to_owned(), found);
        for zone in ["a", "b", "elsewhere"] {
            let instance_type = (*name).to_owned();
            listing.zones.push(TypeInZone { instance_type, zone: zone.to_owned() });
        }
    }
    listing
}

/// A candidate.
pub fn candidate(instance_type: &str, zone: &str, capacity_type: CapacityType) -> Candidate {
    Candidate {
        instance_type: instance_type.to_owned(),
        zone: zone.to_owned(),
        capacity_type: capacity_type.into(),
        ..Candidate::default()
    }
}

/// A launch with candidates.
pub fn launch(candidates: Vec<Candidate>) -> Launch {
    Launch {
        launch_id: "l-1".to_owned(),
        claim: "claim-1".to_owned(),
        pool: "default".to_owned(),
        node_class: "EC2NodeClass/default".to_owned(),
        candidates,
        ..Launch::default()
    }
}
