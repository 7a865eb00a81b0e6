//! Why pods go where a plan puts them, for people and programs.
//!
//! Invariant: says what the planner said; only names of places and signs of estimates are added.

mod text;

use longshore_proto::types::v1 as wire;
use longshore_proto::types::v1::choice::Place as WirePlace;
use serde::Serialize;

use super::{Context, Offering, Reason};

/// The places of equal pods, and the price of one more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Why {
    /// The places, those with most pods first.
    pub places: Vec<Place>,
    /// What one more costs; absent for pods that belong to their node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one_more: Option<OneMore>,
}

/// A place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Pods asked about that go there, on all equal nodes together.
    pub pods: i64,
    /// Equal nodes.
    pub nodes: i64,
    /// Where, in words.
    pub place: String,
    /// True when they run there already.
    pub bound: bool,
    /// Nodes there are or on their way that would admit the pods.
    pub admitting_nodes: i64,
    /// What one pod takes, the largest part first.
    pub shares: Vec<Share>,
    /// Price of each node; 0 when it is not known.
    pub node_price_micro_usd_per_hour: i64,
    /// One pod's part of it.
    pub pod_price_micro_usd_per_hour: i64,
    /// Other pods on each node, as `3 Deployment/web`.
    pub company: Vec<String>,
    /// Pool that the node is bought for; empty when none is.
    pub pool: String,
    /// What is bought.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chosen: Option<Offering>,
    /// What narrowed the choice, in order.
    pub narrowings: Vec<Step>,
    /// The next best.
    pub next: Vec<Offering>,
    /// Cheapest node for one such pod alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alone: Option<Offering>,
}

/// What a pod takes of a resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Share {
    /// Resource name.
    pub resource: String,
    /// What the pod requests.
    pub requested: i64,
    /// What the node has.
    pub allocatable: i64,
}

/// A constraint and what it leaves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Stable name.
    pub code: String,
    /// For people.
    pub message: String,
    /// Instance types that are left.
    pub types: i64,
    /// Offers that are left.
    pub offers: i64,
}

/// What one more pod costs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OneMore {
    /// What all nodes cost more.
    pub price_micro_usd_per_hour: i64,
    /// The same for a month of 730 hours.
    pub price_micro_usd_per_month: i64,
    /// Node that has room for it; empty when something is bought.
    pub host: String,
    /// Nodes launched besides.
    pub added: Vec<Offering>,
    /// Nodes no longer launched.
    pub dropped: Vec<Offering>,
    /// Why it has no place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<Reason>,
}

/// Hours that a month is counted as, the way AWS counts them: a year's by twelve.
const HOURS_PER_MONTH: i64 = 730;

impl Why {
    /// What was said about a plan, with signs of estimated prices.
    #[must_use]
    pub fn of(told: &wire::Explanation, context: &Context<'_>) -> Self {
        Self::told(told, |pool, candidate| context.offering(pool, candidate))
    }

    /// What a scheduler said.
    #[must_use]
    pub fn live(told: &wire::Explanation) -> Self {
        Self::told(told, |_, candidate| Offering::from(candidate))
    }

    fn told(
        told: &wire::Explanation,
        offering: impl Fn(&str, &wire::Candidate) -> Offering,
    ) -> Self {
        let purchases = told.choices.iter().filter_map(|choice| choice.purchase.as_ref());
        let pool = purchases.map(|purchase| purchase.pool.clone()).next().unwrap_or_default();
        Self {
            places: told.choices.iter().map(|choice| Place::of(choice, &offering)).collect(),
            one_more: told.one_more.as_ref().map(|more| OneMore {
                price_micro_usd_per_hour: more.price_micro_usd_per_hour,
                price_micro_usd_per_month: more.price_micro_usd_per_hour * HOURS_PER_MONTH,
                host: more.host.clone(),
                added: more.added.iter().map(|node| offering(&pool, node)).collect(),
                dropped: more.dropped.iter().map(|node| offering(&pool, node)).collect(),
                refused: more.refused.as_ref().map(Reason::from),
            }),
        }
    }
}

impl Place {
    fn of(choice: &wire::Choice, offering: &impl Fn(&str, &wire::Candidate) -> Offering) -> Self {
        let shares = choice.shares.iter().map(|share| Share {
            resource: share.resource.clone(),
            requested: share.requested,
            allocatable: share.allocatable,
        });
        let company = choice.company.iter().map(|other| format!("{} {}", other.pods, other.owner));
        let place = match &choice.place {
            Some(WirePlace::Node(node)) => format!("node {node}"),
            Some(WirePlace::Claim(claim)) => {
                format!("the node that NodeClaim {claim} is waiting for")
            }
            Some(WirePlace::Planned(_)) | None => "new nodes".to_owned(),
        };
        let here = Self {
            pods: choice.pods,
            nodes: choice.nodes,
            place,
            bound: choice.bound,
            admitting_nodes: choice.admitting_nodes,
            shares: shares.collect(),
            node_price_micro_usd_per_hour: choice.node_price_micro_usd_per_hour,
            pod_price_micro_usd_per_hour: choice.pod_price_micro_usd_per_hour,
            company: company.collect(),
            ..Self::default()
        };
        match &choice.purchase {
            Some(purchase) => here.bought(purchase, |node| offering(&purchase.pool, node)),
            None => here,
        }
    }

    fn bought(
        self,
        purchase: &wire::Purchase,
        offering: impl Fn(&wire::Candidate) -> Offering,
    ) -> Self {
        let steps = purchase.narrowings.iter().map(|step| Step {
            code: step.code.clone(),
            message: step.message.clone(),
            types: step.types,
            offers: step.offers,
        });
        Self {
            pool: purchase.pool.clone(),
            chosen: purchase.chosen.as_ref().map(&offering),
            narrowings: steps.collect(),
            next: purchase.next.iter().map(&offering).collect(),
            alone: purchase.alone.as_ref().map(&offering),
            ..self
        }
    }
}
