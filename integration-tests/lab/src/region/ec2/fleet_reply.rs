//! What CreateFleet answers: instances grouped per override, errors beside them.
//!
//! Invariant: pure; each override is echoed as it was sent.

use super::super::offer::market_name;
use super::super::wire::{AwsError, Body, Element, group, maybe, set, text};
use super::admit::Candidate;
use super::fleet_request::Override;
use super::prices::dollars;

/// One override with its template, ready to be considered for either market.
#[derive(Debug)]
pub struct Choice<'a> {
    /// The override as sent.
    pub sent: &'a Override,
    /// The launch it would be; its market is set per target.
    pub candidate: Candidate,
}

/// What a fleet got and what it did not.
#[derive(Debug, Default)]
pub struct Outcome {
    /// `fleet-…`.
    pub fleet_id: String,
    /// Instance ids per override and market, in order of first purchase.
    pub bought: Vec<(Bought, Vec<String>)>,
    /// Override, market and reason of each refusal.
    pub errors: Vec<(usize, bool, AwsError)>,
}

/// Where instances came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bought {
    /// Index of the override.
    pub choice: usize,
    /// True for spot.
    pub spot: bool,
}

impl Outcome {
    /// Adds an instance.
    pub fn add(&mut self, from: Bought, instance_id: String) {
        match self.bought.iter_mut().find(|(found, _)| *found == from) {
            Some((_, ids)) => ids.push(instance_id),
            None => self.bought.push((from, vec![instance_id])),
        }
    }
}

/// The reply.
pub fn body(choices: &[Choice<'_>], outcome: &Outcome) -> Body {
    let errors = outcome.errors.iter().map(|(index, spot, error)| {
        vec![
            echo(&choices[*index]),
            text("lifecycle", market_name(*spot)),
            text("errorCode", &error.code),
            text("errorMessage", &error.message),
        ]
    });
    let instances = outcome.bought.iter().map(|(from, ids)| {
        let choice = &choices[from.choice];
        vec![
            echo(choice),
            text("lifecycle", market_name(from.spot)),
            Element::texts("instanceIds", ids),
            text("instanceType", &choice.candidate.offer.instance_type),
            text("availabilityZone", &choice.candidate.offer.zone),
            text("subnetId", &choice.candidate.subnet_id),
        ]
    });
    Body::Xml(vec![
        text("fleetId", &outcome.fleet_id),
        set("errorSet", errors),
        set("fleetInstanceSet", instances),
    ])
}

fn echo(choice: &Choice<'_>) -> Element {
    let mut parts = Vec::new();
    if let Some((id, name, version)) = &choice.candidate.template {
        let fields = vec![
            text("launchTemplateId", id),
            text("launchTemplateName", name),
            text("version", version),
        ];
        parts.push(group("launchTemplateSpecification", fields));
    }
    parts.push(group("overrides", override_fields(choice.sent)));
    group("launchTemplateAndOverrides", parts)
}

fn override_fields(sent: &Override) -> Vec<Element> {
    [
        maybe("instanceType", sent.data.instance_type.as_ref()),
        maybe("maxPrice", sent.max_price_micro_usd.map(dollars)),
        maybe("subnetId", sent.subnet_id.as_ref()),
        maybe("availabilityZone", sent.zone.as_ref()),
        maybe("availabilityZoneId", sent.zone_id.as_ref()),
        maybe("weightedCapacity", sent.weight),
        maybe("priority", sent.priority),
        maybe("imageId", sent.data.image_id.as_ref()),
    ]
    .into_iter()
    .flatten()
    .collect()
}
