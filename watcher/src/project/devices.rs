//! Pods that ask for devices by ResourceClaim, and nodes that have them.
//!
//! Invariant: a pod that wants so many devices of a class that stands for an extended resource
//! requests so many of that resource, and a node has as many as its driver says. A pod that wants
//! anything else is refused in words, never placed as if it had asked for nothing.

pub mod class;
pub mod expression;
pub mod slices;
pub mod template;

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{PodResourceClaim, PodSpec};
use longshore_proto::types::v1::Resources;

use super::surroundings::Surroundings;
use class::{ClassFault, Standing};
use slices::Slices;
use template::{Ask, Template, TemplateFault};

/// Number of devices by the extended resource they stand for.
pub type Devices = BTreeMap<String, i64>;

/// What a pod's claims ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Devices that can be counted, whatever else is wanted of them.
    pub devices: Devices,
    /// Why the claims cannot be planned for.
    pub refusal: Option<Refusal>,
    /// True when they may take more devices of those that other claims count.
    pub uncounted: bool,
}

/// Why no node can be planned for a claim of a pod.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("its claim {claim} cannot be planned for: {problem}{}", self.otherwise())]
pub struct Refusal {
    /// The claim by its name in the pod.
    pub claim: String,
    /// Object, field and problem.
    pub problem: Problem,
}

/// What is wrong with a claim.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// It is an object of its own.
    #[error(
        "ResourceClaim {0} may be shared with other pods, and where its devices are is not known; \
         use resourceClaimTemplateName"
    )]
    Named(String),
    /// It comes from nowhere that is known.
    #[error("it has no resourceClaimTemplateName; set it")]
    NoSource,
    /// Its template is not there.
    #[error(
        "ResourceClaimTemplate {0} does not exist in resource.k8s.io/v1; create it, with Kubernetes \
         1.34 or later"
    )]
    NoTemplate(String),
    /// Its template asks for more than a count.
    #[error("ResourceClaimTemplate {0}: {1}")]
    Template(String, TemplateFault),
    /// A class is not there.
    #[error("DeviceClass {0} does not exist; install the driver that brings it, or create it")]
    NoClass(String),
    /// A class stands for no resource.
    #[error("DeviceClass {0}: {1}")]
    Class(String, ClassFault),
}

impl Refusal {
    /// The way out that is left where claims must stay as they are.
    const fn otherwise(&self) -> &'static str {
        match self.problem {
            Problem::NoSource | Problem::NoTemplate(_) | Problem::NoClass(_) => "",
            Problem::Named(_) | Problem::Template(..) | Problem::Class(..) => {
                "; or keep nodes that have the device in a NodePool with spec.replicas"
            }
        }
    }
}

/// True when the pods ask for devices by ResourceClaim.
#[must_use]
pub fn are_claimed(spec: &PodSpec) -> bool {
    spec.resource_claims.as_ref().is_some_and(|claims| !claims.is_empty())
}

/// What the claims of a pod ask for. Which containers use them does not matter: a claim is
/// allocated for its pod.
#[must_use]
pub fn wanted(namespace: &str, spec: &PodSpec, around: &Surroundings) -> Wanted {
    let mut wanted = Wanted::default();
    for claim in spec.resource_claims.iter().flatten() {
        if let Err(problem) = wanted.take(namespace, claim, around) {
            let claim = claim.name.clone();
            wanted.refusal.get_or_insert(Refusal { claim, problem });
        }
    }
    wanted
}

impl Wanted {
    fn take(
        &mut self,
        namespace: &str,
        claim: &PodResourceClaim,
        around: &Surroundings,
    ) -> Result<(), Problem> {
        let (name, template) = template(namespace, claim, around).inspect_err(|_| {
            self.uncounted = true;
        })?;
        let fault = template.fault.clone();
        let mut outcome = fault.map_or(Ok(()), |fault| Err(Problem::Template(name, fault)));
        for ask in &template.asks {
            outcome = outcome.and(self.ask(ask, around));
        }
        outcome
    }

    fn ask(&mut self, ask: &Ask, around: &Surroundings) -> Result<(), Problem> {
        let Some(class) = around.device_classes.get(&ask.class) else {
            self.uncounted = true;
            return Err(Problem::NoClass(ask.class.clone()));
        };
        match (&class.standing, ask.count) {
            (_, Some(0)) => {}
            (Ok(standing), Some(count)) => {
                // A device that counts as several resources is taken from all of them.
                let within = standings(around).filter(|other| standing.is_within(other));
                let resources: BTreeSet<&str> = within.map(|s| s.resource.as_str()).collect();
                resources.into_iter().for_each(|it| add(&mut self.devices, it, count));
            }
            (Ok(_), None) => self.uncounted = true,
            (Err(_), _) => self.uncounted |= is_counted(class.driver.as_deref(), around),
        }
        let problem = |fault: &ClassFault| Problem::Class(ask.class.clone(), fault.clone());
        class.standing.as_ref().map(drop).map_err(problem)
    }
}

/// The template of a claim, and its full name.
fn template<'a>(
    namespace: &str,
    claim: &PodResourceClaim,
    around: &'a Surroundings,
) -> Result<(String, &'a Template), Problem> {
    let full = |name: &str| format!("{namespace}/{name}");
    match (&claim.resource_claim_name, &claim.resource_claim_template_name) {
        (Some(name), _) => Err(Problem::Named(full(name))),
        (None, None) => Err(Problem::NoSource),
        (None, Some(name)) => {
            let found = around.claim_templates.get(&(namespace.to_owned(), name.clone()));
            found.map(|found| (full(name), found)).ok_or_else(|| Problem::NoTemplate(full(name)))
        }
    }
}

/// True when some class counts devices of a driver; an unknown one may be any.
fn is_counted(driver: Option<&str>, around: &Surroundings) -> bool {
    let mut counted = standings(around).map(|standing| standing.selection.driver.as_str());
    counted.any(|other| driver.is_none_or(|driver| driver == other))
}

fn standings(around: &Surroundings) -> impl Iterator<Item = &Standing> {
    around.device_classes.values().filter_map(|class| class.standing.as_ref().ok())
}

/// The devices of a node. Where several classes stand for one resource, as many as the class with
/// the fewest has: so many can be had whichever of them claims name.
#[must_use]
pub fn on_node(node: &str, slices: &Slices, around: &Surroundings) -> Devices {
    let mut devices = Devices::new();
    for standing in standings(around) {
        let count = slices.count(node, &standing.selection);
        let known = devices.entry(standing.resource.clone()).or_insert(count);
        *known = count.min(*known);
    }
    devices.retain(|_, count| *count > 0);
    devices
}

/// Adds devices to what a pod requests.
pub fn request(devices: &Devices, requests: &mut Resources) {
    for (resource, count) in devices {
        add(&mut requests.extended, resource, *count);
    }
}

/// Adds devices to what a node has. Those that a device plug-in has registered are known already.
pub fn offer(devices: Devices, allocatable: &mut Resources) {
    for (resource, count) in devices {
        allocatable.extended.entry(resource).or_insert(count);
    }
}

fn add(devices: &mut Devices, resource: &str, count: i64) {
    let known = devices.entry(resource.to_owned()).or_default();
    *known = known.saturating_add(count);
}
