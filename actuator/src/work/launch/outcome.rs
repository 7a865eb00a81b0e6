//! What an answer means for the launches that it is about.
//!
//! Invariant: decided by the error's class, and by whether a call before may have got through. An
//! answer that is definite ends its token.

use std::sync::Arc;
use std::time::Duration;

use longshore_proto::capacity::v1::OfferingUpdates;
use longshore_proto::types::v1::CapacityType;
use longshore_runtime::planted;
use tokio::time::Instant;

use super::call::FleetCall;
use super::patience::must_show;
use super::{Heard, Members, Next, award, fail, note, record};
use crate::catalogue::{CLOSED_MS, OfferingKey};
use crate::cloud::{Class, CloudError, FleetOffer, FleetOutcome, Order, Shortage};
use crate::leader::{Leader, lock};
use crate::ledger::{Failure, LedgerError, Move};
use crate::nodeclass::{Problem, Resolved};
use crate::pace::{Answered, leaves_doubt};
use crate::work::explain;

/// How long a node class shows why launches from it fail, in milliseconds; then one may try again.
const FAULT_MS: i64 = 60_000;

/// Answers that a template is missing after which a launch fails: it was made anew in between.
const TEMPLATES_MISSING_MAX: u32 = 3;
/// How long EC2 may take to learn of an instance profile that was just made.
const PROFILE_KNOWN_WITHIN: Duration = Duration::from_secs(60);

/// What an answer comes to. When the ledger cannot take that down, the answer is kept: EC2 has said
/// all that it will.
pub async fn settle(
    leader: &Leader,
    call: &FleetCall<'_>,
    answer: Result<FleetOutcome, CloudError>,
    heard: &mut Heard,
) -> Result<Next, LedgerError> {
    let next = conclude(leader, call, answer.clone(), heard).await;
    if next.is_err() {
        keep(leader, call, answer);
    }
    next
}

/// Keeps an answer that nothing can be concluded from yet: another call would get the same.
fn keep(leader: &Leader, call: &FleetCall<'_>, answer: Result<FleetOutcome, CloudError>) {
    let client_token = call.order.client_token.clone();
    let (repeated, at) = (call.repeated, call.answered);
    let answered = Arc::new(Answered { client_token, answer, repeated, at });
    note(leader, call.members, |pace| pace.answered = Some(Arc::clone(&answered)));
}

async fn conclude(
    leader: &Leader,
    call: &FleetCall<'_>,
    answer: Result<FleetOutcome, CloudError>,
    heard: &mut Heard,
) -> Result<Next, LedgerError> {
    let outcome = match answer {
        Ok(outcome) => outcome,
        Err(error) => return unclear(leader, call, error, heard).await,
    };
    close(leader, call.order.capacity_type, &outcome.shortages);
    if !outcome.bought.is_empty() {
        return award::launched(leader, call, outcome, heard).await;
    }
    // A fleet's answer is the whole outcome: it launched nothing, and its token is used up.
    heard.0.extend(outcome.shortages.iter().map(|shortage| shortage.error.clone()));
    if close_refused(leader, call.order, &outcome.shortages) {
        return refuse(leader, call, Next::Again).await;
    }
    let decisive = outcome.shortages.into_iter().map(|shortage| shortage.error);
    match decisive.max_by_key(|error| gravity(error.class)) {
        Some(error) if !error.class.closes_offering() => refused(leader, call, error, heard).await,
        _ => exhausted(leader, call).await,
    }
}

/// The call as a whole got an error for an answer.
async fn unclear(
    leader: &Leader,
    call: &FleetCall<'_>,
    error: CloudError,
    heard: &mut Heard,
) -> Result<Next, LedgerError> {
    note(leader, call.members, |pace| pace.heard = Some(error.clone()));
    if matches!(error.class, Class::Throttled | Class::Unknown) {
        tracing::warn!(client_token = call.order.client_token, %error, "asking again");
        // It may have got through only now, and its instances may show that much later.
        let now = Instant::now();
        note(leader, call.members, |pace| pace.asked = now);
        leader.look.notify_one();
        return Ok(Next::Later);
    }
    let doubtful = leaves_doubt(&error, call.repeated);
    if doubtful && !must_show(leader, call.members) && !planted::is("S7a") {
        leader.look.notify_one();
        if !planted::is("S36") {
            keep(leader, call, Err(error));
        }
        return Ok(Next::Later);
    }
    if !call.found.is_empty() {
        return award::adopt(leader, call.members, call.found).await;
    }
    refused(leader, call, error, heard).await
}

/// Ends the call's token: its answer is known.
async fn refuse(leader: &Leader, call: &FleetCall<'_>, next: Next) -> Result<Next, LedgerError> {
    record(leader, call.members, Move::Refused { exhausted: false }).await?;
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
    let named = |offer: &FleetOffer| {
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
    call: &FleetCall<'_>,
    error: CloudError,
    heard: &mut Heard,
) -> Result<Next, LedgerError> {
    note(leader, call.members, |pace| pace.heard = Some(error.clone()));
    match error.class {
        Class::Capacity | Class::Addresses | Class::Quota | Class::SpotRole => {
            close(leader, call.order.capacity_type, &everything(call.order, &error));
            if !heard.0.contains(&error) {
                heard.0.push(error);
            }
            exhausted(leader, call).await
        }
        // The answer is known, and another call may do better: with a token of its own.
        Class::Throttled | Class::Unknown if planted::is("S9") => Ok(Next::Later),
        Class::Throttled | Class::Unknown => refuse(leader, call, Next::Later).await,
        Class::TokenReused => refuse(leader, call, Next::Again).await,
        Class::TemplateMissing => template_missing(leader, call, error, heard).await,
        Class::Profile if fresh_profile(leader, call) => refuse(leader, call, Next::Later).await,
        Class::Unauthorized
        | Class::Profile
        | Class::NotFound
        | Class::Exists
        | Class::Rejected => give_up(leader, call.members, call.class, &error).await,
    }
}

/// The launch template is gone: made anew when it is ours, a few times.
async fn template_missing(
    leader: &Leader,
    call: &FleetCall<'_>,
    error: CloudError,
    heard: &mut Heard,
) -> Result<Next, LedgerError> {
    let gone = |name: &String| call.order.offers.iter().any(|o| o.template == *name);
    lock(&leader.templates).retain(|name, _| !gone(name));
    note(leader, call.members, |pace| pace.templates_missing += 1);
    let times = |id: &str| leader.paces().of(id).templates_missing;
    let times = call.members.iter().map(|launch| times(launch.launch_id())).max().unwrap_or(1);
    let own = call.class.is_some_and(|class| !class.class.launch_template.is_empty());
    if (own || times > TEMPLATES_MISSING_MAX) && !planted::is("S12") {
        return give_up(leader, call.members, call.class, &error).await;
    }
    heard.0.push(error);
    let at_once = times == 1 || planted::is("S12");
    refuse(leader, call, if at_once { Next::Again } else { Next::Later }).await
}

/// True when EC2 may not have learned yet, when it answered, of a profile that we had just made.
/// The answer to a repeated call is that of the first one, of whenever that was.
fn fresh_profile(leader: &Leader, call: &FleetCall<'_>) -> bool {
    let since = |id: &str| leader.paces().of(id).since;
    let since = call.members.iter().map(|launch| since(launch.launch_id())).max();
    let young = since.is_some_and(|since| call.answered < since + PROFILE_KNOWN_WITHIN);
    let early = call.repeated || young;
    is_profile_ours(call.class) && early && !planted::is("S13c")
}

/// True of a class whose profile we make, and of one that a new leader has not resolved yet: it may
/// be such a class.
fn is_profile_ours(class: Option<&Resolved>) -> bool {
    class.is_none_or(|class| !class.class.role.is_empty())
}

/// Nothing of this capacity type is to be had.
async fn exhausted(leader: &Leader, call: &FleetCall<'_>) -> Result<Next, LedgerError> {
    record(leader, call.members, Move::Refused { exhausted: true }).await?;
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
    members: &Members,
    class: &Resolved,
    error: &CloudError,
) -> Result<Next, LedgerError> {
    if matches!(error.class, Class::Throttled | Class::Unknown) {
        tracing::warn!(launches = members.len(), %error, "asking again");
        note(leader, members, |pace| pace.heard = Some(error.clone()));
        return Ok(Next::Later);
    }
    give_up(leader, members, Some(class), error).await
}

/// Somebody has to act first: said on the launches and on the node class.
async fn give_up(
    leader: &Leader,
    members: &Members,
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
    let retryable =
        (error.class == Class::Profile && is_profile_ours(class)) || error.class.passes();
    let failure = Failure { reason: error.class.reason().to_owned(), message, retryable };
    fail(leader, members, failure).await
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
