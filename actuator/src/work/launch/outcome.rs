//! What an answer means for the launch.
//!
//! Invariant: decided by the error's class, and by whether a call before may have got through. An
//! answer that is definite ends its token.

use std::time::Duration;

use longshore_proto::capacity::v1::{InstancePhase, OfferingUpdates};
use longshore_proto::types::v1::CapacityType;
use longshore_runtime::planted;
use tokio::time::Instant;

use super::resume::must_show;
use super::{Heard, Next, fail, record};
use crate::catalogue::{CLOSED_MS, OfferingKey};
use crate::cloud::{Bought, Class, CloudError, Instance, Offer, Order, Outcome, Shortage};
use crate::leader::{Leader, lock};
use crate::ledger::{Failure, LaunchRecord, LedgerError, Move};
use crate::nodeclass::{Problem, Resolved};
use crate::wire;
use crate::work::explain;

/// How long a node class shows why launches from it fail, in milliseconds; then one may try again.
const FAULT_MS: i64 = 60_000;

/// Answers that a template is missing after which a launch fails: it was made anew in between.
const TEMPLATES_MISSING_MAX: u32 = 3;
/// How long EC2 may take to learn of an instance profile that was just made.
const PROFILE_KNOWN_WITHIN: Duration = Duration::from_secs(60);

/// What was asked for whom.
pub struct Deal<'a> {
    pub launch: &'a LaunchRecord,
    /// None when the class is not resolved at present.
    pub class: Option<&'a Resolved>,
    pub order: &'a Order,
    /// True when the same call was made before, and its answer never came.
    pub repeated: bool,
}

pub async fn settle(
    leader: &Leader,
    deal: &Deal<'_>,
    answer: Result<Outcome, CloudError>,
    heard: &mut Heard,
) -> Result<Next, LedgerError> {
    let outcome = match answer {
        Ok(outcome) => outcome,
        Err(error) => return unclear(leader, deal, error, heard).await,
    };
    close(leader, deal.order.capacity_type, &outcome.shortages);
    if let Some(bought) = outcome.bought {
        return launched(leader, deal, bought, outcome.request_id).await;
    }
    // A fleet's answer is the whole outcome: it launched nothing, and its token is used up.
    heard.0.extend(outcome.shortages.iter().map(|shortage| shortage.error.clone()));
    if close_refused(leader, deal.order, &outcome.shortages) {
        return refuse(leader, deal, Next::Again).await;
    }
    let decisive = outcome.shortages.into_iter().map(|shortage| shortage.error);
    match decisive.max_by_key(|error| gravity(error.class)) {
        Some(error) if !error.class.closes_offering() => refused(leader, deal, error, heard).await,
        _ => exhausted(leader, deal).await,
    }
}

/// The call as a whole got an error for an answer.
async fn unclear(
    leader: &Leader,
    deal: &Deal<'_>,
    error: CloudError,
    heard: &mut Heard,
) -> Result<Next, LedgerError> {
    leader.paces().of(deal.launch.launch_id()).heard = Some(error.clone());
    if matches!(error.class, Class::Throttled | Class::Unknown) {
        tracing::warn!(launch_id = deal.launch.launch_id(), %error, "asking again");
        // It may have got through only now, and its instance may show that much later.
        leader.paces().of(deal.launch.launch_id()).asked = Instant::now();
        leader.look.notify_one();
        return Ok(Next::Later);
    }
    // Said of the repetition: the call before may have got through all the same.
    let doubtful = deal.repeated || error.class == Class::TokenReused;
    if doubtful && !must_show(leader, deal.launch.launch_id()) && !planted::is("S7a") {
        leader.look.notify_one();
        return Ok(Next::Later);
    }
    refused(leader, deal, error, heard).await
}

/// Ends the call's token: its answer is known.
async fn refuse(leader: &Leader, deal: &Deal<'_>, next: Next) -> Result<Next, LedgerError> {
    record(leader, deal.launch, Move::Refused { exhausted: false }).await?;
    Ok(next)
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
    let image_id = image_of(leader, deal, &bought.instance_type);
    let instance = Instance { image_id, ..fresh_instance(deal, &bought, leader.now_ms()) };
    let step = Move::Launched { instance_id: bought.instance_id, ec2_request_id };
    // Shown first: whoever sees the launch launched finds its instance.
    leader.inventory.send_modify(|inventory| inventory.bought(instance.clone()));
    wire::show_instance(&leader.board, &instance);
    record(leader, deal.launch, step).await?;
    leader.events().bought(deal.launch);
    if let Some(class) = deal.class {
        leader.fault_over(class);
    }
    leader.look.notify_one();
    Ok(Next::Done)
}

/// The image that the instance boots: it is written on the claim before EC2 lists the instance. A repeated
/// call may be of an earlier day, with other images.
fn image_of(leader: &Leader, deal: &Deal<'_>, instance_type: &str) -> String {
    let market = leader.market.borrow();
    let facts = market.listing.types.get(instance_type);
    let class = deal.class.filter(|_| !deal.repeated);
    let image = class.zip(facts).and_then(|(class, facts)| class.image_for(facts));
    image.map_or_else(String::new, |image| image.id.clone())
}

/// The instance as far as it is known before EC2 lists it.
fn fresh_instance(deal: &Deal<'_>, bought: &Bought, now_ms: i64) -> Instance {
    let zones = deal.class.map(Resolved::zones).unwrap_or_default();
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

/// Closes offerings that were refused by name while others of the order were not: what is wrong
/// with one type says nothing about the class. Returns whether there were any.
fn close_refused(leader: &Leader, order: &Order, shortages: &[Shortage]) -> bool {
    let wrong: Vec<_> = shortages
        .iter()
        .filter(|s| !s.error.class.passes() && !s.instance_type.is_empty())
        .collect();
    let named = |offer: &Offer| {
        let same = |s: &&Shortage| {
            s.instance_type == offer.instance_type && (s.zone.is_empty() || s.zone == offer.zone)
        };
        wrong.iter().any(same)
    };
    let offers: Vec<_> = order.offers.iter().flat_map(|offers| &offers.offers).collect();
    let nameless = shortages.iter().any(|s| !s.error.class.passes() && s.instance_type.is_empty());
    if wrong.is_empty() || nameless || offers.iter().all(|o| named(o)) || planted::is("S13") {
        return false;
    }
    let refused = offers.into_iter().filter(|offer| named(offer));
    let keys = refused.map(|o| OfferingKey::new(&o.instance_type, &o.zone, order.capacity_type));
    let now_ms = leader.now_ms();
    let mut updates = Vec::new();
    for key in keys {
        if let Some(first) = wrong.first() {
            leader.events().shortage(&key, &first.error);
        }
        updates.extend(leader.closed().close(key, now_ms));
    }
    leader.board.post_offerings(OfferingUpdates { updates, ..OfferingUpdates::default() });
    true
}

/// Nothing of the whole order was launched.
async fn refused(
    leader: &Leader,
    deal: &Deal<'_>,
    error: CloudError,
    heard: &mut Heard,
) -> Result<Next, LedgerError> {
    leader.paces().of(deal.launch.launch_id()).heard = Some(error.clone());
    match error.class {
        Class::Capacity | Class::Addresses | Class::Quota | Class::SpotRole => {
            close(leader, deal.order.capacity_type, &everything(deal.order, &error));
            if !heard.0.contains(&error) {
                heard.0.push(error);
            }
            exhausted(leader, deal).await
        }
        // The answer is known, and another call may do better: with a token of its own.
        Class::Throttled | Class::Unknown if planted::is("S9") => Ok(Next::Later),
        Class::Throttled | Class::Unknown => refuse(leader, deal, Next::Later).await,
        Class::TokenReused => refuse(leader, deal, Next::Again).await,
        Class::TemplateMissing => template_missing(leader, deal, error, heard).await,
        Class::Profile if fresh_profile(leader, deal) => refuse(leader, deal, Next::Later).await,
        Class::Unauthorized
        | Class::Profile
        | Class::NotFound
        | Class::Exists
        | Class::Rejected => give_up(leader, deal.launch, deal.class, &error).await,
    }
}

/// The launch template is gone: made anew when it is ours, a few times.
async fn template_missing(
    leader: &Leader,
    deal: &Deal<'_>,
    error: CloudError,
    heard: &mut Heard,
) -> Result<Next, LedgerError> {
    let gone = |name: &String| deal.order.offers.iter().any(|o| o.template == *name);
    lock(&leader.templates).retain(|name, _| !gone(name));
    let times = {
        let mut paces = leader.paces();
        let pace = paces.of(deal.launch.launch_id());
        pace.templates_missing += 1;
        pace.templates_missing
    };
    let own = deal.class.is_some_and(|class| !class.class.launch_template.is_empty());
    if (own || times > TEMPLATES_MISSING_MAX) && !planted::is("S12") {
        return give_up(leader, deal.launch, deal.class, &error).await;
    }
    heard.0.push(error);
    let at_once = times == 1 || planted::is("S12");
    refuse(leader, deal, if at_once { Next::Again } else { Next::Later }).await
}

/// True while EC2 may not have learned yet of a profile that we have just made. The answer to a repeated call
/// is that of the first one, of whenever that was.
fn fresh_profile(leader: &Leader, deal: &Deal<'_>) -> bool {
    let made = deal.class.is_some_and(|class| !class.class.role.is_empty());
    let since = leader.paces().of(deal.launch.launch_id()).since;
    let early = deal.repeated || since.elapsed() < PROFILE_KNOWN_WITHIN;
    made && early && !planted::is("S13c")
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

/// A launch template could not be made.
pub async fn template_failed(
    leader: &Leader,
    launch: &LaunchRecord,
    class: &Resolved,
    error: &CloudError,
) -> Result<Next, LedgerError> {
    if matches!(error.class, Class::Throttled | Class::Unknown) {
        tracing::warn!(launch_id = launch.launch_id(), %error, "asking again");
        leader.paces().of(launch.launch_id()).heard = Some(error.clone());
        return Ok(Next::Later);
    }
    give_up(leader, launch, Some(class), error).await
}

/// Somebody has to act first: said on the launch and on the node class.
async fn give_up(
    leader: &Leader,
    launch: &LaunchRecord,
    class: Option<&Resolved>,
    error: &CloudError,
) -> Result<Next, LedgerError> {
    let message = match class {
        Some(class) => explain::for_class(leader, class, error).await,
        None => error.to_string(),
    };
    if let Some(class) = class {
        let problem = Problem::new(condition_reason(error.class), message.clone());
        leader.fault(class, problem, leader.now_ms() + FAULT_MS);
    }
    leader.resolve.notify_one();
    // A profile that we have just made becomes known to EC2 some seconds later.
    let made = class.is_some_and(|class| !class.class.role.is_empty());
    let retryable = (error.class == Class::Profile && made) || error.class.passes();
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
