//! One rule or preference over domains wider than a node, and what it counts.
//!
//! Invariant: what a group is never changes and is shared by all copies of it; only its counts do,
//! and a copy shares them too until one of both changes.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::pack::problem::rules::Tally;
use crate::reason::TopologyRule;
use crate::vocabulary::requirements::Requirements;
use crate::vocabulary::taint::Toleration;

/// A rule with its counts.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// What it is.
    pub(crate) spec: Rc<GroupSpec>,
    tallies: Rc<BTreeMap<String, Tally>>,
    universe: Rc<BTreeSet<String>>,
}

/// What a group is.
#[derive(Clone, Debug)]
pub(crate) struct GroupSpec {
    /// What it demands.
    pub(crate) rule: GroupRule,
    /// Weight when it is a preference; none for a condition.
    pub(crate) preference: Option<i64>,
    /// Label key of its domains.
    pub(crate) key: String,
    /// Shapes that obey it.
    pub(crate) owners: ShapeSet,
    /// Shapes that it counts.
    pub(crate) members: ShapeSet,
    /// Nodes that count.
    pub(crate) filter: NodeFilter,
}

/// What a group demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum GroupRule {
    /// Members of any two domains differ by at most this much.
    Spread {
        /// Largest difference.
        max_skew: i64,
        /// Fewer domains than this count as one empty domain.
        min_domains: i64,
    },
    /// An owner needs a member in its domain.
    Affinity,
    /// An owner bears no other member in its domain.
    AntiAffinity,
}

/// Which nodes a spread rule looks at.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodeFilter {
    /// Alternatives of node affinity; none when not honoured.
    pub(crate) alternatives: Option<Vec<Requirements>>,
    /// Tolerations; none when taints are not honoured.
    pub(crate) tolerations: Option<Vec<Toleration>>,
    /// Labels that the node must have: the topology keys of all hard spreads of the pod.
    pub(crate) keys: Vec<String>,
}

/// Indexes of shapes, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ShapeSet(Vec<usize>);

impl ShapeSet {
    /// The set of these shapes.
    pub(crate) fn of(shapes: impl IntoIterator<Item = usize>) -> Self {
        let set: BTreeSet<usize> = shapes.into_iter().collect();
        Self(set.into_iter().collect())
    }

    /// Whether a shape is one of them.
    pub(crate) fn contains(&self, shape: usize) -> bool {
        self.0.binary_search(&shape).is_ok()
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> {
        self.0.iter().copied()
    }

    /// Adds one that is larger than all others, or is the largest already.
    pub(crate) fn push(&mut self, shape: usize) {
        debug_assert!(self.0.last().is_none_or(|last| *last <= shape));
        if self.0.last() != Some(&shape) {
            self.0.push(shape);
        }
    }

    /// For each of a number of shapes, whether it is one of them.
    pub(crate) fn flags(&self, shapes: usize) -> Vec<bool> {
        let mut flags = vec![false; shapes];
        self.iter().for_each(|shape| flags[shape] = true);
        flags
    }
}

impl GroupRule {
    /// The kind, for reasons.
    pub(crate) fn kind(self) -> TopologyRule {
        match self {
            Self::Spread { .. } => TopologyRule::Spread,
            Self::Affinity => TopologyRule::Affinity,
            Self::AntiAffinity => TopologyRule::AntiAffinity,
        }
    }

    /// True for a spread.
    pub(crate) fn is_spread(self) -> bool {
        matches!(self, Self::Spread { .. })
    }
}

impl GroupSpec {
    /// Shapes that obey it or are counted; some twice.
    pub(crate) fn touched(&self) -> impl Iterator<Item = usize> {
        self.owners.iter().chain(self.members.iter())
    }

    /// True when pods of the shape obey it and are counted by it.
    pub(crate) fn selects_itself(&self, shape: usize) -> bool {
        self.owners.contains(shape) && self.members.contains(shape)
    }
}

impl Group {
    /// A group that has counted nothing.
    pub(crate) fn new(spec: GroupSpec) -> Self {
        Self { spec: Rc::new(spec), tallies: Rc::default(), universe: Rc::default() }
    }

    /// Counts pods of a shape in a domain; `count` may be negative.
    pub(crate) fn record(&mut self, shape: usize, domain: &str, count: i64) {
        let tallies = Rc::make_mut(&mut self.tallies);
        if !tallies.contains_key(domain) {
            tallies.insert(domain.to_owned(), Tally::default());
        }
        if let Some(tally) = tallies.get_mut(domain) {
            tally.members += if self.spec.members.contains(shape) { count } else { 0 };
            tally.owners += if self.spec.owners.contains(shape) { count } else { 0 };
        }
    }

    /// Pods in a domain.
    pub(crate) fn tally(&self, domain: &str) -> Tally {
        self.tallies.get(domain).copied().unwrap_or_default()
    }

    /// Domains that have been counted in.
    pub(crate) fn tallies(&self) -> impl Iterator<Item = (&str, Tally)> {
        self.tallies.iter().map(|(domain, tally)| (domain.as_str(), *tally))
    }

    /// Adds domains that a spread has to level: those of nodes that count, and those in which its
    /// pods could get one.
    pub(crate) fn widen(&mut self, mut domains: Vec<String>) {
        domains.retain(|name| !self.universe.contains(name));
        if !domains.is_empty() {
            Rc::make_mut(&mut self.universe).extend(domains);
        }
    }

    /// Replaces the domains that a spread has to level, and returns those before.
    pub(crate) fn level(&mut self, domains: Rc<BTreeSet<String>>) -> Rc<BTreeSet<String>> {
        std::mem::replace(&mut self.universe, domains)
    }

    /// Domains that a spread has to level.
    pub(crate) fn universe(&self) -> &BTreeSet<String> {
        &self.universe
    }

    /// True when a spread has fewer domains than it asks for, so that its minimum counts as zero.
    pub(crate) fn is_short(&self) -> bool {
        let GroupRule::Spread { min_domains, .. } = self.spec.rule else { return false };
        i64::try_from(self.universe.len()).unwrap_or(i64::MAX) < min_domains
    }

    /// Members in the emptiest domain, as a spread counts it; zero for other rules.
    pub(crate) fn floor(&self) -> i64 {
        if !self.spec.rule.is_spread() || self.is_short() {
            return 0;
        }
        self.universe.iter().map(|name| self.tally(name).members).min().unwrap_or(0)
    }

    /// The domain that decides the minimum of a spread; none when that counts as zero for want of
    /// domains.
    pub(crate) fn emptiest(&self) -> Option<String> {
        let levels = self.spec.rule.is_spread() && !self.is_short();
        let domains = self.universe.iter().filter(|_| levels);
        domains.min_by_key(|name| self.tally(name).members).cloned()
    }

    /// How many owners a domain has too many, when `floor` is that of the group. Nobody who is
    /// there already has to be judged by anti-affinity.
    pub(crate) fn excess(&self, here: Tally, floor: i64) -> i64 {
        match self.spec.rule {
            GroupRule::Spread { max_skew, .. } if here.owners > 0 => {
                here.members - floor - max_skew
            }
            GroupRule::Affinity if here.members == 0 => here.owners,
            GroupRule::Spread { .. } | GroupRule::Affinity | GroupRule::AntiAffinity => 0,
        }
    }

    /// How far a preference is from being granted: pods where it would rather not have them.
    pub(crate) fn ungranted(&self) -> i64 {
        let floor = self.floor();
        let each = self.tallies.values().map(|here| match self.spec.rule {
            GroupRule::Spread { max_skew, .. } if here.owners > 0 => {
                (here.members - floor - max_skew).max(0)
            }
            GroupRule::Affinity if here.members == 0 => here.owners,
            GroupRule::AntiAffinity if here.owners > 0 => here.members - 1,
            GroupRule::Spread { .. } | GroupRule::Affinity | GroupRule::AntiAffinity => 0,
        });
        each.sum()
    }

    /// Whether one pod more of a shape may be in a domain as it stands; none stands for nodes
    /// without the label. `may_begin` says whether nobody is anywhere whom the shape has to join.
    pub(crate) fn admits(
        &self,
        shape: usize,
        domain: Option<&str>,
        may_begin: impl FnOnce() -> bool,
    ) -> bool {
        let (owner, member) = (self.spec.owners.contains(shape), self.spec.members.contains(shape));
        let Some(domain) = domain else {
            return !owner || self.spec.rule == GroupRule::AntiAffinity;
        };
        let here = self.tally(domain);
        match self.spec.rule {
            GroupRule::Spread { max_skew, .. } => {
                !owner || here.members + i64::from(member) - self.floor() <= max_skew
            }
            GroupRule::Affinity => {
                !owner || here.members > 0 || (member && self.has_no_members() && may_begin())
            }
            GroupRule::AntiAffinity => {
                (!owner || here.members == 0) && (!member || here.owners == 0)
            }
        }
    }

    /// Whether those who obey a spread in a domain bear one pod more of a shape there.
    pub(crate) fn bears(&self, shape: usize, domain: &str) -> bool {
        let here = self.tally(domain);
        match self.spec.rule {
            GroupRule::Spread { max_skew, .. } if self.spec.members.contains(shape) => {
                here.owners == 0 || here.members + 1 - self.floor() <= max_skew
            }
            GroupRule::Spread { .. } | GroupRule::Affinity | GroupRule::AntiAffinity => true,
        }
    }

    /// True when no domain holds a member.
    pub(crate) fn has_no_members(&self) -> bool {
        self.tallies.values().all(|tally| tally.members == 0)
    }

    /// True when an owner is somewhere.
    pub(crate) fn has_owners(&self) -> bool {
        self.tallies.values().any(|tally| tally.owners > 0)
    }
}
