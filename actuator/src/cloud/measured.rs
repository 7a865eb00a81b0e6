//! A cloud of which each call is timed and counted, by Karpenter's names.
//!
//! Invariant: every call of the actuator goes through here, and nothing about it changes. Where
//! Karpenter has a word for what is asked (`Create`, `Delete`, `Get`, `List`, `GetInstanceTypes`),
//! the label has that word.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use longshore_proto::types::v1::SelectorTerm;
use longshore_runtime::metrics::Metrics;
use longshore_runtime::metrics::series::Series;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::Histogram;
use tokio::time::Instant;

use super::{
    Access, CallMarks, Caller, CapacityReservation, Cloud, CloudError, EksCluster, Fleet,
    FleetOutcome, Found, Image, Instance, Listing, Market, Messages, Network, NewProfile, Order,
    Profile, QueueMessage, SecurityGroup, SpotPrice, Subnet, Template, TemplateRef,
};

/// The label that says whose cloud it is.
const PROVIDER: (&str, &str) = ("provider", "aws");

/// Calls of a cloud by method. Clones count together.
#[derive(Clone, Debug)]
pub struct Calls {
    durations: Series<Histogram>,
    errors: Series<Counter>,
}

impl Calls {
    /// Calls that `metrics` shows.
    #[must_use]
    pub fn registered(metrics: &Metrics) -> Self {
        let own = Self { durations: Series::of_durations(), errors: Series::default() };
        let help = "Duration of calls to AWS, those that failed included";
        let name = "karpenter_cloudprovider_duration_seconds";
        metrics.register_as(name, help, own.durations.clone());
        let help = "Calls to AWS that failed, by AWS's code";
        metrics.register_as("karpenter_cloudprovider_errors_total", help, own.errors.clone());
        own
    }

    /// Waits for a call, and counts it.
    async fn of<T>(
        &self,
        method: &'static str,
        call: impl Future<Output = Result<T, CloudError>>,
    ) -> Result<T, CloudError> {
        let began = Instant::now();
        let outcome = call.await;
        let took = began.elapsed();
        let method = ("method", method);
        self.durations.with(&[method, PROVIDER]).observe(took.as_secs_f64());
        if let Err(error) = &outcome {
            self.errors.with(&[method, PROVIDER, ("error", &error.code)]).inc();
        }
        outcome
    }
}

/// A cloud with its [`Calls`].
pub struct Measured {
    cloud: Arc<dyn Cloud>,
    calls: Calls,
}

impl Measured {
    /// `cloud`, counted in `calls`.
    #[must_use]
    pub fn new(cloud: Arc<dyn Cloud>, calls: Calls) -> Self {
        Self { cloud, calls }
    }
}

#[async_trait]
impl Fleet for Measured {
    async fn launch(&self, order: &Order) -> Result<FleetOutcome, CloudError> {
        self.calls.of("Create", self.cloud.launch(order)).await
    }
    async fn instances(&self) -> Result<Vec<Instance>, CloudError> {
        self.calls.of("List", self.cloud.instances()).await
    }
    async fn instances_by_id(&self, instance_ids: &[String]) -> Result<Found, CloudError> {
        self.calls.of("Get", self.cloud.instances_by_id(instance_ids)).await
    }
    async fn instances_of_call(&self, marks: CallMarks<'_>) -> Result<Vec<Instance>, CloudError> {
        self.calls.of("ListOfCall", self.cloud.instances_of_call(marks)).await
    }
    async fn tag(
        &self,
        instance_id: &str,
        tags: &BTreeMap<String, String>,
    ) -> Result<(), CloudError> {
        self.calls.of("Tag", self.cloud.tag(instance_id, tags)).await
    }
    async fn terminate(&self, instance_ids: &[String]) -> Result<(), CloudError> {
        self.calls.of("Delete", self.cloud.terminate(instance_ids)).await
    }
    async fn ensure_template(&self, template: &Template) -> Result<(), CloudError> {
        self.calls.of("EnsureLaunchTemplate", self.cloud.ensure_template(template)).await
    }
    async fn templates(&self) -> Result<Vec<TemplateRef>, CloudError> {
        self.calls.of("ListLaunchTemplates", self.cloud.templates()).await
    }
    async fn delete_template(&self, name: &str) -> Result<(), CloudError> {
        self.calls.of("DeleteLaunchTemplate", self.cloud.delete_template(name)).await
    }
}

#[async_trait]
impl Network for Measured {
    async fn subnets(&self, terms: &[SelectorTerm]) -> Result<Vec<Subnet>, CloudError> {
        self.calls.of("ListSubnets", self.cloud.subnets(terms)).await
    }
    async fn security_groups(
        &self,
        terms: &[SelectorTerm],
    ) -> Result<Vec<SecurityGroup>, CloudError> {
        self.calls.of("ListSecurityGroups", self.cloud.security_groups(terms)).await
    }
    async fn images(&self, terms: &[SelectorTerm]) -> Result<Vec<Image>, CloudError> {
        self.calls.of("ListImages", self.cloud.images(terms)).await
    }
    async fn capacity_reservations(
        &self,
        terms: &[SelectorTerm],
    ) -> Result<Vec<CapacityReservation>, CloudError> {
        self.calls.of("ListCapacityReservations", self.cloud.capacity_reservations(terms)).await
    }
    async fn parameter(&self, name: &str) -> Result<Option<String>, CloudError> {
        self.calls.of("GetParameter", self.cloud.parameter(name)).await
    }
    async fn eks_cluster(&self, name: &str) -> Result<EksCluster, CloudError> {
        self.calls.of("GetCluster", self.cloud.eks_cluster(name)).await
    }
}

#[async_trait]
impl Access for Measured {
    async fn caller(&self) -> Result<Caller, CloudError> {
        self.calls.of("GetCaller", self.cloud.caller()).await
    }
    async fn decode_denial(&self, encoded: &str) -> Result<String, CloudError> {
        self.calls.of("DecodeDenial", self.cloud.decode_denial(encoded)).await
    }
    async fn profile(&self, name: &str) -> Result<Option<Profile>, CloudError> {
        self.calls.of("GetInstanceProfile", self.cloud.profile(name)).await
    }
    async fn create_profile(&self, profile: &NewProfile) -> Result<(), CloudError> {
        self.calls.of("CreateInstanceProfile", self.cloud.create_profile(profile)).await
    }
    async fn profiles_of_role(&self, role: &str) -> Result<Vec<String>, CloudError> {
        self.calls.of("ListInstanceProfiles", self.cloud.profiles_of_role(role)).await
    }
}

#[async_trait]
impl Market for Measured {
    async fn listing(&self) -> Result<Listing, CloudError> {
        self.calls.of("GetInstanceTypes", self.cloud.listing()).await
    }
    async fn on_demand_prices(&self) -> Result<BTreeMap<String, i64>, CloudError> {
        self.calls.of("GetOnDemandPrices", self.cloud.on_demand_prices()).await
    }
    async fn spot_prices(&self) -> Result<Vec<SpotPrice>, CloudError> {
        self.calls.of("GetSpotPrices", self.cloud.spot_prices()).await
    }
}

#[async_trait]
impl Messages for Measured {
    async fn queue_url(&self, name: &str) -> Result<String, CloudError> {
        self.calls.of("GetQueue", self.cloud.queue_url(name)).await
    }
    // A long poll: it lasts until there is something.
    async fn receive(&self, queue_url: &str) -> Result<Vec<QueueMessage>, CloudError> {
        self.calls.of("ReceiveMessages", self.cloud.receive(queue_url)).await
    }
    async fn discard(&self, queue_url: &str, receipt: &str) -> Result<(), CloudError> {
        self.calls.of("DeleteMessage", self.cloud.discard(queue_url, receipt)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cloud::Class;

    #[tokio::test(start_paused = true)]
    async fn calls_are_timed_and_errors_counted() {
        let metrics = Metrics::new();
        let calls = Calls::registered(&metrics);
        let slow = async {
            tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
            Ok(())
        };
        calls.of("Create", slow).await.unwrap();
        let error = CloudError { class: Class::Throttled, ..CloudError::silent("ec2:CreateFleet") };
        calls.of::<()>("Create", async { Err(error) }).await.unwrap_err();
        let text = metrics.text();
        let of = "method=\"Create\",provider=\"aws\"";
        for line in [
            format!("karpenter_cloudprovider_duration_seconds_sum{{{of}}} 1.5"),
            format!("karpenter_cloudprovider_duration_seconds_count{{{of}}} 2"),
            format!("karpenter_cloudprovider_errors_total{{{of},error=\"NoAnswer\"}} 1"),
        ] {
            assert!(text.contains(&line), "{line} in {text}");
        }
    }
}
