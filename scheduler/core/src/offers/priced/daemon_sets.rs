//! Which DaemonSets run on which offers, and what they leave.
//!
//! Invariant: an offer that does not hold all of its DaemonSets, whatever resource is short, holds
//! no pod.

use std::rc::Rc;

use crate::offers::market::{Offer, PoolOffers};
use crate::offers::priced::{Answer, Facts, PricedOffers, charge};
use crate::pack::problem::rules::NodeState;
use crate::pack::problem::vector::{self, Vector};
use crate::planted;
use crate::vocabulary::requirements::Requirements;
use crate::vocabulary::resources::Resources;
use crate::vocabulary::taint::untolerated;

/// Sets of DaemonSets that run together on some offer.
pub(super) struct DaemonSets {
    /// Of each pool's offers, what its types have for pods and DaemonSets.
    rooms: Vec<Vec<Vector>>,
    /// The same of every resource, also of those that no pod requests.
    allocatable: Vec<Vec<Resources>>,
    answers: Vec<(usize, Vec<Rc<Answer>>)>,
    /// Of each DaemonSet and alternative, the pools' offers whose certain labels admit it.
    certain: Vec<Vec<Vec<bool>>>,
    /// Of each pool's offers, the flavours for which that says the same as their own labels.
    settled: Vec<Vec<bool>>,
    sets: Vec<Rc<Vec<usize>>>,
    /// What each set requests.
    totals: Vec<Resources>,
    /// Node-rule states that offers start with.
    pub(super) starts: Vec<NodeState>,
}

impl DaemonSets {
    pub(super) fn new(priced: &PricedOffers<'_, '_>) -> Self {
        let ask =
            |shape: &usize| (*shape, priced.ask_all(*shape, &priced.model.alternatives[*shape]));
        let answers = priced.model.daemons.iter().map(ask).collect();
        let pools = priced.model.market.pools.iter();
        let each = pools
            .map(|pool_offers| pool_offers.types.iter().map(|kind| kind.allocatable()).collect());
        let allocatable: Vec<Vec<Resources>> = each.collect();
        let room = |kind: &Resources| priced.model.dims.room(kind);
        let rooms = allocatable.iter().map(|types| types.iter().map(room).collect()).collect();
        let (sets, totals, starts) = (Vec::new(), Vec::new(), Vec::new());
        let mut daemons = Self {
            rooms,
            allocatable,
            answers,
            certain: Vec::new(),
            settled: Vec::new(),
            sets,
            totals,
            starts,
        };
        daemons.settle(priced);
        daemons
    }

    /// Finds out where labels that pools leave open decide about DaemonSets.
    fn settle(&mut self, priced: &PricedOffers<'_, '_>) {
        let pools = &priced.model.market.pools;
        let certain = |shape: usize| -> Vec<Vec<bool>> {
            let tolerations = &priced.model.shapes[shape].tolerations;
            let tolerated = |pool_offers: &PoolOffers<'_>| {
                untolerated(&pool_offers.pool.taints, tolerations).is_none()
            };
            let admits = |wanted: &Requirements| -> Vec<bool> {
                pools
                    .iter()
                    .map(|pool_offers| {
                        tolerated(pool_offers) && pool_offers.certainly_admits(wanted)
                    })
                    .collect()
            };
            priced.model.alternatives[shape].iter().map(admits).collect()
        };
        self.certain = self.answers.iter().map(|(shape, _)| certain(*shape)).collect();
        let agrees = |pool_offers: usize, flavour: usize| {
            self.answers.iter().zip(&self.certain).all(|((_, answers), certain)| {
                answers.iter().zip(certain).all(|(answer, certain)| {
                    answer.pools[pool_offers].0[flavour] == certain[pool_offers]
                })
            })
        };
        let flavours = |(at, pool_offers): (usize, &PoolOffers<'_>)| {
            (0..pool_offers.flavours.len()).map(|flavour| agrees(at, flavour)).collect()
        };
        self.settled = pools.iter().enumerate().map(flavours).collect();
    }

    pub(super) fn facts(
        &mut self,
        priced: &PricedOffers<'_, '_>,
        at: usize,
        kind: usize,
        reservation: Option<usize>,
    ) -> Facts {
        let offer = &priced.all[at];
        let pool_offers = &priced.model.market.pools[offer.pool_offers];
        let instance = pool_offers.types[offer.kind];
        let runs = |(shape, answers): &(usize, Vec<Rc<Answer>>)| {
            answers.iter().any(|answer| answer.admits(offer, kind)).then_some(*shape)
        };
        let running: Vec<usize> = self.answers.iter().filter_map(runs).collect();
        let start = self.start(priced, running);
        let mut room = self.rooms[offer.pool_offers][offer.kind].clone();
        for daemon in self.sets[start].iter() {
            vector::add(&mut room, &priced.model.requests[*daemon], -1);
        }
        let daemons_fit =
            self.totals[start].fits_in(&self.allocatable[offer.pool_offers][offer.kind]);
        if !daemons_fit && !planted::is("S19") {
            room.fill(0);
        }
        let daemons = Rc::clone(&self.sets[start]);
        let (charge, cost) = (
            charge(pool_offers, instance),
            priced.model.input.objective.cost(instance, offer.offering),
        );
        let most_room = self.most_room(priced, offer, kind);
        Facts { cost, room, most_room, charge, reservation, start, kind, daemons, daemons_fit }
    }

    fn most_room(
        &self,
        priced: &PricedOffers<'_, '_>,
        offer: &Offer<'_>,
        kind: usize,
    ) -> Option<Vector> {
        if self.settled[offer.pool_offers][offer.flavour] {
            return None;
        }
        let mut room = self.rooms[offer.pool_offers][offer.kind].clone();
        for ((shape, answers), certain) in self.answers.iter().zip(&self.certain) {
            let admits = |(answer, pools): (&Rc<Answer>, &Vec<bool>)| {
                let types = &answer.pools[offer.pool_offers].1;
                answer.kinds[kind] && types[offer.kind] && pools[offer.pool_offers]
            };
            if answers.iter().zip(certain).any(admits) {
                vector::add(&mut room, &priced.model.requests[*shape], -1);
            }
        }
        Some(room)
    }

    fn start(&mut self, priced: &PricedOffers<'_, '_>, running: Vec<usize>) -> usize {
        if let Some(known) = self.sets.iter().position(|set| **set == running) {
            return known;
        }
        let mut state = NodeState::default();
        for shape in &running {
            priced.model.topology.node_rules.record(*shape, 1, &mut state);
        }
        let each = running.iter().map(|shape| &priced.model.shapes[*shape].requests);
        self.totals.push(each.fold(Resources::default(), |sum, requests| sum.plus(requests)));
        self.sets.push(Rc::new(running));
        self.starts.push(state);
        self.sets.len() - 1
    }
}
