//! The first API: Provisioners and AWSNodeTemplates, read as pools and node classes.
//!
//! Invariant: an object means what it meant there, the defaults of its admission webhook included:
//! what says nothing about expiry never expires, and what says nothing about consolidation is left
//! alone.

use longshore_proto::types::v1 as wire;
use longshore_proto::types::v1::{
    ConsolidationPolicy, Disruption, NodeBudget, Operator, Requirement,
};

use super::fault::{Fault, FieldFault, FieldResult, Problem};
use super::node_template::node_template_spec;
use super::{duration, node_class, pool, requirement};
use crate::api::{AWSNodeTemplate, Provisioner, ProvisionerSpec};
use crate::names;

/// Kind of node class that a provider reference means when it names none.
const TEMPLATE_KIND: &str = "AWSNodeTemplate";

/// A Provisioner as the wire has it.
#[derive(Clone, Debug, PartialEq)]
pub struct LegacyPool {
    /// The pool.
    pub pool: wire::NodePool,
    /// The node class `Provisioner/NAME`: from the in-line provider, or from the template it names
    /// when the Provisioner adds a kubelet configuration to that.
    pub class: Option<wire::NodeClass>,
}

/// A Provisioner, and the template it names when there is one of that name.
///
/// # Errors
/// The first field that cannot be read.
pub fn provisioner(
    provisioner: &Provisioner,
    template: Option<&AWSNodeTemplate>,
) -> Result<LegacyPool, Fault> {
    let name = provisioner.metadata.name.clone().unwrap_or_default();
    let object = format!("Provisioner/{name}");
    let mut legacy =
        read(provisioner, &name, template).map_err(|fault| fault.within("spec").of(&object))?;
    let noted = pool::annotated(&provisioner.metadata, legacy.pool);
    let noted = noted.map_err(|fault| fault.of(&object))?;
    let said = provisioner.status.as_ref().map_or(&[][..], |status| &status.conditions);
    legacy.pool = pool::finished((&provisioner.metadata, said), noted);
    Ok(legacy)
}

/// Name of the template that a Provisioner refers to.
#[must_use]
pub fn template_name(spec: &ProvisionerSpec) -> Option<&str> {
    spec.provider_ref.as_ref().map(|reference| reference.name.as_str())
}

fn read(
    provisioner: &Provisioner,
    name: &str,
    template: Option<&AWSNodeTemplate>,
) -> FieldResult<LegacyPool> {
    let spec = &provisioner.spec;
    let class = own_class(provisioner, name, template)?;
    let mut labels = spec.labels.clone();
    labels.insert(names::PROVISIONER_NAME.to_owned(), name.to_owned());
    let node_class = match (&class, template_name(spec)) {
        (Some(class), _) => class.name.clone(),
        (None, Some(template)) => format!("{TEMPLATE_KIND}/{template}"),
        (None, None) => return Err(FieldFault::new("providerRef", Problem::Missing)),
    };
    let limits = spec.limits.as_ref().map(|limits| pool::limits(&limits.resources)).transpose();
    let pool = wire::NodePool {
        name: name.to_owned(),
        weight: spec.weight.unwrap_or(0),
        labels,
        annotations: spec.annotations.clone(),
        taints: pool::taints(&spec.taints),
        startup_taints: pool::taints(&spec.startup_taints),
        requirements: requirements(spec)?,
        node_class,
        expire_after: spec.ttl_seconds_until_expired.map(duration::seconds),
        termination_grace_period: None,
        limits: limits.map_err(|f| f.within("limits.resources"))?.flatten(),
        disruption: Some(disruption(spec)?),
        legacy: true,
        replicas: None,
        dense_spread: false,
        losses_accepted_until: None,
        drift_hash: String::new(),
        rollout: None,
        keeps_ailing_nodes: false,
        generation: provisioner.metadata.generation.unwrap_or(0),
    };
    Ok(LegacyPool { pool, class })
}

fn own_class(
    provisioner: &Provisioner,
    name: &str,
    template: Option<&AWSNodeTemplate>,
) -> FieldResult<Option<wire::NodeClass>> {
    let spec = &provisioner.spec;
    if spec.provider.is_some() && spec.provider_ref.is_some() {
        return Err(FieldFault::new("provider", Problem::Exclusive("providerRef")));
    }
    let given = match (spec.inline_template(), template) {
        (Some(inline), _) => {
            inline.map_err(|e| FieldFault::new("provider", Problem::Undecodable(e.to_string())))?
        }
        (None, Some(template)) if spec.kubelet_configuration.is_some() => template.spec.clone(),
        (None, _) => return Ok(None),
    };
    let class = node_template_spec(&given).map_err(|f| f.within("provider"))?;
    Ok(Some(node_class::named(wire::NodeClass {
        name: format!("Provisioner/{name}"),
        kubelet: spec.kubelet_configuration.as_ref().map(node_class::kubelet),
        generation: provisioner.metadata.generation.unwrap_or(0),
        uid: provisioner.metadata.uid.clone().unwrap_or_default(),
        ..class
    })))
}

/// Requirements, with those that the webhook of the first API added when a key was free.
fn requirements(spec: &ProvisionerSpec) -> FieldResult<Vec<Requirement>> {
    let mut list = pool::requirements(&spec.requirements).map_err(|f| f.within("requirements"))?;
    let given: Vec<String> = list.iter().map(|r| r.key.clone()).collect();
    let free = |key: &str| given.iter().all(|k| k != key) && !spec.labels.contains_key(key);
    let defaults =
        [(names::OS, "linux"), (names::ARCH, "amd64"), (names::CAPACITY_TYPE, "on-demand")];
    list.extend(defaults.iter().filter(|(k, _)| free(k)).map(|(k, v)| requirement::equals(k, v)));
    let of_instance = |part: &str| format!("{}instance-{part}", names::EC2_PREFIX);
    let (category, generation) = (of_instance("category"), of_instance("generation"));
    let unconstrained = [names::INSTANCE_TYPE, &of_instance("family"), &category, &generation];
    if unconstrained.into_iter().all(free) {
        list.push(requirement::within(&category, ["c", "m", "r"].map(str::to_owned)));
        list.push(Requirement {
            key: generation,
            operator: Operator::Gt.into(),
            values: vec!["2".to_owned()],
            min_values: None,
        });
    }
    Ok(list)
}

fn disruption(spec: &ProvisionerSpec) -> FieldResult<Disruption> {
    let consolidates = spec.consolidation.as_ref().and_then(|c| c.enabled) == Some(true);
    let (policy, after) = match (consolidates, spec.ttl_seconds_after_empty) {
        (true, Some(_)) => {
            let problem = Problem::Exclusive("consolidation.enabled");
            return Err(FieldFault::new("ttlSecondsAfterEmpty", problem));
        }
        (true, None) => (ConsolidationPolicy::WhenEmptyOrUnderutilized, Some(0)),
        (false, after) => (ConsolidationPolicy::WhenEmpty, after),
    };
    Ok(Disruption {
        policy: policy.into(),
        consolidate_after: after.map(duration::seconds),
        budgets: vec![gentle()],
        evictions_per_hour: None,
    })
}

/// The first API replaced drifted nodes one by one; a pool that it is converted to, a tenth of them
/// at once.
fn gentle() -> NodeBudget {
    NodeBudget {
        nodes: "10%".to_owned(),
        reasons: vec!["Drifted".to_owned()],
        ..NodeBudget::default()
    }
}
