//! Claims whose nodes are on their way.
//!
//! Invariant: everything that a claim may still become is a form of it. Claims that may become the
//! same share their forms: a burst has hundreds of these, and each has a form for every offering
//! that it may be.

use std::collections::BTreeSet;
use std::rc::Rc;

use crate::answer::Target;
use crate::check::nodes::{Form, NodeAfter, form, settle};
use crate::question::PlanInput;
use crate::vocabulary::catalogue::sold;
use crate::vocabulary::catalogue::{Catalogue, InstanceType, Offering};
use crate::world::claim::NodeClaim;

/// The claims as nodes.
pub(super) fn all<'a>(
    input: &PlanInput,
    claims: impl Iterator<Item = &'a std::sync::Arc<NodeClaim>>,
) -> Vec<(Target, NodeAfter<'a>)> {
    let mut known: Vec<(&NodeClaim, Rc<[Form]>)> = Vec::new();
    let node = |claim: &'a std::sync::Arc<NodeClaim>| {
        let same = known.iter().find(|(other, _)| claim.may_become_the_same(other));
        let forms = same.map(|(_, forms)| Rc::clone(forms)).unwrap_or_else(|| {
            let forms = forms_of(input, claim);
            known.push((claim, Rc::clone(&forms)));
            forms
        });
        (Target::Claim(claim.name.clone()), in_flight(claim, forms))
    };
    claims.map(node).collect()
}

/// Everything that a claim may still become.
fn forms_of(input: &PlanInput, claim: &NodeClaim) -> Rc<[Form]> {
    let mut forms = Vec::new();
    let pool = input.world.pools.get(&claim.pool);
    if let Some(catalogue) = pool.and_then(|pool| input.catalogue_of(pool)) {
        for (instance, offering) in outcomes(claim, catalogue) {
            forms.push(form(instance, offering, &claim.labels));
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
        frees: BTreeSet::new(),
        moved_to: false,
        requests: None,
        stands_by: false,
        takes_pods: !claim.is_leaving(),
        leaves: claim.is_leaving(),
        is_disrupted: false,
    }
}

/// What was launched, or everything on sale that the claim allows.
fn outcomes<'c>(
    claim: &NodeClaim,
    catalogue: &'c Catalogue,
) -> Vec<(&'c InstanceType, &'c Offering)> {
    if let Some(name) = &claim.instance_type {
        let launched = |offering: &&Offering| {
            claim.zone.as_ref().is_none_or(|zone| *zone == offering.zone)
                && claim.capacity_type.is_none_or(|kind| kind == offering.capacity_type)
                && claim.runs_in(offering.reservation_id())
        };
        let of = |instance: &'c InstanceType| instance.offerings.iter().map(move |o| (instance, o));
        let sold = catalogue.types.get(name).into_iter().flat_map(of);
        return sold.filter(|(_, offering)| launched(offering)).collect();
    }
    let (decided, dearest) = (sold::decided(catalogue), claim.max_price_micro_usd_per_hour);
    let may_be = |(instance, offering): &(&InstanceType, &Offering)| {
        offering.available
            && dearest.is_none_or(|dearest| offering.price_micro_usd_per_hour <= dearest)
            && sold::meets((instance, offering), &decided, &claim.requirements)
    };
    let fitting = catalogue.types.values().filter(|i| claim.requests.fits_in(&i.allocatable()));
    let sold = fitting.flat_map(|i| i.offerings.iter().map(move |offering| (i, offering)));
    sold.filter(may_be).collect()
}
