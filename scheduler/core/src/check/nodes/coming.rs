//! Claims whose nodes are on their way.
//!
//! Invariant: everything that a claim may still become is a form of it. Claims that may become the same share
//! their forms: a burst has hundreds of these, and each has a form for every offering that it may be.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::{Form, NodeAfter, form, settle};
use crate::plan::{PlanInput, Target};
use crate::vocabulary::catalogue::{InstanceType, Offering};
use crate::vocabulary::sold;
use crate::world::claim::NodeClaim;

/// The claims as nodes.
pub(super) fn all<'a>(
    input: &PlanInput,
    claims: impl Iterator<Item = &'a std::sync::Arc<NodeClaim>>,
) -> Vec<(Target, NodeAfter<'a>)> {
    let mut known: Vec<(&NodeClaim, Rc<[Form]>)> = Vec::new();
    let node = |claim: &'a std::sync::Arc<NodeClaim>| {
        let same = known.iter().find(|(other, _)| may_become_the_same(claim, other));
        let forms = same.map(|(_, forms)| Rc::clone(forms)).unwrap_or_else(|| {
            let forms = forms_of(input, claim);
            known.push((claim, Rc::clone(&forms)));
            forms
        });
        (Target::Claim(claim.name.clone()), in_flight(claim, forms))
    };
    claims.map(node).collect()
}

/// True when two claims that are not launched may become the same things.
fn may_become_the_same(one: &NodeClaim, other: &NodeClaim) -> bool {
    one.instance_type.is_none()
        && other.instance_type.is_none()
        && one.pool == other.pool
        && one.max_price_micro_usd_per_hour == other.max_price_micro_usd_per_hour
        && one.requests == other.requests
        && one.allocatable == other.allocatable
        && one.labels == other.labels
        && one.requirements == other.requirements
}

/// Everything that a claim may still become.
fn forms_of(input: &PlanInput, claim: &NodeClaim) -> Rc<[Form]> {
    let mut forms = Vec::new();
    let pool = input.world.pools.get(&claim.pool);
    if let Some(catalogue) = pool.and_then(|pool| input.catalogue_of(pool)) {
        let decided = sold::decided(catalogue);
        for instance in catalogue.types.values() {
            for offering in instance.offerings.iter().filter(|o| may_be(claim, instance, o)) {
                if claim.instance_type.is_none()
                    && !sold::meets((instance, offering), &decided, &claim.requirements)
                {
                    continue;
                }
                forms.push(form(
                    instance,
                    offering.zone.as_str(),
                    offering.capacity_type,
                    &claim.labels,
                ));
            }
        }
    }
    for form in &mut forms {
        let known = !claim.allocatable.is_zero();
        if known {
            form.allocatable = claim.allocatable.raised_to(&claim.requests);
        }
    }
    if forms.is_empty() {
        let allocatable = claim.allocatable.raised_to(&claim.requests);
        let mut form = Form { labels: claim.labels.clone(), allocatable };
        settle(&mut form);
        forms.push(form);
    }
    forms.into()
}

fn in_flight<'a>(claim: &NodeClaim, forms: Rc<[Form]>) -> NodeAfter<'a> {
    NodeAfter {
        target: Target::Claim(claim.name.clone()),
        name: format!("claim {}", claim.name),
        forms,
        taints: claim.taints.clone(),
        pods: Vec::new(),
        arrived: BTreeSet::new(),
        ending: BTreeSet::new(),
        requests: None,
        stands_by: false,
        takes_pods: !claim.is_leaving(),
        leaves: claim.is_leaving(),
        is_disrupted: false,
    }
}

fn may_be(claim: &NodeClaim, instance: &InstanceType, offering: &Offering) -> bool {
    if let Some(name) = &claim.instance_type {
        return *name == instance.name
            && claim.zone.as_ref().is_none_or(|zone| *zone == offering.zone)
            && claim.capacity_type.is_none_or(|kind| kind == offering.capacity_type);
    }
    let dearest = claim.max_price_micro_usd_per_hour;
    offering.available
        && dearest.is_none_or(|dearest| offering.price_micro_usd_per_hour <= dearest)
        && claim.requests.fits_in(&instance.allocatable())
}
