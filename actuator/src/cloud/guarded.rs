//! A cloud in which nothing is done without the right to do it, which is asked for before each
//! effect.
//!
//! Invariant: what only reads goes through always. What is refused here has not happened: it is
//! said in the way of a request that came too early, so that it is tried again later by whoever may
//! then.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use longshore_proto::types::v1::SelectorTerm;

use super::{
    Access, CallMarks, Caller, CapacityReservation, Class, Cloud, CloudError, EksCluster, Fleet,
    FleetOutcome, Found, Image, Instance, Listing, Market, Messages, Network, NewProfile, Order,
    Profile, QueueMessage, SecurityGroup, SpotPrice, Subnet, Template, TemplateRef,
};

/// Says whether this process may have effects at this moment.
pub type Permit = Arc<dyn Fn() -> bool + Send + Sync>;

/// A cloud behind a [`Permit`].
pub struct Guarded {
    cloud: Arc<dyn Cloud>,
    permit: Permit,
}

impl Guarded {
    /// `cloud`, for as long as `permit` says so.
    #[must_use]
    pub fn new(cloud: Arc<dyn Cloud>, permit: Permit) -> Self {
        Self { cloud, permit }
    }

    fn check(&self, action: &'static str) -> Result<(), CloudError> {
        if (self.permit)() {
            return Ok(());
        }
        Err(CloudError {
            class: Class::Throttled,
            action,
            code: "NotHeld".to_owned(),
            message: "not asked: this process may no longer hold the Lease".to_owned(),
            request_id: String::new(),
        })
    }
}

#[async_trait]
impl Fleet for Guarded {
    async fn launch(&self, order: &Order) -> Result<FleetOutcome, CloudError> {
        self.check("ec2:CreateFleet")?;
        self.cloud.launch(order).await
    }
    async fn instances(&self) -> Result<Vec<Instance>, CloudError> {
        self.cloud.instances().await
    }
    async fn instances_by_id(&self, instance_ids: &[String]) -> Result<Found, CloudError> {
        self.cloud.instances_by_id(instance_ids).await
    }
    async fn instances_of_call(&self, marks: CallMarks<'_>) -> Result<Vec<Instance>, CloudError> {
        self.cloud.instances_of_call(marks).await
    }
    async fn tag(
        &self,
        instance_id: &str,
        tags: &BTreeMap<String, String>,
    ) -> Result<(), CloudError> {
        self.check("ec2:CreateTags")?;
        self.cloud.tag(instance_id, tags).await
    }
    async fn terminate(&self, instance_ids: &[String]) -> Result<(), CloudError> {
        self.check("ec2:TerminateInstances")?;
        self.cloud.terminate(instance_ids).await
    }
    async fn ensure_template(&self, template: &Template) -> Result<(), CloudError> {
        self.check("ec2:CreateLaunchTemplate")?;
        self.cloud.ensure_template(template).await
    }
    async fn templates(&self) -> Result<Vec<TemplateRef>, CloudError> {
        self.cloud.templates().await
    }
    async fn delete_template(&self, name: &str) -> Result<(), CloudError> {
        self.check("ec2:DeleteLaunchTemplate")?;
        self.cloud.delete_template(name).await
    }
}

#[async_trait]
impl Network for Guarded {
    async fn subnets(&self, terms: &[SelectorTerm]) -> Result<Vec<Subnet>, CloudError> {
        self.cloud.subnets(terms).await
    }
    async fn security_groups(
        &self,
        terms: &[SelectorTerm],
    ) -> Result<Vec<SecurityGroup>, CloudError> {
        self.cloud.security_groups(terms).await
    }
    async fn images(&self, terms: &[SelectorTerm]) -> Result<Vec<Image>, CloudError> {
        self.cloud.images(terms).await
    }
    async fn capacity_reservations(
        &self,
        terms: &[SelectorTerm],
    ) -> Result<Vec<CapacityReservation>, CloudError> {
        self.cloud.capacity_reservations(terms).await
    }
    async fn parameter(&self, name: &str) -> Result<Option<String>, CloudError> {
        self.cloud.parameter(name).await
    }
    async fn eks_cluster(&self, name: &str) -> Result<EksCluster, CloudError> {
        self.cloud.eks_cluster(name).await
    }
}

#[async_trait]
impl Access for Guarded {
    async fn caller(&self) -> Result<Caller, CloudError> {
        self.cloud.caller().await
    }
    async fn decode_denial(&self, encoded: &str) -> Result<String, CloudError> {
        self.cloud.decode_denial(encoded).await
    }
    async fn profile(&self, name: &str) -> Result<Option<Profile>, CloudError> {
        self.cloud.profile(name).await
    }
    async fn create_profile(&self, profile: &NewProfile) -> Result<(), CloudError> {
        self.check("iam:CreateInstanceProfile")?;
        self.cloud.create_profile(profile).await
    }
    async fn profiles_of_role(&self, role: &str) -> Result<Vec<String>, CloudError> {
        self.cloud.profiles_of_role(role).await
    }
}

#[async_trait]
impl Market for Guarded {
    async fn listing(&self) -> Result<Listing, CloudError> {
        self.cloud.listing().await
    }
    async fn on_demand_prices(&self) -> Result<BTreeMap<String, i64>, CloudError> {
        self.cloud.on_demand_prices().await
    }
    async fn spot_prices(&self) -> Result<Vec<SpotPrice>, CloudError> {
        self.cloud.spot_prices().await
    }
}

#[async_trait]
impl Messages for Guarded {
    async fn queue_url(&self, name: &str) -> Result<String, CloudError> {
        self.cloud.queue_url(name).await
    }
    // A message that is received is hidden from the next one to ask for a while.
    async fn receive(&self, queue_url: &str) -> Result<Vec<QueueMessage>, CloudError> {
        self.check("sqs:ReceiveMessage")?;
        self.cloud.receive(queue_url).await
    }
    async fn discard(&self, queue_url: &str, receipt: &str) -> Result<(), CloudError> {
        self.check("sqs:DeleteMessage")?;
        self.cloud.discard(queue_url, receipt).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use longshore_proto::types::v1::CapacityType;

    use super::*;
    use crate::leader::lock;
    use crate::testing::{Scripted, instance};

    #[tokio::test]
    async fn nothing_is_done_in_ec2_without_the_lease() {
        let inner = Arc::new(Scripted::default());
        lock(&inner.answers).push_back(Ok(FleetOutcome::default()));
        lock(&inner.shown).push(instance("i-1", "l-1"));
        let held = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&held);
        let permit: Permit = Arc::new(move || asked.load(Ordering::Relaxed));
        let cloud = Guarded::new(inner.clone(), permit);
        let order = Order {
            client_token: "t".to_owned(),
            capacity_type: CapacityType::Spot,
            offers: Vec::new(),
            count: 1,
            tags: BTreeMap::new(),
        };
        let ids = ["i-1".to_owned()];
        for may in [false, true, false] {
            held.store(may, Ordering::Relaxed);
            let (orders, ended) = (lock(&inner.orders).len(), lock(&inner.ended).len());
            let done = cloud.launch(&order).await;
            assert_eq!(done.is_ok(), may);
            assert!(done.err().is_none_or(|error| error.class == Class::Throttled));
            assert_eq!(cloud.terminate(&ids).await.is_ok(), may);
            assert_eq!(cloud.tag("i-1", &BTreeMap::new()).await.is_ok(), may);
            assert_eq!(lock(&inner.orders).len() - orders, usize::from(may));
            assert_eq!(lock(&inner.ended).len() > ended, may && ended == 0);
            let refused = |error: CloudError| error.code == "NotHeld";
            assert_eq!(cloud.receive("q").await.is_err_and(refused), !may);
            assert_eq!(cloud.discard("q", "r").await.is_err_and(refused), !may);
            assert_eq!(cloud.delete_template("t").await.is_err_and(refused), !may);
            assert!(cloud.instances_by_id(&ids).await.is_ok(), "reading is free");
        }
    }
}
