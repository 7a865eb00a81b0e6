//! One attempt: class, call, templates, record, ask.
//!
//! Invariant: nothing is asked of EC2 for a class that is not in order.

use std::collections::BTreeMap;
use std::sync::Arc;

use longshore_proto::types::v1::CapacityType;
use longshore_runtime::propagate;
use tokio::sync::OnceCell;
use tracing::{Instrument, Span, field};

use super::{Heard, Next, fail, outcome, record};
use crate::cloud::{CloudError, Offer, Order, Outcome, TemplateOffers};
use crate::ec2::blueprint;
use crate::ec2::request::{Basis, Call, instance_tags, next_call};
use crate::inventory::VISIBLE_WITHIN_MS;
use crate::leader::{Leader, lock};
use crate::ledger::{Failure, LaunchRecord, LedgerError, Move};
use crate::nodeclass::Resolved;

pub async fn attempt(
    leader: &Leader,
    launch: &LaunchRecord,
    heard: &mut Heard,
) -> Result<Next, LedgerError> {
    let Some(class) = leader.class_of(launch) else { return Ok(Next::Later) };
    if leader.market.borrow().listing.types.is_empty() {
        // A new leader has not read yet what is sold: that is no shortage.
        return Ok(Next::Later);
    }
    if let Some((condition, problem)) = class.conditions.obstacle() {
        let failure = Failure {
            reason: "NODE_CLASS_NOT_READY".to_owned(),
            message: format!("{condition}: {}", problem.message),
            retryable: false,
        };
        return fail(leader, launch, failure).await;
    }
    let call = match plan_call(leader, launch, &class) {
        Ok(call) => call,
        // An earlier call may have got through: until its instance must show, nothing has failed.
        Err(_) if may_yet_show(leader, launch) => return Ok(Next::Later),
        Err(failure) => return fail(leader, launch, heard.explain(failure)).await,
    };
    let templates = match templates(leader, launch, &class, &call).await {
        Ok(templates) => templates,
        Err(TemplateError::Blueprint(failure)) => return fail(leader, launch, failure).await,
        Err(TemplateError::Cloud(error)) => {
            return outcome::template_failed(leader, launch, &class, &error).await;
        }
    };
    let Some(asked) = ask(leader, launch, call.capacity_type).await? else {
        return Ok(Next::Later);
    };
    let order = order(&asked, &class, &call, templates);
    let answer = create_fleet(leader, &asked, &order).await;
    let deal = outcome::Deal { launch: &asked, class: &class, order: &order };
    outcome::settle(leader, &deal, answer, heard).await
}

fn may_yet_show(leader: &Leader, launch: &LaunchRecord) -> bool {
    launch.outcome_unknown() && leader.now_ms() < launch.changed_ms + VISIBLE_WITHIN_MS
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

/// Records that EC2 is asked; a call with an unknown answer is recorded already. None when the
/// launch moved meanwhile.
async fn ask(
    leader: &Leader,
    launch: &LaunchRecord,
    capacity_type: CapacityType,
) -> Result<Option<LaunchRecord>, LedgerError> {
    if !launch.outcome_unknown() {
        record(leader, launch, Move::Ask(capacity_type)).await?;
    }
    let now = leader.record(launch.launch_id()).map(|record| (*record).clone());
    Ok(now.filter(LaunchRecord::outcome_unknown))
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
        client_token: launch.client_token(),
        capacity_type: call.capacity_type,
        offers,
        tags: instance_tags(class, launch),
    }
}

/// The call, as a span of the trace that asked for the launch.
async fn create_fleet(
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
    let answer = leader.cloud().launch(order).instrument(span.clone()).await;
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
