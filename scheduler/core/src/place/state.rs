//! The room, counts and limits that are left while a plan grows.
//!
//! Invariant: everything placed can be taken back exactly, so that moves can be tried.

use std::collections::BTreeMap;

use crate::model::Model;
use crate::offers::priced::Goods;
use crate::pack::problem::limits::Budget;
use crate::pack::problem::rules::NodeState;
use crate::pack::problem::vector::{self, Vector};
use crate::topology::split_shapes::{Given, RowSpec, begun};
use crate::vocabulary::taint::{Taint, TaintEffect};
use crate::world::topology::Topology;

/// What changes while planning.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    /// Free room of each host.
    pub(crate) rooms: Vec<Vector>,
    /// Node rules of each host.
    pub(crate) states: Vec<NodeState>,
    /// Node wishes of each host.
    wish_states: Vec<NodeState>,
    /// Hosts that take pods.
    pub(crate) open: Vec<bool>,
    /// Pods that this plan has put on each host, by shape.
    pub(crate) added: Vec<BTreeMap<usize, i64>>,
    /// Waiting pods that are wanted on each host already, by shape.
    wanted: Vec<BTreeMap<usize, i64>>,
    /// Places on each host for any pods of a shape: those that were wanted there run or are nominated elsewhere by
    /// now, or had not come yet.
    kept: Vec<BTreeMap<usize, i64>>,
    /// Rules over wide domains.
    pub(crate) topology: Topology,
    /// The same rules with those pods only that are there already and stay.
    pub(crate) residents: Topology,
    /// Node rules that have a member somewhere.
    pub(crate) begun: Vec<bool>,
    /// What limits allow.
    pub(crate) budgets: Vec<Budget>,
}

/// Pods of a row on a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OnHost {
    /// Index of the host.
    pub(crate) host: usize,
    /// Shape of the pods.
    pub(crate) shape: usize,
    /// How many.
    pub(crate) count: i64,
    /// Domains that they have been counted in.
    pub(crate) given: Given,
}

/// Why pods should get a host, strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Title {
    /// They are wanted there already: planning again moves nothing.
    Wanted,
    /// A place is kept there for pods of their shape. Those that were wanted there went elsewhere: most often to
    /// the very places that these pods had, and then the plan is what it was. Or the node was bought for pods
    /// that were to come, and here they are.
    Inherited,
    /// There is room, and all their wishes come true.
    Wished,
    /// None: there is room.
    None,
}

impl Title {
    /// All titles, strongest first.
    pub(crate) const ALL: [Self; 4] = [Self::Wanted, Self::Inherited, Self::Wished, Self::None];
}

impl Scene {
    /// The world before the plan.
    pub(crate) fn new(model: &Model<'_>, goods: &Goods<'_, '_>) -> Self {
        Self {
            rooms: model.hosts.iter().map(|host| host.room.clone()).collect(),
            states: model.hosts.iter().map(|host| host.state.clone()).collect(),
            wish_states: model.hosts.iter().map(|host| host.wish_state.clone()).collect(),
            open: model.hosts.iter().map(|host| host.open).collect(),
            added: vec![BTreeMap::new(); model.hosts.len()],
            wanted: wanted(model),
            kept: kept(model),
            topology: model.topology.clone(),
            residents: model.topology.clone(),
            begun: begun(model),
            budgets: goods.budgets.clone(),
        }
    }

    /// True when a host takes pods and has room for a request.
    pub(crate) fn has_room(&self, host: usize, request: &[i64]) -> bool {
        self.open[host] && vector::fits(request, &self.rooms[host])
    }

    /// True when pods of some shape may have a title to a host.
    pub(crate) fn gives(&self, host: usize, title: Title) -> bool {
        match title {
            Title::Wanted => !self.wanted[host].is_empty(),
            Title::Inherited => !self.kept[host].is_empty(),
            Title::Wished | Title::None => true,
        }
    }

    /// Puts as many pods of a row as possible on the hosts, in their order and as far as their title to
    /// each goes, and returns where.
    pub(crate) fn fill(
        &mut self,
        model: &Model<'_>,
        row: &RowSpec,
        hosts: &[usize],
        title: Title,
    ) -> Vec<OnHost> {
        let mut left = row.count;
        let mut placed: Vec<OnHost> = Vec::new();
        for host in hosts.iter().copied() {
            if left == 0 {
                break;
            }
            let most = match title {
                Title::Wanted => self.wanted[host].get(&row.shape).copied().unwrap_or(0),
                Title::Inherited => self.kept[host].get(&row.shape).copied().unwrap_or(0),
                Title::Wished | Title::None => i64::MAX,
            };
            let there = self.fill_one(model, row, host, (left.min(most), title));
            left -= there.as_ref().map_or(0, |there| there.count);
            placed.extend(there);
        }
        placed
    }

    /// Puts at most `most` pods of a row on one host. Without room to buy elsewhere first, wishes do not
    /// keep pods from a host: it is there, and kube-scheduler would not let them wait.
    fn fill_one(
        &mut self,
        model: &Model<'_>,
        row: &RowSpec,
        host: usize,
        (most, title): (i64, Title),
    ) -> Option<OnHost> {
        let request = &model.requests[row.shape];
        if most == 0 || !self.open[host] || !vector::fits(request, &self.rooms[host]) {
            return None;
        }
        let free_of_rules = model.topology.node_rules.is_free(row.shape);
        let allowed = if free_of_rules { i64::MAX } else { self.allowance(model, row, host) };
        let wished = title == Title::Wished;
        let granted = if wished { self.granted(model, row, host) } else { i64::MAX };
        let count = vector::copies(request, &self.rooms[host]).min(most).min(allowed).min(granted);
        let alternatives = if wished { &row.alternatives } else { &row.allowed };
        if count <= 0 || !model.hosts[host].admits(model.shapes[row.shape], alternatives) {
            return None;
        }
        let there = OnHost { host, shape: row.shape, count, given: row.given.clone() };
        self.put(model, &there, 1);
        Some(there)
    }

    /// Puts pods on a host, or takes them back with `sign` -1.
    pub(crate) fn put(&mut self, model: &Model<'_>, there: &OnHost, sign: i64) {
        let OnHost { host, shape, count, .. } = *there;
        vector::add(&mut self.rooms[host], &model.requests[shape], -sign * count);
        *self.added[host].entry(shape).or_default() += sign * count;
        self.added[host].retain(|_, count| *count != 0);
        let wishes = &model.topology.node_wishes;
        if !wishes.is_free(shape) {
            wishes.record(shape, sign * count, &mut self.wish_states[host]);
        }
        let rules = &model.topology.node_rules;
        if !rules.is_free(shape) {
            rules.record(shape, sign * count, &mut self.states[host]);
            if sign > 0 {
                rules.mark_begun(shape, &mut self.begun);
            }
        }
    }

    /// Moves the counts of pods that went to a host in another domain than a wish had chosen.
    pub(crate) fn correct(&mut self, model: &Model<'_>, there: &mut OnHost) {
        let label = |key: &str| model.hosts[there.host].label(key).map(str::to_owned);
        let here = there.given.iter().filter_map(|(key, _)| Some((key.clone(), label(key)?)));
        let here: Given = here.collect();
        if here != there.given {
            self.uncount(there.shape, &there.given, there.count);
            self.uncount(there.shape, &here, -there.count);
            there.given = here;
        }
    }

    /// How many pods of a row a host takes without going against a wish about that node.
    fn granted(&self, model: &Model<'_>, row: &RowSpec, host: usize) -> i64 {
        let soft = |taint: &Taint| {
            let tolerations = &model.shapes[row.shape].tolerations;
            taint.effect == TaintEffect::PreferNoSchedule
                && !tolerations.iter().any(|toleration| toleration.covers(taint))
        };
        if model.hosts[host].taints.iter().any(soft) {
            return 0;
        }
        let wishes = &model.topology.node_wishes;
        if wishes.is_free(row.shape) {
            return i64::MAX;
        }
        wishes.allowance(row.shape, &self.wish_states[host], false)
    }

    /// Counts pods that found no place out of the domains they were given.
    pub(crate) fn uncount(&mut self, shape: usize, given: &Given, count: i64) {
        for (key, domain) in given {
            self.topology.record_in(shape, key, domain, -count);
        }
    }

    /// True when pods of the shape are wanted on a host and have not all been put there.
    pub(crate) fn wants(&self, host: usize, shape: usize) -> bool {
        let count = |pods: &BTreeMap<usize, i64>| pods.get(&shape).copied().unwrap_or(0);
        count(&self.added[host]) < count(&self.wanted[host])
    }

    fn allowance(&self, model: &Model<'_>, row: &RowSpec, host: usize) -> i64 {
        let rules = &model.topology.node_rules;
        let first = rules.may_begin(row.shape, &self.begun);
        rules.allowance(row.shape, &self.states[host], first)
    }
}

/// Waiting pods by the host they are wanted on and by shape.
fn wanted(model: &Model<'_>) -> Vec<BTreeMap<usize, i64>> {
    let shapes = model.demand.iter().enumerate();
    let wishes = shapes.flat_map(|(shape, pods)| pods.iter().map(move |pod| (shape, pod)));
    by_host(model, wishes.filter_map(|(shape, pod)| Some((model.wish(pod)?, shape, 1))))
}

/// Places by host and shape of pods that are elsewhere, and of those that were to come.
fn kept(model: &Model<'_>) -> Vec<BTreeMap<usize, i64>> {
    let lost = model.input.earlier.iter().filter_map(|(uid, wish)| {
        let pod = model.input.world.pods.get(uid)?;
        let there = pod.node.as_ref().or(pod.nominated_node.as_ref());
        let elsewhere = there.is_some_and(|node| node.as_str() != wish);
        Some((wish.as_str(), model.shape_of(pod)?, 1)).filter(|_| elsewhere)
    });
    let to_come = model.input.kept.iter().flat_map(|(host, places)| {
        let places = places.iter();
        places.filter_map(|(shape, count)| Some((host.as_str(), model.index_of(shape)?, *count)))
    });
    by_host(model, lost.chain(to_come))
}

/// Counts pods, each with a host's name, a shape and how many they are.
fn by_host<'w>(
    model: &Model<'_>,
    pods: impl Iterator<Item = (&'w str, usize, i64)>,
) -> Vec<BTreeMap<usize, i64>> {
    let names = model.hosts.iter().map(|host| host.target.name());
    let hosts: BTreeMap<&str, usize> =
        names.enumerate().filter_map(|(at, name)| Some((name?, at))).collect();
    let mut counts = vec![BTreeMap::new(); model.hosts.len()];
    for (name, shape, count) in pods {
        if let Some(host) = hosts.get(name) {
            *counts[*host].entry(shape).or_default() += count;
        }
    }
    counts
}
