//! Whose the instances of a call are.
//!
//! Invariant: decided once, in one edit of the ledger, when the whole outcome of the call is known;
//! shown and tagged after it.

use longshore_proto::capacity::v1::InstancePhase;

use super::call::FleetCall;
use super::{Heard, Members, Next};
use crate::cloud::{Class, FleetInstance, FleetOutcome, Instance};
use crate::leader::Leader;
use crate::ledger::{Answer, Awarded, Book, Draft, LedgerError, award};
use crate::nodeclass::Resolved;
use crate::wire;

/// EC2 has launched as many as were asked for, or fewer: the rest is asked for again, without what
/// was not to be had.
pub async fn launched(
    leader: &Leader,
    call: &FleetCall<'_>,
    outcome: FleetOutcome,
    heard: &mut Heard,
) -> Result<Next, LedgerError> {
    let mut instances: Vec<_> =
        outcome.bought.iter().map(|bought| fresh_instance(leader, call, bought)).collect();
    instances.sort_by(|one, other| one.instance_id.cmp(&other.instance_id));
    leader.drawn(instances.iter().map(|instance| instance.reservation_id.as_str()));
    leader.inventory.send_modify(|inventory| {
        instances.iter().for_each(|instance| inventory.bought(instance.clone()));
    });
    if call.members.len() == 1 {
        // Shown first: whoever sees the launch launched finds its instance. Of several it is not
        // known yet whose each is.
        instances.iter().for_each(|instance| wire::show_instance(&leader.board, instance));
    }
    let answer = Answer {
        instance_ids: instances.into_iter().map(|instance| instance.instance_id).collect(),
        ec2_request_id: outcome.request_id,
    };
    let awarded = decide(leader, &call.order.client_token, call.members, answer).await?;
    if let Some(class) = call.class {
        leader.fault_over(class);
    }
    if awarded.refused.is_empty() {
        return Ok(Next::Done);
    }
    let said: Vec<_> = outcome.shortages.into_iter().map(|shortage| shortage.error).collect();
    let slow = said.iter().any(|error| matches!(error.class, Class::Throttled | Class::Unknown));
    heard.0.extend(said);
    Ok(if slow { Next::Later } else { Next::Again })
}

/// What a look-up found of a call is all that came of it.
pub async fn adopt(
    leader: &Leader,
    members: &Members,
    found: &[Instance],
) -> Result<Next, LedgerError> {
    let mut found: Vec<_> = found.iter().collect();
    // Of those that have ended already somebody has to be told too.
    found.sort_by_key(|instance| (!instance.alive(), &instance.instance_id));
    let answer = Answer {
        instance_ids: found.into_iter().map(|instance| instance.instance_id.clone()).collect(),
        ec2_request_id: String::new(),
    };
    let token = members.first().map(|launch| launch.client_token()).unwrap_or_default();
    let awarded = decide(leader, &token, members, answer).await?;
    Ok(if awarded.refused.is_empty() { Next::Done } else { Next::Again })
}

async fn decide(
    leader: &Leader,
    token: &str,
    members: &Members,
    answer: Answer,
) -> Result<Awarded, LedgerError> {
    let token = token.to_owned();
    let ids: Vec<_> = members.iter().map(|launch| launch.launch_id().to_owned()).collect();
    let now_ms = leader.now_ms();
    let edit =
        move |book: &Book, draft: &mut Draft| award(book, draft, (&token, &ids), &answer, now_ms);
    let (awarded, _) = leader.ledger.edit(None, edit).await?;
    let (launches, instances): (Vec<_>, Vec<_>) = awarded.launched.iter().cloned().unzip();
    let mut claimed = Vec::new();
    leader.inventory.send_modify(|inventory| {
        claimed = inventory.claimed(&leader.ledger.book(), &instances);
    });
    leader.board.forget(awarded.dropped.clone(), Vec::new());
    claimed.iter().for_each(|instance| wire::show_instance(&leader.board, instance));
    for record in launches.iter().filter_map(|id| leader.record(id)) {
        leader.events().bought(&record);
    }
    leader.look.notify_one();
    Ok(awarded)
}

/// The instance as far as it is known before EC2 lists it.
fn fresh_instance(leader: &Leader, call: &FleetCall<'_>, bought: &FleetInstance) -> Instance {
    let zones = call.class.map(Resolved::zones).unwrap_or_default();
    Instance {
        phase: InstancePhase::Pending,
        instance_type: bought.instance_type.clone(),
        zone: bought.zone.clone(),
        zone_id: zones.get(bought.zone.as_str()).map_or(String::new(), |id| (*id).to_owned()),
        capacity_type: call.order.capacity_type,
        reservation_id: call.order.reservation_of(&bought.instance_type, &bought.zone).to_owned(),
        image_id: image_of(leader, call, &bought.instance_type),
        launch_ms: leader.now_ms(),
        tags: call.order.tags.clone(),
        ..Instance::unseen(&bought.instance_id)
    }
}

/// The image that the instance boots: it is written on the claim before EC2 lists the instance. A
/// repeated call may be of an earlier day, with other images.
fn image_of(leader: &Leader, call: &FleetCall<'_>, instance_type: &str) -> String {
    let market = leader.market.borrow();
    let facts = market.listing.types.get(instance_type);
    let class = call.class.filter(|_| !call.repeated);
    let image = class.zip(facts).and_then(|(class, facts)| class.image_for(facts));
    image.map_or_else(String::new, |image| image.id.clone())
}
