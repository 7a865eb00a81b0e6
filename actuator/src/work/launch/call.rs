//! The call itself, as it shows in traces.
//!
//! Invariant: whichever launch one begins with, its trace leads to the request that EC2 got: the
//! call is in the trace of the first, and each other trace has a span of its own that is linked
//! with it, both ways.

use std::time::Duration;

use longshore_runtime::propagate;
use tokio::time::{Instant, timeout};
use tracing::{Instrument, Span, field};

use super::Members;
use crate::cloud::{CloudError, FleetInstance, FleetOutcome, Instance, Order};
use crate::leader::Leader;
use crate::nodeclass::Resolved;

/// Longest time for a call; the client library tries it several times within.
const ANSWER_WITHIN: Duration = Duration::from_secs(120);

/// What was asked for whom.
pub struct FleetCall<'a> {
    pub members: &'a Members,
    /// None when the class is not resolved at present.
    pub class: Option<&'a Resolved>,
    pub order: &'a Order,
    /// What a look-up found of it, when that is less than was asked for.
    pub found: &'a [Instance],
    /// True when the same call was made before, and its answer never came.
    pub repeated: bool,
    /// When EC2 answered: what is concluded may come later.
    pub answered: Instant,
}

/// Asks EC2 for what is recorded.
pub async fn create_fleet(
    leader: &Leader,
    members: &Members,
    order: &Order,
) -> Result<FleetOutcome, CloudError> {
    let (span, shared) = spans(members, order);
    let asking = timeout(ANSWER_WITHIN, leader.cloud().launch(order)).instrument(span.clone());
    let answer = asking.await.unwrap_or_else(|_| Err(CloudError::silent("ec2:CreateFleet")));
    annotate(&span, &answer);
    let request_id = match &answer {
        Ok(outcome) => &outcome.request_id,
        Err(error) => &error.request_id,
    };
    for span in [span].iter().chain(&shared) {
        span.record("aws.request_id", request_id);
    }
    answer
}

/// The span of the call, and one in each other trace that asked for some of it.
fn spans(members: &Members, order: &Order) -> (Span, Vec<Span>) {
    let first = members.first();
    let span = tracing::info_span!(
        "ec2.create_fleet",
        launch_id = first.map_or("", |launch| launch.launch_id()),
        claim = first.map_or("", |launch| launch.claim()),
        attempt = first.map_or(0, |launch| launch.attempts),
        client_token = order.client_token,
        capacity_type = order.capacity_type.as_str_name(),
        ec2.asked = order.count,
        ec2.bought = field::Empty,
        aws.request_id = field::Empty,
        ec2.instance_id = field::Empty,
        ec2.instance_type = field::Empty,
        ec2.zone = field::Empty,
    );
    let asked_by = members.iter().filter_map(|launch| launch.launch.as_ref());
    let mut traces: Vec<_> = asked_by.map(|launch| launch.traceparent.as_str()).collect();
    let parent = traces.first().copied().unwrap_or_default();
    propagate::set_parent(&span, parent);
    traces.retain(|trace| *trace != parent);
    traces.sort_unstable();
    traces.dedup();
    let call = propagate::traceparent_of(&span);
    let shared = traces.into_iter().map(|trace| {
        propagate::add_link(&span, trace);
        let shared = tracing::info_span!(
            "ec2.create_fleet_shared",
            client_token = order.client_token,
            aws.request_id = field::Empty,
        );
        propagate::set_parent(&shared, trace);
        propagate::add_link(&shared, &call);
        shared
    });
    let shared = shared.collect();
    (span, shared)
}

fn annotate(span: &Span, answer: &Result<FleetOutcome, CloudError>) {
    let Ok(outcome) = answer else { return };
    span.record("ec2.bought", outcome.bought.len());
    if outcome.bought.is_empty() {
        return;
    }
    let of = |part: fn(&FleetInstance) -> &str| {
        let mut all: Vec<_> = outcome.bought.iter().map(part).collect();
        all.sort_unstable();
        all.dedup();
        all.join(" ")
    };
    span.record("ec2.instance_id", of(|bought| &bought.instance_id));
    span.record("ec2.instance_type", of(|bought| &bought.instance_type));
    span.record("ec2.zone", of(|bought| &bought.zone));
}
