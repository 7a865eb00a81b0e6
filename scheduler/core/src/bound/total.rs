//! What a plan costs, and the proof of how little it could cost.
//!
//! Invariant: the bound is about exactly the pods that the launches carry and exactly the offers
//! that are available; constraints are dropped, never added, so it can only be too low.

use std::collections::BTreeMap;

use crate::answer::{NewNode, Plan};
use crate::bound::certificate::PricedRoom;
use crate::bound::{self, LowerBound, proof};
use crate::model::Model;
use crate::offers::priced::PricedOffers;
use crate::pack::lp::prices;
use crate::pack::problem::vector::{self, Vector};
use crate::vocabulary::ids::ShapeId;
use crate::vocabulary::resources::Resources;

/// Adds prices, cost, bound and gap; `launched` counts the pods of each shape on launches.
pub(crate) fn prove(
    model: &Model<'_>,
    priced: &PricedOffers<'_, '_>,
    launched: &[i64],
    plan: &mut Plan,
) {
    plan.launch_price_micro_usd_per_hour = plan.launches.iter().map(NewNode::price).sum();
    plan.launch_cost_micro_usd_per_hour = plan.launches.iter().map(NewNode::cost).sum();
    let gone = |existing: &crate::model::existing::ExistingNode<'_>| {
        let name = existing.node.map(|node| &node.name);
        existing.leaving
            || plan.disruptions.iter().any(|d| name.is_some_and(|name| d.nodes.contains(name)))
    };
    let staying = model.existing_nodes.iter().filter(|existing| !gone(existing));
    let fleet: i64 = staying.filter_map(|existing| existing.price).sum();
    plan.fleet_price_micro_usd_per_hour = fleet + plan.launch_price_micro_usd_per_hour;
    if launched.iter().any(|count| *count > 0) {
        plan.bound = closest(model, priced, launched, plan);
    }
    let bound = i128::from(plan.bound.cost_micro_usd_per_hour);
    let over = i128::from(cost_for_pods(plan)) - bound;
    let ppm = (over * 1_000_000).checked_div(bound).unwrap_or(0);
    plan.gap_ppm = i64::try_from(ppm).unwrap_or(i64::MAX);
}

/// The largest bound that is worth looking for.
fn closest(
    model: &Model<'_>,
    priced: &PricedOffers<'_, '_>,
    launched: &[i64],
    plan: &Plan,
) -> LowerBound {
    let rooms = rooms(priced);
    let line = pareto(&rooms);
    let by_prices = lower_bound(model, &rooms, &line, launched);
    let closer = is_wide(cost_for_pods(plan), &by_prices)
        .then(|| proof::closer(model, priced, launched, (plan, &by_prices)))
        .flatten();
    let found = closer.as_ref().unwrap_or(&by_prices);
    let marginal_nano_usd_per_hour = marginal(model, &line, launched, [&by_prices, found]);
    LowerBound { marginal_nano_usd_per_hour, ..closer.unwrap_or(by_prices) }
}

/// What launches cost, but for nodes that no pod waits for: these are no part of what the bound
/// speaks of.
fn cost_for_pods(plan: &Plan) -> i64 {
    plan.launches.iter().filter(|node| !node.standing).map(NewNode::cost).sum()
}

/// True when the gap leaves something worth proving.
fn is_wide(cost: i64, bound: &LowerBound) -> bool {
    i128::from(cost) * 1_000 > i128::from(bound.cost_micro_usd_per_hour) * 1_001
}

/// What one more pod of each shape that is launched costs at the least where there are many:
/// according to prices of resources, and to values of pods where there are as many as any node
/// holds. Where there are fewer, these say what the few cost.
fn marginal(
    model: &Model<'_>,
    line: &[(i64, &Vector)],
    launched: &[i64],
    [by_prices, bound]: [&LowerBound; 2],
) -> BTreeMap<ShapeId, i64> {
    let counts = launched.iter().enumerate().filter(|(_, count)| **count > 0);
    let each = counts.map(|(shape, count)| {
        let (id, request) = (&model.shapes[shape].id, &model.requests[shape]);
        let value = |bound: &LowerBound| bound.value_of(id, model.dims.names(), request);
        let are_many = line.iter().all(|(_, room)| vector::copies(request, room) <= *count);
        let by_values = if are_many { value(bound) } else { 0 };
        (id.clone(), by_values.max(value(by_prices)))
    });
    each.collect()
}

/// Cost and room of everything on offer, in order.
fn rooms<'p>(priced: &'p PricedOffers<'_, '_>) -> Vec<(i64, &'p Vector)> {
    let each = (0..priced.all.len()).map(|at| (priced.cost(at), priced.most_room(at)));
    let mut rooms: Vec<(i64, &Vector)> = each.collect();
    rooms.sort_unstable();
    rooms.dedup();
    rooms
}

/// LB1.
fn lower_bound(
    model: &Model<'_>,
    rooms: &[(i64, &Vector)],
    line: &[(i64, &Vector)],
    launched: &[i64],
) -> LowerBound {
    let demand = demand(model, launched);
    if demand.iter().all(|amount| *amount == 0) {
        return LowerBound::default();
    }
    let line = line.iter().map(|(price, room)| (*price, room.as_slice()));
    let prices = prices::of(&demand, line);
    let names = model.dims.names();
    let prices: Vec<(String, f64)> = names.iter().cloned().zip(prices).collect();
    let named = |amounts: &[i64]| {
        let mut named = Resources::default();
        for (name, amount) in names.iter().zip(amounts) {
            named.set(name, *amount);
        }
        named
    };
    let offers: Vec<PricedRoom> = rooms
        .iter()
        .map(|(price, room)| PricedRoom { room: named(room), price_micro_usd_per_hour: *price })
        .collect();
    bound::from_prices(&prices, &named(&demand), &offers)
}

/// Requests in all of a number of pods of each shape.
fn demand(model: &Model<'_>, counts: &[i64]) -> Vector {
    let mut demand = vec![0; model.dims.names().len()];
    for (shape, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        vector::add(&mut demand, &model.requests[shape], *count);
    }
    demand
}

/// Of offers in order of price, those that no cheaper one matches in every resource.
fn pareto<'r>(rooms: &[(i64, &'r Vector)]) -> Vec<(i64, &'r Vector)> {
    let mut kept: Vec<(i64, &Vector)> = Vec::new();
    for (price, room) in rooms {
        // The latest first: the same type in another zone comes right after.
        if !kept.iter().rev().any(|(_, other)| vector::fits(room, other)) {
            kept.push((*price, room));
        }
    }
    kept
}
