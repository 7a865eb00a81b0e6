//! A cloud for unit tests, a leader that works with it, and the objects they start from.
//!
//! Invariant: answers what the test has put there and nothing else.

pub mod paper;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use longshore_ec2_data::AmiFamily;
use longshore_proto::types::v1::{
    Candidate, CapacityType, ClusterFacts, Launch, NodeClass, SelectorTerm,
};
use longshore_runtime::platform::Platform;
use longshore_runtime::tasks::Supervisor;
use tokio_util::sync::CancellationToken;

use crate::cloud::{
    Access, CallMarks, Caller, CapacityReservation, Class, CloudError, EksCluster, Fleet,
    FleetOutcome, Found, Image, Instance, Listing, Market, Messages, Network, NewProfile, Order,
    Profile, QueueMessage, SecurityGroup, SpotPrice, Subnet, TAG_LAUNCH, Template, TemplateRef,
    TypeInZone,
};
use crate::config::{Sharing, Tuning};
use crate::election::Term;
use crate::events::Events;
use crate::leader::{Leader, RegionContext, lock};
use crate::ledger::{Book, Draft, LaunchRecord, MemoryStore, Store};
use crate::nodeclass::{ClassImage, Conditions, Resolved};
use crate::policy::Policies;

/// A cloud that launches, shows and ends as a test says, and answers nothing else.
#[derive(Default)]
pub struct Scripted {
    /// Answers to orders, in their order; the last one is repeated.
    pub answers: Mutex<VecDeque<Result<FleetOutcome, CloudError>>>,
    /// Orders so far.
    pub orders: Mutex<Vec<Order>>,
    /// Instances that a look-up for their launch finds.
    pub shown: Mutex<Vec<Instance>>,
    /// Instances that cannot be ended; a call that names one does nothing.
    pub protected: BTreeSet<String>,
    /// Instances ended so far.
    pub ended: Mutex<BTreeSet<String>>,
    /// Answers to tagging, in their order; done when there is none.
    pub tagging: Mutex<VecDeque<CloudError>>,
    /// Instances tagged so far, with their tags.
    pub tagged: Mutex<Vec<(String, BTreeMap<String, String>)>>,
}

/// An error of a class.
pub fn error(class: Class) -> CloudError {
    let (code, message) = (format!("{class:?}"), "as the test says".to_owned());
    CloudError { class, action: "ec2:CreateFleet", code, message, request_id: String::new() }
}

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
impl Fleet for Scripted {
    async fn launch(&self, order: &Order) -> Result<FleetOutcome, CloudError> {
        lock(&self.orders).push(order.clone());
        let mut answers = lock(&self.answers);
        let next = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() };
        next.unwrap_or_else(|| silent("launch"))
    }
    async fn instances(&self) -> Result<Vec<Instance>, CloudError> {
        silent("instances")
    }
    async fn instances_by_id(&self, ids: &[String]) -> Result<Found, CloudError> {
        let shown = lock(&self.shown);
        let found = shown.iter().filter(|instance| ids.contains(&instance.instance_id));
        let instances: Vec<_> = found.cloned().collect();
        if instances.is_empty() {
            return silent("instances_by_id");
        }
        Ok(Found { instances, unknown: Vec::new() })
    }
    async fn instances_of_call(&self, marks: CallMarks<'_>) -> Result<Vec<Instance>, CloudError> {
        let shown = lock(&self.shown);
        Ok(shown.iter().filter(|found| found.tag(marks.key) == marks.value).cloned().collect())
    }
    async fn tag(&self, id: &str, tags: &BTreeMap<String, String>) -> Result<(), CloudError> {
        if let Some(error) = lock(&self.tagging).pop_front() {
            return Err(error);
        }
        lock(&self.tagged).push((id.to_owned(), tags.clone()));
        Ok(())
    }
    async fn terminate(&self, ids: &[String]) -> Result<(), CloudError> {
        if ids.iter().any(|id| self.protected.contains(id)) {
            return Err(error(Class::Rejected));
        }
        lock(&self.ended).extend(ids.iter().cloned());
        Ok(())
    }
    async fn ensure_template(&self, _: &Template) -> Result<(), CloudError> {
        Ok(())
    }
    async fn templates(&self) -> Result<Vec<TemplateRef>, CloudError> {
        silent("templates")
    }
    async fn delete_template(&self, _: &str) -> Result<(), CloudError> {
        silent("delete_template")
    }
}

#[async_trait]
impl Network for Scripted {
    async fn subnets(&self, _: &[SelectorTerm]) -> Result<Vec<Subnet>, CloudError> {
        silent("subnets")
    }
    async fn security_groups(&self, _: &[SelectorTerm]) -> Result<Vec<SecurityGroup>, CloudError> {
        silent("security_groups")
    }
    async fn images(&self, _: &[SelectorTerm]) -> Result<Vec<Image>, CloudError> {
        silent("images")
    }
    async fn capacity_reservations(
        &self,
        _: &[SelectorTerm],
    ) -> Result<Vec<CapacityReservation>, CloudError> {
        silent("capacity_reservations")
    }
    async fn parameter(&self, _: &str) -> Result<Option<String>, CloudError> {
        silent("parameter")
    }
    async fn eks_cluster(&self, _: &str) -> Result<EksCluster, CloudError> {
        silent("eks_cluster")
    }
}

#[async_trait]
impl Access for Scripted {
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
impl Market for Scripted {
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
impl Messages for Scripted {
    async fn queue_url(&self, _: &str) -> Result<String, CloudError> {
        silent("queue_url")
    }
    async fn receive(&self, _: &str) -> Result<Vec<QueueMessage>, CloudError> {
        silent("receive")
    }
    async fn discard(&self, _: &str, _: &str) -> Result<(), CloudError> {
        silent("discard")
    }
}

/// A leader whose class is resolved and that knows what the region sells.
pub async fn leader(cloud: Arc<Scripted>) -> Arc<Leader> {
    let supervisor = Supervisor::new(CancellationToken::new(), Platform::system());
    leader_on(cloud, (MemoryStore::default(), 1), &supervisor).await
}

/// The same, in a term of its own on a store, with its tasks on a supervisor.
pub async fn leader_on(
    cloud: Arc<Scripted>,
    (store, revision): (MemoryStore, i64),
    supervisor: &Supervisor,
) -> Arc<Leader> {
    store.crown(revision);
    leader_with(cloud, (Store::Memory(store), revision), supervisor).await
}

/// The same on a store of any kind that knows the term.
pub async fn leader_with(
    cloud: Arc<Scripted>,
    (store, revision): (Store, i64),
    supervisor: &Supervisor,
) -> Arc<Leader> {
    let context = RegionContext {
        region: "us-east-1".to_owned(),
        caller: Caller { account_id: "111122223333".to_owned(), arn: String::new() },
        cloud,
        tuning: Tuning {
            inventory_interval: std::time::Duration::from_secs(5),
            interruption_queue: None,
            sharing: Sharing::All,
        },
        events: Events::default(),
        policies: Policies::open(),
        platform: Platform::system(),
    };
    let term = Term { key: Vec::new(), revision };
    let leader = Leader::begin(context, term, store, supervisor).await.unwrap();
    let class = resolved();
    let key = (class.cluster_id.clone(), class.class.name.clone());
    leader.classes.send_modify(|classes| drop(classes.insert(key, Arc::new(class))));
    let sold = listing(&["m5.large", "m5.xlarge"]);
    leader.market.send_modify(|view| Arc::make_mut(view).listing = sold);
    leader
}

/// Records the launch `l-1` of two types.
pub async fn ask_for(leader: &Leader) {
    let types = ["m5.large", "m5.xlarge"];
    let candidates = types.map(|name| candidate(name, "a", CapacityType::OnDemand)).to_vec();
    let record = LaunchRecord::new(launch(candidates), "c-1", i64::MAX, 0);
    let put = move |_: &Book, draft: &mut Draft| draft.put(record);
    leader.ledger.edit(None, put).await.unwrap();
}

/// An instance with a launch's tag.
pub fn instance(instance_id: &str, launch_id: &str) -> Instance {
    Instance {
        phase: longshore_proto::capacity::v1::InstancePhase::Running,
        instance_type: "m5.large".to_owned(),
        zone: "a".to_owned(),
        capacity_type: CapacityType::OnDemand,
        tags: [(TAG_LAUNCH.to_owned(), launch_id.to_owned())].into(),
        ..Instance::unseen(instance_id)
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
        owners: Vec::new(),
    };
    Resolved {
        cluster_id: "c-1".to_owned(),
        cluster: ClusterFacts {
            name: "dev".to_owned(),
            endpoint: "https://dev.example".to_owned(),
            ca_bundle: "Y2E=".to_owned(),
            service_cidr: "10.100.0.0/16".to_owned(),
            kubernetes_version: "1.34".to_owned(),
            ..ClusterFacts::default()
        },
        class: NodeClass { name: "EC2NodeClass/default".to_owned(), ..NodeClass::default() },
        family: AmiFamily::Al2023,
        subnets: vec![subnet("s-a1", "a", 5), subnet("s-a2", "a", 9), subnet("s-b", "b", 7)],
        security_groups: Vec::new(),
        images: vec![image("amd64"), image("arm64")],
        reservations: Vec::new(),
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
