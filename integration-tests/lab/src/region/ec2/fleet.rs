//! CreateFleet of type instant.
//!
//! Invariant: a client token buys once; what a fleet cannot get is in its `Errors`, together with
//! the instances it did get.

use jiff::Timestamp;
use sha2::{Digest, Sha256};

use super::super::config::SubnetConfig;
use super::super::iam::Context;
use super::super::offer::Offer;
use super::super::wire::{AwsError, Body, Params, Result};
use super::super::world::{Call, TokenMemory, World};
use super::admit::Candidate;
use super::allocate::{Allocation, Pool, allocate};
use super::fleet_reply::{self, Bought, Choice, Outcome};
use super::fleet_request::{Config, FleetRequest, Override, Target};
use super::room::Room;
use super::template_data::{overlay, tags_for};

/// `CreateFleet`.
pub fn create_fleet(world: &mut World, call: &Call<'_>) -> Result<Body> {
    let params = &call.request.params;
    let request = FleetRequest::read(params)?;
    let choices = choices(world, &request)?;
    authorize(world, call, &request, &choices)?;
    if request.dry_run {
        return Err(AwsError::dry_run());
    }
    once(world, params, |world| Ok(buy(world, call, &request, &choices)))
}

/// Answers a repeated client token from memory, and remembers a new one.
pub fn once(
    world: &mut World,
    params: &Params,
    launch: impl FnOnce(&mut World) -> Result<Body>,
) -> Result<Body> {
    let Some(token) = params.text("ClientToken") else { return launch(world) };
    let digest = Sha256::digest(format!("{params:?}"));
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    if let Some(memory) = world.tokens.get_mut(token) {
        memory.calls += 1;
        if memory.digest == digest {
            return Ok(memory.reply.clone());
        }
        let message = "The client token has already been used with different parameters.";
        return Err(AwsError::client("IdempotentParameterMismatch", message));
    }
    let reply = launch(world)?;
    let memory = TokenMemory { digest, reply: reply.clone(), calls: 1 };
    world.tokens.insert(token.to_owned(), memory);
    Ok(reply)
}

fn buy(world: &mut World, call: &Call<'_>, request: &FleetRequest, choices: &[Choice<'_>]) -> Body {
    let fleet_id = world.ids.uuid("fleet");
    let mut outcome = Outcome { fleet_id: format!("fleet-{fleet_id}"), ..Outcome::default() };
    let mut room = world.room();
    for target in &request.targets {
        let for_market: Vec<Candidate> =
            choices.iter().map(|choice| on_market(&choice.candidate, target)).collect();
        let allocation = best(world, call, &mut room, (target, choices, &for_market));
        let reservation_id = world.ids.ec2("r");
        for index in allocation.taken {
            let order = for_market[index].order(&reservation_id, None);
            if let Some(id) = world.launch(order, call.now) {
                outcome.add(Bought { choice: index, spot: target.spot }, id);
            }
        }
        let refused = allocation.refused.into_iter();
        outcome.errors.extend(refused.map(|(index, error)| (index, target.spot, error)));
    }
    fleet_reply::body(choices, &outcome)
}

fn on_market(candidate: &Candidate, target: &Target) -> Candidate {
    let offer = Offer { spot: target.spot, ..candidate.offer.clone() };
    let mut candidate = Candidate { offer, ..candidate.clone() };
    if target.spot {
        candidate.data.reservation_id = None;
    }
    candidate
}

type Market<'a> = (&'a Target, &'a [Choice<'a>], &'a [Candidate]);

/// Allocates within each group that a target's constraints allow and keeps the fullest allocation,
/// the first on a tie. Without such constraints there is one group.
fn best(world: &mut World, call: &Call<'_>, room: &mut Room, market: Market<'_>) -> Allocation {
    let (target, _, candidates) = market;
    let mut best: Option<(Allocation, Room)> = None;
    for group in groups(target, candidates) {
        let mut trial = room.clone();
        let allocation = deal(world, call, &mut trial, (market, &group));
        let better = best.as_ref().is_none_or(|(found, _)| allocation.units > found.units);
        if better {
            best = Some((allocation, trial));
        }
    }
    let Some((mut allocation, trial)) = best else { return Allocation::default() };
    if allocation.units < f64::from(target.min_units) {
        allocation.taken.clear();
        if allocation.refused.is_empty() {
            let message = "Unable to fulfill capacity due to your request configuration. Please \
                           adjust your request and try again.";
            allocation.refused.push((0, AwsError::client("UnfulfillableCapacity", message)));
        }
    } else {
        *room = trial;
    }
    allocation
}

/// Indices of candidates that may be mixed under the target's constraints.
fn groups(target: &Target, candidates: &[Candidate]) -> Vec<Vec<usize>> {
    let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
    for (index, candidate) in candidates.iter().enumerate() {
        let by_type = if target.single_type { candidate.offer.instance_type.as_str() } else { "" };
        let by_zone = if target.single_zone { candidate.offer.zone.as_str() } else { "" };
        let key = format!("{by_type} {by_zone}");
        match groups.iter_mut().find(|(found, _)| *found == key) {
            Some((_, members)) => members.push(index),
            None => groups.push((key, vec![index])),
        }
    }
    groups.into_iter().map(|(_, members)| members).collect()
}

fn deal(
    world: &mut World,
    call: &Call<'_>,
    room: &mut Room,
    ((target, choices, candidates), group): (Market<'_>, &[usize]),
) -> Allocation {
    let pools: Vec<Pool> = group
        .iter()
        .map(|&index| pool(world, room, (choices[index].sent, &candidates[index]), call.now))
        .collect();
    let mut admitted = vec![false; group.len()];
    let mut allocation = allocate(target.strategy, &pools, target.units, &mut |position| {
        let candidate = &candidates[group[position]];
        if !admitted[position] {
            require_reservation(target, candidate)?;
            world.admit(call, candidate)?;
            admitted[position] = true;
        }
        world.take(room, candidate)
    });
    allocation.taken.iter_mut().for_each(|position| *position = group[*position]);
    allocation.refused.iter_mut().for_each(|(position, _)| *position = group[*position]);
    allocation
}

fn require_reservation(target: &Target, candidate: &Candidate) -> Result<()> {
    if target.reserved && candidate.data.reservation_id.is_none() {
        let message = "The launch template names no capacity reservation.";
        return Err(AwsError::client("InvalidFleetConfig", message));
    }
    Ok(())
}

fn pool(
    world: &World,
    room: &Room,
    (sent, candidate): (&Override, &Candidate),
    now: Timestamp,
) -> Pool {
    Pool {
        price_micro_usd: world.price_of(&candidate.offer, now),
        priority: sent.priority,
        weight: sent.weight.filter(|weight| *weight > 0.0).unwrap_or(1.0),
        depth: room.depth(world, &candidate.offer),
    }
}

/// Every template with every override.
fn choices<'a>(world: &World, request: &'a FleetRequest) -> Result<Vec<Choice<'a>>> {
    let mut choices = Vec::new();
    for config in &request.configs {
        for sent in &config.overrides {
            let mut candidate = candidate(world, config, sent)?;
            candidate.data.tags.extend(request.tags.iter().cloned());
            choices.push(Choice { sent, candidate });
        }
    }
    Ok(choices)
}

fn candidate(world: &World, config: &Config, sent: &Override) -> Result<Candidate> {
    let template = world.template(config.name.as_deref(), config.id.as_deref())?;
    let wanted = config.version.as_deref();
    let (version, data) = template.version(wanted).ok_or_else(|| {
        AwsError::client(
            "InvalidLaunchTemplateId.VersionNotFound",
            format!("Could not find launch template version {}", wanted.unwrap_or_default()),
        )
    })?;
    let data = overlay(data, sent.data.clone());
    let subnet = subnet_for(world, sent)?;
    let instance_type =
        data.instance_type.as_deref().ok_or_else(|| AwsError::missing_parameter("InstanceType"))?;
    Ok(Candidate {
        template: Some((template.id.clone(), template.name.clone(), version)),
        offer: Offer::new(instance_type, &subnet.zone, false),
        subnet_id: subnet.id.clone(),
        max_price_micro_usd: sent.max_price_micro_usd,
        data,
    })
}

/// The subnet an override names, or the first in the zone it names, or the first of all.
fn subnet_for<'a>(world: &'a World, sent: &Override) -> Result<&'a SubnetConfig> {
    if let Some(id) = &sent.subnet_id {
        return world.subnet(id).ok_or_else(|| {
            let message = format!("The subnet ID '{id}' does not exist");
            AwsError::client("InvalidSubnetID.NotFound", message)
        });
    }
    let fits = |subnet: &&SubnetConfig| {
        sent.zone.as_ref().is_none_or(|zone| *zone == subnet.zone)
            && sent.zone_id.as_ref().is_none_or(|id| *id == world.zone_id(&subnet.zone))
    };
    world.config.subnets.iter().find(fits).ok_or_else(|| {
        AwsError::client("MissingInput", "No default subnet exists in the requested zone.")
    })
}

/// `ec2:CreateFleet` on the fleet and on each template.
fn authorize(
    world: &World,
    call: &Call<'_>,
    request: &FleetRequest,
    choices: &[Choice<'_>],
) -> Result<()> {
    let tags = tags_for(&request.tags, "fleet");
    let fleet = world.ec2_arn("fleet", "*");
    world.allow(call, &fleet, Context::default().with_request_tags(&tags))?;
    world.allow_tagging(call, &fleet, &tags)?;
    let mut names: Vec<&str> = choices
        .iter()
        .filter_map(|choice| Some(choice.candidate.template.as_ref()?.1.as_str()))
        .collect();
    names.dedup();
    for name in names {
        let template = world.template(Some(name), None)?;
        let arn = world.ec2_arn("launch-template", &template.id);
        world.allow(call, &arn, Context::default().with_resource_tags(&template.tags))?;
    }
    Ok(())
}
