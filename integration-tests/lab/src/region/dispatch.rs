//! From a recognised call to its handler.
//!
//! Invariant: the only tables of APIs are the `APIS` of each service; what none of them names is
//! refused as AWS refuses unknown actions.

use jiff::Timestamp;

use super::calls::CallRecord;
use super::faults::Fault;
use super::wire::{AwsError, Body, Request, Result, Service};
use super::world::{Call, Handler, World};
use super::{ec2, eks, iam, pricing, sqs, ssm, sts};

/// What came of a call.
#[derive(Debug)]
pub struct Answer {
    /// Request id of the reply.
    pub request_id: String,
    /// The reply.
    pub outcome: Result<Body>,
    /// The fault scripted for this call, for the parts that the connection has to act out.
    pub fault: Option<Fault>,
}

/// Every API that is answered here, as calls are logged and faults are scripted: `ec2:CreateFleet`.
pub fn apis() -> impl Iterator<Item = String> {
    Service::ALL.into_iter().flat_map(|service| {
        apis_of(service).iter().map(move |(action, _)| format!("{}:{action}", service.prefix()))
    })
}

/// Takes a call in: faults, throttling, handler, log.
pub fn answer(world: &mut World, request: &Request, now: Timestamp) -> Answer {
    let request_id = world.ids.uuid("request");
    let api = request.api();
    let fault = world.faults.take(&api);
    let outcome = match &fault {
        Some(Fault::Error(error)) => Err(error.clone()),
        Some(Fault::Throttle) => Err(AwsError::throttled(request.service.protocol())),
        Some(Fault::DropBefore) => Err(AwsError::client("ConnectionDropped", "before any effect")),
        Some(Fault::DropAfter | Fault::Slow(_)) | None => {
            throttled(world, request, now).and_then(|()| handle(world, request, now))
        }
    };
    let caller = world.caller(request.service, request.access_key_id.as_deref());
    let target = request.params.text("TargetCapacitySpecification.TotalTargetCapacity");
    world.calls.push(CallRecord {
        api,
        summary: request.summary(),
        request_id: request_id.clone(),
        principal: caller.map(|caller| caller.arn).unwrap_or_default(),
        at: now,
        error: outcome.as_ref().err().map(|error| error.code.clone()),
        client_token: request.params.text("ClientToken").map(str::to_owned),
        instances: target.and_then(|text| text.parse().ok()).unwrap_or_default(),
    });
    Answer { request_id, outcome, fault }
}

/// Runs the handler of a call.
pub fn handle(world: &mut World, request: &Request, now: Timestamp) -> Result<Body> {
    signed_for_here(world, request)?;
    let caller = world.caller(request.service, request.access_key_id.as_deref())?;
    let handler = route(request.service, &request.action).ok_or_else(|| {
        let message = format!("The action {} is not valid for this web service.", request.action);
        AwsError::client("InvalidAction", message)
    })?;
    handler(world, &Call { request, caller: &caller, now })
}

/// Refuses what was signed for another region. IAM and the price list have one home for all
/// regions.
fn signed_for_here(world: &World, request: &Request) -> Result<()> {
    let everywhere = matches!(request.service, Service::Iam | Service::Pricing);
    match &request.signed_region {
        Some(region) if !everywhere && *region != world.config.name => {
            let message = format!("Credential should be scoped to a valid region, not '{region}'.");
            Err(AwsError::with_status(403, "SignatureDoesNotMatch", message))
        }
        Some(_) | None => Ok(()),
    }
}

fn throttled(world: &mut World, request: &Request, now: Timestamp) -> Result<()> {
    let api = request.api();
    match world.config.rate_limits.get(&api).copied() {
        Some(limit) if !world.buckets.take(&api, limit, now) => {
            Err(AwsError::throttled(request.service.protocol()))
        }
        Some(_) | None => Ok(()),
    }
}

fn route(service: Service, action: &str) -> Option<Handler> {
    let mut apis = apis_of(service).iter();
    apis.find(|(name, _)| *name == action).map(|(_, handler)| *handler)
}

const fn apis_of(service: Service) -> &'static [(&'static str, Handler)] {
    match service {
        Service::Ec2 => ec2::APIS,
        Service::Iam => iam::profiles::APIS,
        Service::Sts => sts::APIS,
        Service::Sqs => sqs::APIS,
        Service::Ssm => ssm::APIS,
        Service::Pricing => pricing::APIS,
        Service::Eks => eks::APIS,
    }
}
