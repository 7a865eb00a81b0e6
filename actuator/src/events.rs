//! Happenings that are worth a log line and a number, each in one place.
//!
//! Invariant: nobody else logs or counts these. Names of metrics start with `longshore_actuator_`,
//! those that Karpenter has, too, apart.

mod letters;

use longshore_proto::capacity::v1::{AuditEntry, AuditKind, InterruptionKind};
use longshore_proto::types::v1::CapacityType;
use longshore_runtime::metrics::Metrics;
use longshore_runtime::metrics::series::Series;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use crate::catalogue::OfferingKey;
use crate::cloud::{CloudError, Instance};
use crate::ledger::{Book, LaunchRecord};
pub use letters::Letters;

type Labels = Vec<(&'static str, String)>;

/// Logs and counts.
#[derive(Clone, Debug, Default)]
pub struct Events {
    launches: Family<Labels, Counter>,
    shortages: Family<Labels, Counter>,
    terminations: Counter,
    refusals: Family<Labels, Counter>,
    interruptions: Family<Labels, Counter>,
    leading: Gauge,
    unreadable: Gauge,
    launch_failures: Series<Counter>,
    /// Messages of interruption queues.
    pub letters: Letters,
}

impl Events {
    /// Events that are counted in a process's metrics.
    #[must_use]
    pub fn new(metrics: &Metrics) -> Self {
        let new = Self::default();
        Self {
            launches: metrics.register(
                "actuator_launches",
                "Launches ended, by outcome and reason",
                new.launches,
            ),
            shortages: metrics.register(
                "actuator_shortages",
                "Offerings that EC2 could not give, by its code",
                new.shortages,
            ),
            terminations: metrics.register(
                "actuator_terminations",
                "Instances asked to terminate",
                new.terminations,
            ),
            refusals: metrics.register(
                "actuator_refusals",
                "Parts of plans that were refused, by reason; a repetition within an hour is not counted",
                new.refusals,
            ),
            interruptions: metrics.register(
                "actuator_interruptions",
                "Announcements about our instances, by kind",
                new.interruptions,
            ),
            leading: metrics.register(
                "actuator_leading",
                "1 while this process leads the region",
                new.leading,
            ),
            unreadable: metrics.register(
                "actuator_unreadable_records",
                "Ledger entries that cannot be read; what they are about is left alone",
                new.unreadable,
            ),
            launch_failures: metrics.register_as(
                "karpenter_cloudprovider_instance_launch_failures_total",
                "Offerings that EC2 could not give, by where they are",
                new.launch_failures,
            ),
            letters: Letters::registered(metrics),
        }
    }

    /// The ledger was read; what could not be is said.
    pub fn unreadable(&self, book: &Book) {
        self.unreadable.set(i64::try_from(book.unreadable.len()).unwrap_or(i64::MAX));
        for (key, why) in &book.unreadable {
            tracing::error!(
                ?key,
                why,
                "a ledger entry cannot be read; nothing is done about what it is about until the \
                 version that wrote it leads again, or the entry is deleted from etcd"
            );
        }
    }

    /// An entry of the audit record was written. What was done is said where it is done.
    pub fn audited(&self, entry: &AuditEntry) {
        if entry.kind() != AuditKind::Refused {
            return;
        }
        self.refusals.get_or_create(&vec![("reason", entry.reason.clone())]).inc();
        tracing::warn!(
            cluster_id = entry.cluster_id,
            caller = entry.caller,
            plan_id = entry.plan_id,
            launch_id = entry.launch_id,
            instance_id = entry.instance_id,
            reason = entry.reason,
            "refused: {}",
            entry.message
        );
    }

    /// An instance that nobody saw end is neither listed nor known to EC2 any more.
    pub fn vanished(&self, instance_id: &str) {
        tracing::warn!(instance_id, "instance vanished: EC2 neither lists it nor knows its id");
    }

    /// More instances of a cluster are missing than may vanish: they stay as they were.
    pub fn vanishing_frozen(&self, cluster_id: &str, instance_ids: &[&str]) {
        tracing::error!(
            cluster_id,
            instances = instance_ids.join(" "),
            "more instances are missing than may vanish at a time; nothing is concluded until EC2 \
             shows them again or time passes. Is the actuator's account or region another one?"
        );
    }

    /// A listing lacks instances that were there, and that are looked up one by one.
    pub fn short_listing(&self, missing: usize, listed: usize) {
        // New instances are listed late as a rule.
        if missing <= 2.max(listed / 20) {
            tracing::debug!(missing, listed, "looking up instances that are not listed");
            return;
        }
        tracing::warn!(missing, listed, "listing lacks instances; looking them up by their ids");
    }

    /// Leadership began or ended.
    pub fn leading(&self, leads: bool) {
        self.leading.set(i64::from(leads));
    }

    /// EC2 gave an instance.
    pub fn bought(&self, record: &LaunchRecord) {
        let labels = vec![("outcome", "launched".to_owned()), ("reason", String::new())];
        self.launches.get_or_create(&labels).inc();
        tracing::debug!(
            launch_id = record.launch_id(),
            instance_id = record.instance_id,
            "instance bought"
        );
    }

    /// A launched instance has its name: it will be a node of that name.
    pub fn launched(&self, instance: &Instance) {
        tracing::info!(
            instance_id = instance.instance_id,
            name = instance.private_dns_name,
            instance_type = instance.instance_type,
            zone = instance.zone,
            capacity_type = instance.capacity_type.as_str_name(),
            claim = instance.tag(crate::cloud::TAG_CLAIM),
            "instance launched"
        );
    }

    /// A launch came to nothing.
    pub fn failed(&self, launch_id: &str, reason: &str, message: &str) {
        let labels = vec![("outcome", "failed".to_owned()), ("reason", reason.to_owned())];
        self.launches.get_or_create(&labels).inc();
        tracing::warn!(launch_id, reason, message, "launch failed");
    }

    /// An offering was not to be had.
    pub fn shortage(&self, key: &OfferingKey, error: &CloudError) {
        self.shortages.get_or_create(&vec![("code", error.code.clone())]).inc();
        let labels = [
            ("zone", key.zone.as_str()),
            ("capacity_type", capacity_label(key.capacity_type)),
            ("reason", &error.code),
        ];
        self.launch_failures.with(&labels).inc();
        tracing::info!(
            instance_type = key.instance_type,
            zone = key.zone,
            capacity_type = key.capacity_type.as_str_name(),
            code = error.code,
            "offering closed for a while"
        );
    }

    /// Instances were asked to terminate.
    pub fn terminating(&self, instance_ids: &[String]) {
        self.terminations.inc_by(u64::try_from(instance_ids.len()).unwrap_or_default());
        tracing::info!(instances = instance_ids.join(" "), "terminating instances");
    }

    /// EC2 announced something about one of our instances.
    pub fn interrupted(&self, instance: &Instance, kind: InterruptionKind) {
        let name = kind.as_str_name();
        self.interruptions.get_or_create(&vec![("kind", name.to_owned())]).inc();
        tracing::info!(
            instance_id = instance.instance_id,
            kind = name,
            instance_type = instance.instance_type,
            zone = instance.zone,
            "interruption announced"
        );
    }
}

/// A capacity type as labels of nodes have it.
const fn capacity_label(kind: CapacityType) -> &'static str {
    match kind {
        CapacityType::OnDemand => "on-demand",
        CapacityType::Spot => "spot",
        CapacityType::Reserved => "reserved",
        CapacityType::Unspecified => "",
    }
}
