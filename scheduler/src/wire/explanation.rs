//! Explanations on their way out: why pods go where they go, and what one more would cost.

use longshore_core::answer::{Candidate, Plan, Target};
use longshore_core::explain::{Asked, Choice, OneMore, Purchase, choices, one_more};
use longshore_core::ids::PodUid;
use longshore_core::question::PlanInput;
use longshore_proto::types::v1;

use super::plan::{candidate, reason};

/// Explains pods by a plan that was made from this input, and writes it under the name that they
/// were asked about by. None when nobody knows them.
#[must_use]
pub fn of(input: &PlanInput, plan: &Plan, name: &str, asked: Asked<'_>) -> Option<v1::Explanation> {
    let shape = match asked {
        Asked::Pod(uid) => &input.world.pods.get(uid)?.shape,
        Asked::Shape(shape) => shape,
    };
    input.world.shapes.get(shape)?;
    Some(v1::Explanation {
        pod: name.to_owned(),
        choices: choices(input, plan, asked).iter().map(choice).collect(),
        one_more: one_more(input, plan, shape).as_ref().map(more),
    })
}

/// Explains the pods that clients ask about: UIDs, and shape ids of counted pods.
#[must_use]
pub fn all(input: &PlanInput, plan: &Plan, names: &[String]) -> Vec<v1::Explanation> {
    let explained = names.iter().filter_map(|name| {
        let (uid, shape) = (PodUid::new(name), name.as_str().into());
        let is_pod = input.world.pods.contains_key(&uid);
        let asked = if is_pod { Asked::Pod(&uid) } else { Asked::Shape(&shape) };
        of(input, plan, name, asked)
    });
    explained.collect()
}

fn choice(choice: &Choice) -> v1::Choice {
    let place = match &choice.target {
        Target::Node(node) => v1::choice::Place::Node(node.to_string()),
        Target::Claim(claim) => v1::choice::Place::Claim(claim.to_string()),
        Target::New(at) => v1::choice::Place::Planned(u32::try_from(*at).unwrap_or(u32::MAX)),
    };
    let shares = choice.shares.iter().map(|share| v1::ResourceShare {
        resource: share.resource.clone(),
        requested: share.requested,
        allocatable: share.allocatable,
    });
    let company = choice.company.iter().map(|company| v1::Company {
        owner: company.owner.clone(),
        namespace: company.namespace.clone(),
        pods: company.pods,
    });
    v1::Choice {
        pods: choice.pods,
        nodes: choice.nodes,
        place: Some(place),
        bound: choice.bound,
        admitting_nodes: choice.admitting_nodes,
        shares: shares.collect(),
        company: company.collect(),
        node_price_micro_usd_per_hour: choice.node_price_micro_usd_per_hour.unwrap_or(0),
        pod_price_micro_usd_per_hour: choice.pod_price_micro_usd_per_hour.unwrap_or(0),
        purchase: choice.purchase.as_ref().map(purchase),
    }
}

fn purchase(purchase: &Purchase) -> v1::Purchase {
    let narrowings = purchase.narrowings.iter().map(|step| v1::Narrowing {
        code: step.by.code().to_owned(),
        message: step.by.to_string(),
        types: step.types,
        offers: step.offers,
    });
    v1::Purchase {
        pool: purchase.pool.to_string(),
        chosen: Some(candidate(&purchase.chosen)),
        narrowings: narrowings.collect(),
        next: candidates(&purchase.next),
        alone: purchase.alone.as_ref().map(candidate),
    }
}

fn more(more: &OneMore) -> v1::OneMore {
    let host = more.existing.as_ref().and_then(Target::name);
    v1::OneMore {
        price_micro_usd_per_hour: more.price_micro_usd_per_hour,
        host: host.unwrap_or_default().to_owned(),
        added: candidates(&more.added),
        dropped: candidates(&more.dropped),
        refused: more.refused.as_ref().map(reason),
    }
}

fn candidates(all: &[Candidate]) -> Vec<v1::Candidate> {
    all.iter().map(candidate).collect()
}
