//! Trimming: pods whose rule no longer holds because others found no place are taken back.
//!
//! Invariant: when this ends, every rule over wide domains holds for what is placed, whatever
//! limits or missing capacity did to the rest. Nothing is trimmed when everything found a place,
//! unless nodes for others have brought a new domain.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::Model;
use crate::offers::priced::PricedOffers;
use crate::offers::priced::min_values;
use crate::pack::problem::vector;
use crate::place::state::{OnExisting, PlanState};
use crate::place::{Bought, Placed};
use crate::reason::Obstacle;
use crate::topology::split_shapes::{Assigned, Refused};
use crate::world::topology::{Group, GroupRule, GroupSpec};

/// A domain with too many pods of some shape.
struct Excess {
    key: String,
    domain: String,
    shape: usize,
    count: i64,
    obstacle: Obstacle,
}

impl Excess {
    /// True when pods with this shape and these domains are among those that are too many.
    fn covers(&self, shape: usize, assigned: &Assigned) -> bool {
        let there = |(key, domain): &(String, String)| *key == self.key && *domain == self.domain;
        shape == self.shape && assigned.iter().any(there)
    }
}

/// Takes back pods until every rule holds.
pub(crate) fn to_rules(
    model: &Model<'_>,
    priced: &PricedOffers<'_, '_>,
    state: &mut PlanState,
    placed: &mut Placed,
) {
    see_new_domains(model, priced, state, placed);
    see_pods_alike(priced, state, placed);
    while let Some(excess) = find(model, state, placed) {
        let count = take_back(model, state, placed, &excess);
        if count == 0 {
            break;
        }
        let Excess { shape, obstacle, .. } = excess;
        placed.unplaced.push(Refused { shape, count, obstacle });
        while let Some(refused) = take_lonely(model, priced, state, placed) {
            placed.unplaced.push(refused);
        }
    }
    give_back(priced, state, placed);
    placed.existing_nodes.retain(|on| on.count > 0);
}

/// Nodes on which nothing is left are not bought: what they drew on limits is free again.
fn give_back(priced: &PricedOffers<'_, '_>, state: &mut PlanState, placed: &mut Placed) {
    let empty = placed.nodes.iter().filter(|node| node.load.is_empty());
    for (node, offer) in empty.filter_map(|node| Some((node, *node.offers.first()?))) {
        let pool_offers = priced.all[offer].pool_offers;
        vector::add(&mut state.limit_sets[pool_offers].left, priced.charge(offer), node.copies);
        if let Some(reservation) = priced.facts[offer].reservation {
            state.limit_sets[reservation].left[0] += node.copies;
        }
    }
    placed.nodes.retain(|node| !node.load.is_empty());
}

/// Nodes bought for others may bring domains that a spread has to level, which does not ask whether
/// its own pods may go there.
fn see_new_domains(
    model: &Model<'_>,
    priced: &PricedOffers<'_, '_>,
    state: &mut PlanState,
    placed: &mut Placed,
) {
    let spreads = state.topology.groups.iter_mut().filter(|group| {
        group.spec.preference.is_none() && group.spec.rule.is_spread() && group.has_owners()
    });
    let planned = planned(placed);
    let mut sold: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for group in spreads {
        let spec = std::rc::Rc::clone(&group.spec);
        group.widen(standing(model, priced, &planned, &spec).into_iter().collect());
        let sold = sold.entry(spec.key.clone()).or_insert_with(|| {
            (0..priced.all.len()).filter_map(|offer| priced.label(offer, &spec.key)).collect()
        });
        let known = sold.iter().all(|domain| group.universe().contains(*domain));
        if !known && is_tight(group) {
            placed.nodes.iter_mut().for_each(|node| keep_out(priced, group, node));
        }
    }
}

/// Offers that the plan counts on.
pub(crate) fn planned(placed: &Placed) -> BTreeSet<usize> {
    placed.nodes.iter().filter_map(|node| node.offers.first().copied()).collect()
}

/// Domains that a spread sees on nodes that are there or planned.
pub(crate) fn standing(
    model: &Model<'_>,
    priced: &PricedOffers<'_, '_>,
    planned: &BTreeSet<usize>,
    spec: &GroupSpec,
) -> BTreeSet<String> {
    let counts = planned.iter().filter(|offer| priced.counts_for(**offer, &spec.filter));
    let new = counts.filter_map(|offer| priced.label(*offer, &spec.key)).map(str::to_owned);
    let counted = priced.places.counted(model, &spec.filter, &spec.key);
    new.chain(counted.iter().cloned()).collect()
}

/// Drops substitutes of a node where a spread would see the pods that it counts on that node, and
/// on the node as planned not, or the other way round.
fn see_pods_alike(priced: &PricedOffers<'_, '_>, state: &PlanState, placed: &mut Placed) {
    let groups = state.topology.groups.iter().map(|group| &group.spec);
    let spreads = groups.filter(|spec| spec.preference.is_none() && spec.rule.is_spread());
    for spec in spreads {
        let holds = |node: &&mut Bought| node.load.iter().any(|(it, _)| spec.members.contains(*it));
        for node in placed.nodes.iter_mut().filter(holds) {
            let Some(first) = node.offers.first().copied() else { continue };
            let seen = priced.counts_for(first, &spec.filter);
            let alike = |offer: &usize| priced.counts_for(*offer, &spec.filter) == seen;
            keep(priced, node, alike);
        }
    }
}

/// Drops all other substitutes, unless `minValues` needs them; whether they were dropped.
fn keep(priced: &PricedOffers<'_, '_>, node: &mut Bought, wanted: impl Fn(&usize) -> bool) -> bool {
    let Some(first) = node.offers.first() else { return true };
    let kept: Vec<usize> = node.offers.iter().copied().filter(wanted).collect();
    let pool_offers = priced.all[*first].pool_offers;
    let may = min_values::obstacle(priced, pool_offers, kept.iter().copied()).is_none();
    if may {
        node.offers = kept;
    }
    may
}

/// True when one more domain, being empty, would leave some domain too full.
fn is_tight(group: &Group) -> bool {
    let GroupRule::Spread { max_skew, .. } = group.spec.rule else { return false };
    group.tallies().any(|(_, here)| here.owners > 0 && here.members > max_skew)
}

/// Drops substitutes that would bring another domain; where that cannot be, it is one to level.
fn keep_out(priced: &PricedOffers<'_, '_>, group: &mut Group, node: &mut Bought) {
    let key = &group.spec.key;
    let label = |offer: &usize| priced.label(*offer, key).map(str::to_owned);
    let brings = |offer: &usize| {
        let new = label(offer).is_some_and(|domain| !group.universe().contains(&domain));
        new && priced.counts_for(*offer, &group.spec.filter)
    };
    let new: Vec<String> = node.offers.iter().filter(|it| brings(it)).filter_map(label).collect();
    if !new.is_empty() && !keep(priced, node, |offer| !brings(offer)) {
        group.widen(new);
    }
}

/// The first rule that does not hold for pods of this plan; of its pods those of the least
/// priority.
fn find(model: &Model<'_>, state: &PlanState, placed: &Placed) -> Option<Excess> {
    for group in state.topology.groups.iter().filter(|group| group.spec.preference.is_none()) {
        let floor = group.floor();
        for (domain, here) in group.tallies() {
            let most = group.excess(here, floor);
            if most <= 0 {
                continue;
            }
            let (key, rule) = (group.spec.key.clone(), group.spec.rule.kind());
            let held_by = group.emptiest();
            let obstacle = Obstacle::Topology { rule, key: key.clone(), held_by };
            let mut excess =
                Excess { key, domain: domain.to_owned(), shape: 0, count: 0, obstacle };
            let mut owners: Vec<usize> = group.spec.owners.iter().collect();
            owners.sort_by_key(|shape| (model.shapes[*shape].priority, *shape));
            for shape in owners {
                excess.shape = shape;
                excess.count = count(placed, &excess).min(most);
                if excess.count > 0 {
                    return Some(excess);
                }
            }
        }
    }
    None
}

/// Pods that this plan has put where there are too many.
fn count(placed: &Placed, excess: &Excess) -> i64 {
    let existing_nodes =
        placed.existing_nodes.iter().filter(|on| excess.covers(on.shape, &on.assigned));
    let new = placed.nodes.iter().flat_map(|node| {
        let there = node.counted.iter().filter(|part| excess.covers(part.shape, &part.assigned));
        there.map(|part| part.count * node.copies)
    });
    existing_nodes.map(|on| on.count).sum::<i64>() + new.sum::<i64>()
}

/// Takes pods back, newest nodes first, and says how many.
fn take_back(
    model: &Model<'_>,
    state: &mut PlanState,
    placed: &mut Placed,
    excess: &Excess,
) -> i64 {
    let mut left = excess.count;
    let mut split = Vec::new();
    for node in placed.nodes.iter_mut().rev() {
        while left > 0 && node.copies > 0 {
            let mut one = Bought { copies: 1, ..node.clone() };
            let taken = remove(&mut one, state, excess, left);
            if taken == 0 {
                break;
            }
            left -= taken;
            node.copies -= 1;
            split.push(one);
        }
    }
    placed.nodes.retain(|node| node.copies > 0);
    placed.nodes.extend(split);
    for on in placed.existing_nodes.iter_mut().filter(|on| excess.covers(on.shape, &on.assigned)) {
        let count = on.count.min(left);
        state.put(model, &OnExisting { count, ..on.clone() }, -1);
        state.uncount(on.shape, &on.assigned, count);
        on.count -= count;
        left -= count;
    }
    excess.count - left
}

/// Takes back the first pods that have lost their company on a node.
fn take_lonely(
    model: &Model<'_>,
    priced: &PricedOffers<'_, '_>,
    state: &mut PlanState,
    placed: &mut Placed,
) -> Option<Refused> {
    let rules = &model.topology.node_rules;
    let obstacle = Obstacle::lonely();
    for node in &mut placed.nodes {
        let Some(offer) = node.offers.first() else { continue };
        let mut node_state = priced.starts[priced.facts[*offer].start].clone();
        node.load.iter().for_each(|(shape, count)| rules.record(*shape, *count, &mut node_state));
        let lonely = |(shape, _): &&(usize, i64)| !rules.meets_affinity(*shape, &node_state);
        let Some((shape, count)) = node.load.iter().find(lonely).copied() else { continue };
        node.load.retain(|(other, _)| *other != shape);
        for part in node.counted.iter_mut().filter(|part| part.shape == shape) {
            state.uncount(shape, &part.assigned, part.count * node.copies);
            part.count = 0;
        }
        return Some(Refused { shape, count: count * node.copies, obstacle });
    }
    let lonely = |on: &&mut OnExisting| {
        on.count > 0 && !rules.meets_affinity(on.shape, &state.states[on.existing])
    };
    let on = placed.existing_nodes.iter_mut().find(lonely)?;
    state.put(model, on, -1);
    state.uncount(on.shape, &on.assigned, on.count);
    let count = std::mem::take(&mut on.count);
    Some(Refused { shape: on.shape, count, obstacle })
}

/// Takes at most `most` of the pods off one node, and counts them out of all their domains.
fn remove(node: &mut Bought, state: &mut PlanState, excess: &Excess, most: i64) -> i64 {
    let mut taken = 0;
    for part in node.counted.iter_mut().filter(|part| excess.covers(part.shape, &part.assigned)) {
        let count = part.count.min(most - taken);
        part.count -= count;
        taken += count;
        state.uncount(part.shape, &part.assigned, count);
    }
    for (_, count) in node.load.iter_mut().filter(|(shape, _)| *shape == excess.shape) {
        *count -= taken;
    }
    node.load.retain(|(_, count)| *count > 0);
    taken
}
