//! One attempt: class, call, templates, record, ask.
//!
//! Invariant: nothing is asked of EC2 for a class that is not in order.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use longshore_runtime::{planted, propagate};
use tokio::sync::OnceCell;
use tokio::time::{Instant, timeout};
use tracing::{Instrument, Span, field};

use super::{Heard, Next, fail, outcome, record, resume};
use crate::cloud::{CloudError, Offer, Order, Outcome, TemplateOffers};
use crate::ec2::blueprint;
use crate::ec2::request::{Basis, Call, instance_tags, next_call};
use crate::leader::{Leader, lock};
use crate::ledger::{Failure, LaunchRecord, LedgerError, Move, OrderRecord};
use crate::nodeclass::{LOOKUP_FAILED, Resolved};

/// Longest time for a call; the client library tries it several times within.
const ANSWER_WITHIN: Duration = Duration::from_secs(120);
/// Longest time a leader works on a launch, its answers outstanding apart: the next plan does
/// better.
const DEADLINE: Duration = Duration::from_secs(300);
/// Most calls for one launch, over all leaders: far more than it has capacity types and templates.
const ATTEMPTS_MAX: u32 = 40;

pub async fn attempt(
    leader: &Leader,
    launch: &LaunchRecord,
    heard: &mut Heard,
) -> Result<Next, LedgerError> {
    if launch.outcome_unknown() {
        return resume::resume(leader, launch, heard).await;
    }
    if let Some(failure) = overdue(leader, launch) {
        return fail(leader, launch, failure).await;
    }
    let Some(class) = leader.class_of(launch) else { return Ok(Next::Later) };
    if leader.market.borrow().listing.types.is_empty() {
        // A new leader has not read yet what is sold: that is no shortage.
        return Ok(Next::Later);
    }
    if let Some((condition, problem)) = class.conditions.obstacle() {
        if problem.reason == LOOKUP_FAILED && !planted::is("S13b") {
            // AWS did not answer about the class: that says nothing about the class.
            return Ok(Next::Later);
        }
        let failure = Failure {
            reason: "NODE_CLASS_NOT_READY".to_owned(),
            message: format!("{condition}: {}", problem.message),
            retryable: false,
        };
        return fail(leader, launch, failure).await;
    }
    let call = match plan_call(leader, launch, &class) {
        Ok(call) => call,
        Err(failure) => return fail(leader, launch, heard.explain(failure)).await,
    };
    let templates = match templates(leader, launch, &class, &call).await {
        Ok(templates) => templates,
        Err(TemplateError::Blueprint(failure)) => return fail(leader, launch, failure).await,
        Err(TemplateError::Cloud(error)) => {
            return outcome::template_failed(leader, launch, &class, &error).await;
        }
    };
    let order = order(launch, &class, &call, templates);
    let Some((asked, order)) = ask(leader, launch, order).await? else {
        return Ok(Next::Later);
    };
    let answer = create_fleet(leader, &asked, &order).await;
    let deal =
        outcome::Deal { launch: &asked, class: Some(&class), order: &order, repeated: false };
    outcome::settle(leader, &deal, answer, heard).await
}

/// Why no further call is made for a launch; none while there may be some.
pub fn overdue(leader: &Leader, launch: &LaunchRecord) -> Option<Failure> {
    let pace = leader.paces().of(launch.launch_id()).clone();
    if (pace.since.elapsed() < DEADLINE && launch.attempts < ATTEMPTS_MAX) || planted::is("S9a") {
        return None;
    }
    let reason = pace.heard.as_ref().map_or("LAUNCH_DEADLINE", |error| error.class.reason());
    let said = pace.heard.as_ref().map_or_else(
        || "its node class is not resolved, or it is not known what the region sells".to_owned(),
        ToString::to_string,
    );
    Some(Failure {
        reason: reason.to_owned(),
        message: format!(
            "no instance after {} calls in {} s ({said}); the next plan asks again",
            launch.attempts,
            pace.since.elapsed().as_secs()
        ),
        retryable: true,
    })
}

fn plan_call(leader: &Leader, launch: &LaunchRecord, class: &Resolved) -> Result<Call, Failure> {
    let now_ms = leader.now_ms();
    let full_subnets = leader.full_subnets(now_ms);
    let market = leader.market.borrow().clone();
    let closed = leader.closed();
    let basis = Basis {
        class,
        types: &market.listing.types,
        closed: &closed,
        full_subnets: &full_subnets,
        now_ms,
    };
    next_call(launch, &basis)
}

enum TemplateError {
    Blueprint(Failure),
    Cloud(CloudError),
}

/// Template names by image, made where they are missing.
async fn templates(
    leader: &Leader,
    launch: &LaunchRecord,
    class: &Resolved,
    call: &Call,
) -> Result<BTreeMap<String, String>, TemplateError> {
    let wanted = launch.launch.clone().unwrap_or_default();
    let mut names = BTreeMap::new();
    for image_id in call.offers.keys() {
        if !class.class.launch_template.is_empty() {
            names.insert(image_id.clone(), class.class.launch_template.clone());
            continue;
        }
        let template = blueprint::template(class, &wanted, image_id).map_err(|error| {
            TemplateError::Blueprint(Failure {
                reason: "USER_DATA_INVALID".to_owned(),
                message: format!("{}: {error}", class.class.name),
                retryable: false,
            })
        })?;
        let made = use_template(leader, &template.name);
        made.get_or_try_init(|| leader.cloud().ensure_template(&template))
            .await
            .map_err(TemplateError::Cloud)?;
        names.insert(image_id.clone(), template.name);
    }
    Ok(names)
}

fn use_template(leader: &Leader, name: &str) -> Arc<OnceCell<()>> {
    let mut templates = lock(&leader.templates);
    let known = templates.entry(name.to_owned()).or_default();
    known.used_ms = leader.now_ms();
    Arc::clone(&known.made)
}

/// Records what EC2 is asked for. Returns it as it is recorded; none when the launch moved
/// meanwhile.
async fn ask(
    leader: &Leader,
    launch: &LaunchRecord,
    order: Order,
) -> Result<Option<(LaunchRecord, Order)>, LedgerError> {
    let attempt = launch.attempts + 1;
    let step = Move::Ask(order.capacity_type, Box::new(OrderRecord::from(&order)));
    record(leader, launch, step).await?;
    leader.paces().of(launch.launch_id()).asked = Instant::now();
    let now = leader.record(launch.launch_id()).filter(|now| now.attempts == attempt);
    Ok(now.and_then(|now| Some(((*now).clone(), now.unanswered()?))))
}

fn order(
    launch: &LaunchRecord,
    class: &Resolved,
    call: &Call,
    templates: BTreeMap<String, String>,
) -> Order {
    let mut by_template: BTreeMap<String, Vec<Offer>> = BTreeMap::new();
    for (image_id, offers) in &call.offers {
        let name = templates.get(image_id).cloned().unwrap_or_default();
        by_template.entry(name).or_default().extend(offers.iter().cloned());
    }
    let offers = by_template
        .into_iter()
        .map(|(template, mut offers)| {
            offers.sort_by_key(|offer| offer.rank);
            TemplateOffers { template, offers }
        })
        .collect();
    Order {
        // Given once the call is recorded.
        client_token: String::new(),
        capacity_type: call.capacity_type,
        offers,
        tags: instance_tags(class, launch),
    }
}

/// The call, as a span of the trace that asked for the launch.
pub async fn create_fleet(
    leader: &Leader,
    launch: &LaunchRecord,
    order: &Order,
) -> Result<Outcome, CloudError> {
    let span = tracing::info_span!(
        "ec2.create_fleet",
        launch_id = launch.launch_id(),
        claim = launch.claim(),
        attempt = launch.attempts,
        capacity_type = order.capacity_type.as_str_name(),
        aws.request_id = field::Empty,
        ec2.instance_id = field::Empty,
        ec2.instance_type = field::Empty,
        ec2.zone = field::Empty,
    );
    let traceparent = launch.launch.as_ref().map_or("", |launch| &launch.traceparent);
    propagate::set_parent(&span, traceparent);
    let asking = timeout(ANSWER_WITHIN, leader.cloud().launch(order)).instrument(span.clone());
    let answer = asking.await.unwrap_or_else(|_| Err(CloudError::silent("ec2:CreateFleet")));
    annotate(&span, &answer);
    answer
}

fn annotate(span: &Span, answer: &Result<Outcome, CloudError>) {
    match answer {
        Ok(outcome) => {
            span.record("aws.request_id", &outcome.request_id);
            if let Some(bought) = &outcome.bought {
                span.record("ec2.instance_id", &bought.instance_id);
                span.record("ec2.instance_type", &bought.instance_type);
                span.record("ec2.zone", &bought.zone);
            }
        }
        Err(error) => {
            span.record("aws.request_id", &error.request_id);
        }
    }
}
