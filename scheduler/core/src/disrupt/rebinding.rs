//! Where pods that are moved may end: they are born anew, and kube-scheduler binds them without a
//! plan.
//!
//! Invariant: what is taken fits whether the small pods are bound first or the large ones, each
//! where kube-scheduler's default scores are best; places that only a plan would find are not
//! counted on, and nothing is bought to stay empty because pods find more room elsewhere.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::disrupt::Context;
use crate::disrupt::relocate::Moved;
use crate::model::Model;
use crate::model::existing::ExistingNode;
use crate::offers::priced::PricedOffers;
use crate::pack::problem::vector::{self, Vector, float};
use crate::place::Placed;

/// Resources that kube-scheduler's default scores look at.
const SCORED: [&str; 2] = ["cpu", "memory"];

/// The nodes of a cluster as kube-scheduler leaves them after what is decided.
pub(super) struct Rebinding<'g, 'm, 'a> {
    model: &'m Model<'a>,
    priced: &'g PricedOffers<'m, 'a>,
    /// Where vectors have what is scored; none of what nobody requests.
    scored: [Option<usize>; 2],
    /// One for each existing node, then those that are bought.
    places: Vec<Place>,
    /// Existing nodes that admit pods of a shape.
    admitted: BTreeMap<usize, Rc<Vec<bool>>>,
    /// Pods put on places by the decision that is judged.
    put: Vec<Put>,
}

/// Equal pods on a place.
#[derive(Clone, Copy)]
struct Put {
    at: usize,
    shape: usize,
    count: i64,
}

/// A node.
struct Place {
    /// What it is bought as; none for an existing node.
    offer: Option<usize>,
    /// True when it is bought for pods that are moved.
    awaits: bool,
    open: bool,
    room: Vector,
    /// Its room were it empty.
    size: Vector,
}

impl<'g, 'm, 'a> Rebinding<'g, 'm, 'a> {
    /// The nodes that take pods now, with what the plan has put there so far.
    pub(super) fn new(context: &Context<'g, 'm, 'a>) -> Self {
        let Context { model, priced, ref state, .. } = *context;
        let place = |(at, existing): (usize, &ExistingNode<'_>)| {
            let mut size = existing.room.clone();
            for (shape, count) in &existing.pods {
                vector::add(&mut size, &model.requests[*shape], *count);
            }
            let open = state.open[at] && existing.fit && existing.node.is_some();
            Place { offer: None, awaits: false, open, room: state.rooms[at].clone(), size }
        };
        let names = model.dims.names();
        let scored = SCORED.map(|scored| names.iter().position(|name| name == scored));
        let places = model.existing_nodes.iter().enumerate().map(place).collect();
        Self { model, priced, scored, places, admitted: BTreeMap::new(), put: Vec::new() }
    }

    /// Takes the pods of nodes that go to the nodes that stay and to those that are bought. False,
    /// with nothing taken, when one of them may be left without a place, or what is bought for them
    /// without any of them.
    pub(super) fn takes(&mut self, moved: Moved<'_>, placed: &Placed) -> bool {
        let model = self.model;
        let (known, mut closed) = (self.places.len(), moved.gone.to_vec());
        closed.retain(|existing| self.places[*existing].open);
        closed.iter().for_each(|existing| self.places[*existing].open = false);
        self.add_as_planned(moved.pods, placed);
        let mut free: Vec<(usize, i64)> = moved.pods.iter().copied().enumerate().collect();
        free.retain(|(shape, count)| *count > 0 && model.topology.is_plain(*shape));
        free.sort_by_key(|(shape, _)| Reverse(self.extent(*shape)));
        let led = self.put.len();
        let fits = self.bind_all(free.iter(), known) && {
            self.take_back(led);
            self.bind_all(free.iter().rev(), known)
        };
        if !fits {
            self.take_back(0);
            self.places.truncate(known);
            closed.iter().for_each(|existing| self.places[*existing].open = true);
        }
        self.put.clear();
        fits
    }

    /// True when a node has room for one of these pods, so many of each shape.
    pub(super) fn has_room(&mut self, existing: usize, wanted: &[i64]) -> bool {
        wanted.iter().enumerate().any(|(shape, count)| {
            *count > 0 && self.has_room_for(existing, shape) && self.admitted(shape)[existing]
        })
    }

    /// True when a place is open and has room for a pod of the shape, whether or not it admits it.
    fn has_room_for(&self, at: usize, shape: usize) -> bool {
        self.places[at].open && vector::fits(&self.model.requests[shape], &self.places[at].room)
    }

    /// Adds the nodes that are bought, and puts pods that rules about other pods lead to their
    /// places where they are planned.
    fn add_as_planned(&mut self, wanted: &[i64], placed: &Placed) {
        let model = self.model;
        for there in
            placed.existing_nodes.iter().filter(|there| !model.topology.is_plain(there.shape))
        {
            self.put(Put { at: there.existing, shape: there.shape, count: there.count });
        }
        for node in &placed.nodes {
            let size = self.priced.room(node.offers[0]).to_vec();
            let awaits = node.load.iter().any(|(shape, _)| wanted[*shape] > 0);
            for _ in 0..node.copies {
                let (at, offer) = (self.places.len(), Some(node.offers[0]));
                self.places.push(Place {
                    offer,
                    awaits,
                    open: true,
                    room: size.clone(),
                    size: size.clone(),
                });
                for (shape, count) in
                    node.load.iter().filter(|(shape, _)| !model.topology.is_plain(*shape))
                {
                    self.put(Put { at, shape: *shape, count: *count });
                }
            }
        }
    }

    fn put(&mut self, pods: Put) {
        let Put { at, shape, count } = pods;
        vector::add(&mut self.places[at].room, &self.model.requests[shape], -count);
        self.put.push(pods);
    }

    /// Takes pods back until so many entries are left.
    fn take_back(&mut self, left: usize) {
        for Put { at, shape, count } in self.put.drain(left..) {
            vector::add(&mut self.places[at].room, &self.model.requests[shape], count);
        }
    }

    /// How large a pod is beside others, for their order alone: by CPU, then by memory.
    fn extent(&self, shape: usize) -> [i64; 2] {
        SCORED.map(|name| self.model.shapes[shape].requests.get(name))
    }

    /// Puts pods where kube-scheduler would, in this order. False when one finds no place, or one
    /// of those from `added` on that awaits them is left empty.
    fn bind_all<'p>(
        &mut self,
        mut pods: impl Iterator<Item = &'p (usize, i64)>,
        added: usize,
    ) -> bool {
        pods.all(|(shape, count)| self.bind(*shape, *count))
            && self.places[added..].iter().all(|place| !place.awaits || place.room != place.size)
    }

    /// Puts pods of a shape one by one where kube-scheduler would. False when one finds no place.
    fn bind(&mut self, shape: usize, count: i64) -> bool {
        let (admitted, request) = (self.admitted(shape), &self.model.requests[shape]);
        let answers = self.priced.ask_all(shape, &self.model.alternatives[shape]);
        let takes = |(at, place): &(usize, &Place)| {
            let admits = |offer| self.priced.admits(&answers, offer);
            self.has_room_for(*at, shape) && place.offer.map_or_else(|| admitted[*at], admits)
        };
        let fitting = self.places.iter().enumerate().filter(takes);
        let mut fitting: Vec<(f64, usize)> =
            fitting.map(|(at, place)| (self.score(request, place), at)).collect();
        for _ in 0..count {
            let best = fitting.iter().enumerate().max_by(|(_, a), (_, b)| a.0.total_cmp(&b.0));
            let Some((best, (_, at))) = best.map(|(best, found)| (best, *found)) else {
                return false;
            };
            self.put(Put { at, shape, count: 1 });
            if self.has_room_for(at, shape) {
                fitting[best].0 = self.score(request, &self.places[at]);
            } else {
                fitting.swap_remove(best);
            }
        }
        true
    }

    /// For each existing node whether labels and taints let pods of the shape run there.
    fn admitted(&mut self, shape: usize) -> Rc<Vec<bool>> {
        let admitted = self.admitted.entry(shape).or_insert_with(|| {
            let (pod, alternatives) = (self.model.shapes[shape], &self.model.alternatives[shape]);
            let existing_nodes = self.model.existing_nodes.iter();
            Rc::new(existing_nodes.map(|existing| existing.admits(pod, alternatives)).collect())
        });
        Rc::clone(admitted)
    }

    /// kube-scheduler's default scores for a pod on a node, each from 0 to 1: the share that it
    /// leaves of CPU and memory (`NodeResourcesFit`, least allocated), and how evenly these are
    /// used (`NodeResourcesBalancedAllocation`).
    fn score(&self, request: &[i64], place: &Place) -> f64 {
        let share = |at: usize| {
            let left = place.room[at].saturating_sub(request[at]).max(0);
            float(left) / float(place.size[at].max(1))
        };
        let [cpu, memory] = self.scored.map(|at| at.map_or(1.0, share));
        f64::midpoint(cpu, memory) + 1.0 - (cpu - memory).abs() / 2.0
    }
}
