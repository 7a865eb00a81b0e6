//! What an answer means for the launch.
//!
//! Invariant: decided by the error's class alone.

use longshore_proto::capacity::v1::{InstancePhase, OfferingUpdates};
use longshore_proto::types::v1::CapacityType;

use super::{Heard, Next, fail, record};
use crate::catalogue::{CLOSED_MS, OfferingKey};
use crate::cloud::{Bought, Class, CloudError, Instance, Order, Outcome, Shortage, TAG_LAUNCH};
use crate::leader::{Leader, lock};
use crate::ledger::{Failure, LaunchRecord, LedgerError, Move};
use crate::nodeclass::{Problem, Resolved};
use crate::wire;
use crate::work::explain;

/// How long a node class shows why launches from it fail, in milliseconds; then one may try again.
const FAULT_MS: i64 = 60_000;

/// What was asked for whom.
pub struct Deal<'a> {
    pub launch: &'a LaunchRecord,
    pub class: &'a Resolved,
    pub order: &'a Order,
}

pub async fn settle(
    leader: &Leader,
    deal: &Deal<'_>,
    answer: Result<Outcome, CloudError>,
    heard: &mut Heard,
) -> Result<Next, LedgerError> {
    let outcome = match answer {
        Ok(outcome) => outcome,
        Err(error) => return refused(leader, deal, error, heard).await,
    };
    close(leader, deal.order.capacity_type, &outcome.shortages);
    if let Some(bought) = outcome.bought {
        return launched(leader, deal, bought, outcome.request_id).await;
    }
    heard.0.extend(outcome.shortages.iter().map(|shortage| shortage.error.clone()));
    let decisive = outcome.shortages.into_iter().map(|shortage| shortage.error);
    match decisive.max_by_key(|error| gravity(error.class)) {
        Some(error) if !error.class.closes_offering() => refused(leader, deal, error, heard).await,
        _ => exhausted(leader, deal).await,
    }
}

/// How much an error says about the launch as a whole, in place of one offering.
const fn gravity(class: Class) -> u8 {
    match class {
        Class::Capacity | Class::Addresses => 0,
        Class::Quota => 1,
        Class::SpotRole | Class::Throttled | Class::Unknown | Class::Exists => 2,
        Class::TemplateMissing | Class::TokenReused | Class::NotFound | Class::Rejected => 3,
        Class::Profile | Class::Unauthorized => 4,
    }
}

async fn launched(
    leader: &Leader,
    deal: &Deal<'_>,
    bought: Bought,
    ec2_request_id: String,
) -> Result<Next, LedgerError> {
    let instance = fresh_instance(deal, &bought, leader.now_ms());
    let step = Move::Launched { instance_id: bought.instance_id, ec2_request_id };
    // Shown first: whoever sees the launch launched finds its instance.
    leader.inventory.send_modify(|inventory| inventory.bought(instance.clone()));
    wire::show_instance(&leader.board, &instance);
    record(leader, deal.launch, step).await?;
    leader.events().bought(deal.launch);
    leader.fault_over(deal.class);
    leader.look.notify_one();
    Ok(Next::Done)
}

/// The instance as far as it is known before EC2 lists it.
fn fresh_instance(deal: &Deal<'_>, bought: &Bought, now_ms: i64) -> Instance {
    let zones = deal.class.zones();
    Instance {
        instance_id: bought.instance_id.clone(),
        phase: InstancePhase::Pending,
        instance_type: bought.instance_type.clone(),
        zone: bought.zone.clone(),
        zone_id: zones.get(bought.zone.as_str()).map_or(String::new(), |id| (*id).to_owned()),
        capacity_type: deal.order.capacity_type,
        private_dns_name: String::new(),
        image_id: String::new(),
        launch_ms: now_ms,
        tags: deal.order.tags.clone(),
    }
}

/// Closes offerings that were not to be had.
fn close(leader: &Leader, capacity_type: CapacityType, shortages: &[Shortage]) {
    let now_ms = leader.now_ms();
    let mut updates = Vec::new();
    for shortage in shortages.iter().filter(|s| s.error.class.closes_offering()) {
        let key = OfferingKey::new(&shortage.instance_type, &shortage.zone, capacity_type);
        if shortage.error.class == Class::Addresses && !shortage.subnet_id.is_empty() {
            leader.subnet_full(&shortage.subnet_id, now_ms + CLOSED_MS);
        }
        leader.events().shortage(&key, &shortage.error);
        updates.extend(leader.closed().close(key, now_ms));
    }
    leader.board.post_offerings(OfferingUpdates { updates, ..OfferingUpdates::default() });
}

/// The whole order was refused.
async fn refused(
    leader: &Leader,
    deal: &Deal<'_>,
    error: CloudError,
    heard: &mut Heard,
) -> Result<Next, LedgerError> {
    match error.class {
        Class::Capacity | Class::Addresses | Class::Quota | Class::SpotRole => {
            close(leader, deal.order.capacity_type, &everything(deal.order, &error));
            if !heard.0.contains(&error) {
                heard.0.push(error);
            }
            exhausted(leader, deal).await
        }
        Class::Throttled | Class::Unknown => {
            tracing::warn!(launch_id = deal.launch.launch_id(), %error, "asking again");
            leader.look.notify_one();
            Ok(Next::Later)
        }
        Class::TokenReused => token_reused(leader, deal).await,
        Class::TemplateMissing => {
            let gone = |name: &String| deal.order.offers.iter().any(|o| o.template == *name);
            lock(&leader.templates).retain(|name, _| !gone(name));
            heard.0.push(error);
            record(leader, deal.launch, Move::Refused { exhausted: false }).await?;
            Ok(Next::Again)
        }
        Class::Unauthorized
        | Class::Profile
        | Class::NotFound
        | Class::Exists
        | Class::Rejected => give_up(leader, deal.launch, deal.class, &error).await,
    }
}

/// Nothing of this capacity type is to be had.
async fn exhausted(leader: &Leader, deal: &Deal<'_>) -> Result<Next, LedgerError> {
    record(leader, deal.launch, Move::Refused { exhausted: true }).await?;
    Ok(Next::Again)
}

/// Shortages of everything in an order.
fn everything(order: &Order, error: &CloudError) -> Vec<Shortage> {
    let closing = if error.class.closes_offering() { error.class } else { Class::Capacity };
    let error = CloudError { class: closing, ..error.clone() };
    let offers = order.offers.iter().flat_map(|offers| &offers.offers);
    let shortages = offers.map(|offer| Shortage {
        instance_type: offer.instance_type.clone(),
        zone: offer.zone.clone(),
        subnet_id: String::new(),
        error: error.clone(),
    });
    shortages.collect()
}

/// The token was used with other parameters: an earlier call got through. Its instance, if there is
/// one, is ours.
async fn token_reused(leader: &Leader, deal: &Deal<'_>) -> Result<Next, LedgerError> {
    let Ok(instances) = leader.cloud().instances().await else { return Ok(Next::Later) };
    let launch_id = deal.launch.launch_id();
    let found = instances.into_iter().find(|instance| instance.tag(TAG_LAUNCH) == launch_id);
    let step = match &found {
        Some(instance) => Move::Launched {
            instance_id: instance.instance_id.clone(),
            ec2_request_id: String::new(),
        },
        None => Move::Refused { exhausted: false },
    };
    record(leader, deal.launch, step).await?;
    leader.look.notify_one();
    Ok(if found.is_some() { Next::Done } else { Next::Again })
}

/// A launch template could not be made.
pub async fn template_failed(
    leader: &Leader,
    launch: &LaunchRecord,
    class: &Resolved,
    error: &CloudError,
) -> Result<Next, LedgerError> {
    if matches!(error.class, Class::Throttled | Class::Unknown) {
        tracing::warn!(launch_id = launch.launch_id(), %error, "asking again");
        return Ok(Next::Later);
    }
    give_up(leader, launch, class, error).await
}

/// Somebody has to act first: said on the launch and on the node class.
async fn give_up(
    leader: &Leader,
    launch: &LaunchRecord,
    class: &Resolved,
    error: &CloudError,
) -> Result<Next, LedgerError> {
    let message = explain::for_class(leader, class, error).await;
    let problem = Problem::new(condition_reason(error.class), message.clone());
    leader.fault(class, problem, leader.now_ms() + FAULT_MS);
    leader.resolve.notify_one();
    // A profile that we have just made becomes known to EC2 some seconds later.
    let fresh_profile = error.class == Class::Profile && !class.class.role.is_empty();
    let retryable = fresh_profile || error.class.passes();
    let failure = Failure { reason: error.class.reason().to_owned(), message, retryable };
    fail(leader, launch, failure).await
}

const fn condition_reason(class: Class) -> &'static str {
    match class {
        Class::Unauthorized => "Unauthorized",
        Class::Profile => "InstanceProfileNotFound",
        Class::NotFound => "DependencyNotFound",
        Class::Capacity
        | Class::Addresses
        | Class::Quota
        | Class::SpotRole
        | Class::Throttled
        | Class::TemplateMissing
        | Class::TokenReused
        | Class::Exists
        | Class::Unknown
        | Class::Rejected => "LaunchRejected",
    }
}
