//! One attempt: class, call, templates, record, ask.
//!
//! Invariant: nothing is asked of EC2 for a class that is not in order.

use std::collections::BTreeMap;
use std::sync::Arc;

use longshore_runtime::planted;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::call::{FleetCall, create_fleet};
use super::patience::overdue;
use super::{Heard, Members, Next, fail, note, outcome, resume};
use crate::cloud::{CloudError, FleetOffer, Order, TemplateOffers};
use crate::ec2::blueprint;
use crate::ec2::request::{Basis, Call, Source, batch_tags, instance_tags, next_call};
use crate::leader::{Leader, lock};
use crate::ledger::{
    BatchRecord, Book, Draft, Failure, LaunchRecord, LedgerError, Move, OrderRecord, batch_id,
};
use crate::nodeclass::{LOOKUP_FAILED, Resolved};

pub async fn attempt(
    leader: &Leader,
    members: &Members,
    heard: &mut Heard,
) -> Result<Next, LedgerError> {
    let Some(first) = members.first() else { return Ok(Next::Done) };
    if first.outcome_unknown() {
        return resume::resume(leader, members, heard).await;
    }
    let late = |launch: &Arc<LaunchRecord>| Some((Arc::clone(launch), overdue(leader, launch)?));
    if let Some((launch, failure)) = members.iter().find_map(late) {
        // The others are tried without it.
        fail(leader, &[launch], failure).await?;
        return Ok(Next::Again);
    }
    let class = match ready_class(leader, first) {
        Ok(Some(class)) => class,
        Ok(None) => return Ok(Next::Later),
        Err(failure) => return fail(leader, members, failure).await,
    };
    let call = match plan_call(leader, first, &class) {
        Ok(call) => call,
        Err(failure) => return fail(leader, members, heard.explain(failure)).await,
    };
    let templates = match templates(leader, first, &class, &call).await {
        Ok(templates) => templates,
        Err(TemplateError::Blueprint(failure)) => return fail(leader, members, failure).await,
        Err(TemplateError::Cloud(error)) => {
            return outcome::template_failed(leader, members, &class, &error).await;
        }
    };
    let order = order(members, &class, &call, templates);
    if !ask(leader, members, &order).await? {
        return Ok(Next::Again);
    }
    let asked = members.iter().filter_map(|launch| leader.record(launch.launch_id()));
    let asked: Vec<_> = asked.collect();
    let answer = create_fleet(leader, &asked, &order).await;
    let call = FleetCall {
        members: &asked,
        class: Some(&class),
        order: &order,
        found: &[],
        repeated: false,
        answered: Instant::now(),
    };
    outcome::settle(leader, &call, answer, heard).await
}

/// The node class, when something can be launched from it; none when that is not known yet.
fn ready_class(leader: &Leader, launch: &LaunchRecord) -> Result<Option<Arc<Resolved>>, Failure> {
    let Some(class) = leader.class_of(launch) else { return Ok(None) };
    if leader.market.borrow().listing.types.is_empty() {
        // A new leader has not read yet what is sold: that is no shortage.
        return Ok(None);
    }
    let Some((condition, problem)) = class.conditions.obstacle() else { return Ok(Some(class)) };
    if problem.reason == LOOKUP_FAILED && !planted::is("S13b") {
        // AWS did not answer about the class: that says nothing about the class.
        return Ok(None);
    }
    Err(Failure {
        reason: "NODE_CLASS_NOT_READY".to_owned(),
        message: format!("{condition}: {}", problem.message),
        retryable: false,
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

/// Template names by what they launch, made where they are missing.
async fn templates(
    leader: &Leader,
    launch: &LaunchRecord,
    class: &Resolved,
    call: &Call,
) -> Result<BTreeMap<Source, String>, TemplateError> {
    let wanted = launch.launch.clone().unwrap_or_default();
    let mut names = BTreeMap::new();
    for source in call.offers.keys() {
        if !class.class.launch_template.is_empty() {
            names.insert(source.clone(), class.class.launch_template.clone());
            continue;
        }
        let template = blueprint::template(class, &wanted, source).map_err(|error| {
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
        names.insert(source.clone(), template.name);
    }
    Ok(names)
}

fn use_template(leader: &Leader, name: &str) -> Arc<OnceCell<()>> {
    let mut templates = lock(&leader.templates);
    let known = templates.entry(name.to_owned()).or_default();
    known.used_ms = leader.now_ms();
    Arc::clone(&known.made)
}

/// Records what EC2 is asked for, of all launches at once. False when one of them has moved
/// meanwhile: then nothing is recorded, and nothing may be asked.
async fn ask(leader: &Leader, members: &Members, order: &Order) -> Result<bool, LedgerError> {
    let expected: Vec<_> =
        members.iter().map(|launch| (launch.launch_id().to_owned(), launch.attempts)).collect();
    let (order, now_ms) = (order.clone(), leader.now_ms());
    let edit = move |book: &Book, draft: &mut Draft| {
        let unmoved = |(id, attempts): &(String, u32)| {
            let now = draft.launch(book, id);
            now.is_some_and(|now| now.may_be_asked() && now.attempts == *attempts)
        };
        let unmoved = expected.iter().all(unmoved);
        if unmoved {
            note_call(book, draft, &expected, &order, now_ms);
        }
        unmoved
    };
    let (asked, _) = leader.ledger.edit(None, edit).await?;
    let now = Instant::now();
    note(leader, members, |pace| pace.asked = now);
    Ok(asked)
}

fn note_call(
    book: &Book,
    draft: &mut Draft,
    members: &[(String, u32)],
    order: &Order,
    now_ms: i64,
) {
    let said = OrderRecord::from(order);
    let step = match members {
        [_] => Move::Ask(order.capacity_type, Box::new(said)),
        many => {
            let batch = BatchRecord {
                batch_id: order.client_token.clone(),
                capacity_type: order.capacity_type.into(),
                order: Some(said),
                launch_ids: many.iter().map(|(id, _)| id.clone()).collect(),
                made_ms: now_ms,
            };
            draft.batches.insert(order.client_token.clone(), Some(Arc::new(batch)));
            Move::AskTogether(order.capacity_type, order.client_token.clone())
        }
    };
    for (id, _) in members {
        // Legal: none has moved.
        let _ = draft.step(book, id, &step, now_ms);
    }
}

fn order(
    members: &Members,
    class: &Resolved,
    call: &Call,
    templates: BTreeMap<Source, String>,
) -> Order {
    let mut by_template: BTreeMap<(String, String), Vec<FleetOffer>> = BTreeMap::new();
    for (source, offers) in &call.offers {
        let name = templates.get(source).cloned().unwrap_or_default();
        let template = (name, source.reservation_id.clone());
        by_template.entry(template).or_default().extend(offers.iter().cloned());
    }
    let offers = by_template
        .into_iter()
        .map(|((template, reservation_id), mut offers)| {
            offers.sort_by_key(|offer| offer.rank);
            TemplateOffers { template, reservation_id, offers }
        })
        .collect();
    let (client_token, tags) = token_and_tags(members, class);
    let count = u32::try_from(members.len()).unwrap_or(u32::MAX);
    Order { client_token, capacity_type: call.capacity_type, offers, count, tags }
}

/// One launch is named by its own id from the beginning; several share what they can.
fn token_and_tags(members: &Members, class: &Resolved) -> (String, BTreeMap<String, String>) {
    match members {
        [launch] => {
            let token = format!("{}-{}", launch.launch_id(), launch.attempts + 1);
            (token, instance_tags(class, launch))
        }
        many => {
            let id = batch_id(many.iter().map(AsRef::as_ref));
            let wanted = many.first().and_then(|launch| launch.launch.as_ref());
            let tags = batch_tags(class, wanted.map_or("", |launch| &launch.pool), &id);
            (id, tags)
        }
    }
}
