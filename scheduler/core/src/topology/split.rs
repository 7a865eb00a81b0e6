//! Splitting: how many of a number of equal pods go to each domain of one topology key.
//!
//! Invariant: conditions are never broken and preferences never rule anything out. Counts are found
//! as water finds its level, not pod by pod: the work grows with domains, whatever the number of
//! pods.

use crate::reason::TopologyRule;
use crate::topology::water_fill::{self, Basin};
use crate::world::topology::{Group, GroupRule};

/// A place for pods, as far as a topology rule cares.
#[derive(Clone, Debug)]
pub(crate) struct Domain {
    /// Value of the key; none where nodes do not have the label.
    pub(crate) name: Option<String>,
    /// Cheapest node there, in micro-dollars per hour; none when none can be bought.
    pub(crate) cost: Option<i64>,
    /// How many pods nodes there have room for.
    pub(crate) room: i64,
}

/// Pods of one shape and what they may choose from.
pub(crate) struct Split<'s> {
    /// Their shape.
    pub(crate) shape: usize,
    /// Domains, in order of name.
    pub(crate) domains: &'s [Domain],
    /// Conditions on this key that touch the shape.
    pub(crate) rules: Vec<&'s Group>,
    /// Preferences about this key that the shape has.
    pub(crate) preferences: Vec<&'s Group>,
    /// Whether nobody is anywhere yet whom the shape has to join.
    pub(crate) may_begin: bool,
    /// How much more a node may cost in a domain that grants a preference, in percent of the
    /// cheapest.
    pub(crate) premium_percent: i64,
}

/// A spread that the shape obeys and is counted by, with all its numbers by domain.
struct Level {
    here: Vec<i64>,
    leveled: Vec<bool>,
    /// Fewest in a domain that no pod of the piece can reach.
    outside: i64,
    short: bool,
    max_skew: i64,
}

impl Split<'_> {
    /// Pods for each domain, in the order of `domains`; fewer than `count` when rules leave no
    /// more.
    pub(crate) fn split_all(&self, count: i64) -> Vec<i64> {
        let levels: Vec<Level> = self.rules.iter().filter_map(|r| self.level(r)).collect();
        let mut limits: Vec<i64> = self.domains.iter().map(|d| self.limit(d)).collect();
        self.begin(&mut limits, count);
        narrow(&levels, &mut limits);
        match levels.as_slice() {
            [] if self.is_counted() => water_fill::fill(&self.evenly(&limits), count),
            [] => self.by_cost(&limits, count),
            [level] => water_fill::fill(&self.basins(level, &limits), count),
            _ => self.one_by_one(&levels, &limits, count),
        }
    }

    /// The rule to name when no domain takes more than what has been given.
    pub(crate) fn blocking(&self, assigned: &[i64]) -> TopologyRule {
        let blocks = |rule: &&&Group| {
            let level = self.level(rule);
            (0..self.domains.len()).all(|at| match &level {
                Some(level) => !level.admits(at, assigned),
                None => !self.admits(rule, &self.domains[at]) || self.is_alone(rule, assigned[at]),
            })
        };
        let named = self.rules.iter().find(blocks).or(self.rules.first());
        named.map_or(TopologyRule::Spread, |rule| rule.spec.rule.kind())
    }

    /// True when a pod of the shape is there and bears no other of its kind.
    fn is_alone(&self, rule: &Group, assigned: i64) -> bool {
        let anti = rule.spec.rule == GroupRule::AntiAffinity;
        assigned > 0 && anti && rule.spec.selects_itself(self.shape)
    }

    /// Most pods that a domain may take as it stands: no node, or no permission, means none.
    fn limit(&self, domain: &Domain) -> i64 {
        let levels = |rule: &Group| self.is_level(rule) && domain.name.is_some();
        let admits = |rule: &&Group| levels(rule) || self.admits(rule, domain);
        if !self.rules.iter().all(admits) {
            return 0;
        }
        let room = if domain.cost.is_some() { i64::MAX } else { domain.room };
        let alone = domain.name.is_some() && self.rules.iter().any(|r| self.is_alone(r, 1));
        if alone { room.min(1) } else { room }
    }

    /// Whether a pod of the shape may join a domain as it stands.
    fn admits(&self, rule: &Group, domain: &Domain) -> bool {
        rule.admits(self.shape, domain.name.as_deref(), || self.may_begin)
    }

    /// The first of a company chooses one domain for all: one with room enough, then the cheapest.
    fn begin(&self, limits: &mut [i64], count: i64) {
        let begins = |rule: &&Group| {
            rule.spec.rule == GroupRule::Affinity
                && rule.spec.owners.contains(self.shape)
                && rule.has_no_members()
        };
        if !self.rules.iter().any(begins) {
            return;
        }
        let open = (0..limits.len()).filter(|at| limits[*at] > 0);
        let best = open.min_by_key(|at| (limits[*at] < count, self.rank(*at)));
        for (at, limit) in limits.iter_mut().enumerate() {
            *limit = if Some(at) == best { *limit } else { 0 };
        }
    }

    /// Whether pods of the shape raise the counts of a spread that others obey.
    fn is_counted(&self) -> bool {
        self.rules.iter().any(|rule| self.is_load(rule))
    }

    /// True for a spread that counts the shape and that it need not obey itself.
    fn is_load(&self, rule: &Group) -> bool {
        let spec = &rule.spec;
        spec.rule.is_spread()
            && spec.members.contains(self.shape)
            && !spec.owners.contains(self.shape)
    }

    /// True for a spread that each pod of the shape both obeys and adds to.
    fn is_level(&self, rule: &Group) -> bool {
        rule.spec.rule.is_spread() && rule.spec.selects_itself(self.shape)
    }

    fn level(&self, rule: &Group) -> Option<Level> {
        let GroupRule::Spread { max_skew, .. } = rule.spec.rule else { return None };
        if !self.is_level(rule) {
            return None;
        }
        let name = |domain: &Domain| domain.name.clone().unwrap_or_default();
        let names: Vec<String> = self.domains.iter().map(name).collect();
        let outside = rule.universe().iter().filter(|known| !names.contains(known));
        Some(Level {
            here: names.iter().map(|name| rule.tally(name).members).collect(),
            leveled: names.iter().map(|name| rule.universe().contains(name)).collect(),
            outside: outside.map(|name| rule.tally(name).members).min().unwrap_or(i64::MAX),
            short: rule.is_short(),
            max_skew,
        })
    }

    /// What makes a domain the better of two equally full ones: room on nodes, then the cost.
    fn rank(&self, at: usize) -> (i64, usize) {
        let domain = &self.domains[at];
        (if domain.room > 0 { 0 } else { domain.cost.unwrap_or(i64::MAX) }, at)
    }

    /// Domains of a spread: the emptiest first; among equals those that grant preferences, then by
    /// rank.
    fn basins(&self, level: &Level, limits: &[i64]) -> Vec<Basin> {
        let dear = self.dear();
        let tie = |at: usize| (self.load(at), dear[at], self.pull(at).base, self.rank(at));
        let level = |at: usize| Pull { base: level.here[at], slope: 1 };
        basins(limits, tie, level)
    }

    /// Pods that obey no spread here and are counted by one go where they leave those who obey it
    /// the most room: where the fewest are that it counts.
    fn evenly(&self, limits: &[i64]) -> Vec<Basin> {
        let dear = self.dear();
        let tie = |at: usize| (dear[at], self.pull(at).base, self.rank(at));
        basins(limits, tie, |at| Pull { base: self.load(at), slope: 1 })
    }

    /// Pods of a domain that spreads count together with the shape although it obeys none of them.
    fn load(&self, at: usize) -> i64 {
        let name = self.domains[at].name.as_deref();
        let loads = self.rules.iter().filter(|rule| self.is_load(rule));
        let here = loads.map(|rule| name.map_or(0, |name| rule.tally(name).members));
        // The fullest of them is the first to leave no room.
        here.max().unwrap_or(0)
    }

    /// Without a spread: room on nodes before anything is bought, then preferences, then the cost.
    fn by_cost(&self, limits: &[i64], count: i64) -> Vec<i64> {
        let room = |at: usize| limits[at].min(self.domains[at].room);
        let order = |at: usize| (0, (0, at));
        let assigned = water_fill::fill(&self.pools(&vec![0; limits.len()], room, order), count);
        let dear = self.dear();
        let left = |at: usize| {
            if self.domains[at].cost.is_some() {
                limits[at].saturating_sub(assigned[at])
            } else {
                0
            }
        };
        let order = |at: usize| (i64::from(dear[at]), self.rank_to_buy(at));
        let more = self.pools(&assigned, left, order);
        let rest = water_fill::fill(&more, count - assigned.iter().sum::<i64>());
        assigned.iter().zip(rest).map(|(assigned, more)| assigned + more).collect()
    }

    fn rank_to_buy(&self, at: usize) -> (i64, usize) {
        (self.domains[at].cost.unwrap_or(i64::MAX), at)
    }

    /// Domains by what draws pods there; those that are too dear for a preference come after all
    /// others.
    fn pools(
        &self,
        assigned: &[i64],
        limit: impl Fn(usize) -> i64,
        order: impl Fn(usize) -> (i64, (i64, usize)),
    ) -> Vec<Basin> {
        const DEAR: i64 = 1 << 50;
        let limits: Vec<i64> = (0..assigned.len()).map(limit).collect();
        basins(&limits, &order, |at| {
            let Pull { base, slope } = self.pull(at);
            Pull { base: base + slope * assigned[at] + DEAR * order(at).0, slope: slope.max(0) }
        })
    }

    /// Whether a node in each domain costs more than a preference may.
    fn dear(&self) -> Vec<bool> {
        let least = self.domains.iter().filter_map(|domain| domain.cost).min();
        let most = least
            .map(|least| least.saturating_add(least.saturating_mul(self.premium_percent) / 100));
        let dear = |domain: &Domain| domain.cost.zip(most).is_some_and(|(p, most)| p > most);
        self.domains.iter().map(dear).collect()
    }

    /// How little a domain is wanted, and how that grows with each pod. With preferences, these
    /// decide; without, pods go where others already are that rules count together with them.
    fn pull(&self, at: usize) -> Pull {
        let name = self.domains[at].name.as_deref();
        if self.preferences.is_empty() {
            let near = self.rules.iter().filter(|rule| !rule.spec.rule.is_spread());
            let here = near.map(|rule| name.map_or(0, |name| rule.tally(name).members));
            return Pull { base: -here.sum::<i64>(), slope: -1 };
        }
        self.preferences.iter().fold(Pull::default(), |sum, preference| {
            let more = self.pull_of(preference, name);
            Pull { base: sum.base + more.base, slope: sum.slope + more.slope }
        })
    }

    fn pull_of(&self, preference: &Group, name: Option<&str>) -> Pull {
        let weight = preference.spec.preference.unwrap_or(1);
        let (owner, member) = (
            preference.spec.owners.contains(self.shape),
            preference.spec.members.contains(self.shape),
        );
        let here = name.map(|name| preference.tally(name)).unwrap_or_default();
        let both = i64::from(owner && member);
        let (base, slope) = match preference.spec.rule {
            // Where the label is missing a spread is not improved by any pod.
            GroupRule::Spread { .. } if name.is_none() => (1 << 20, 0),
            GroupRule::Spread { .. } => (here.members, both),
            GroupRule::AntiAffinity => {
                let (mine, theirs) = (here.members, here.owners);
                (mine * i64::from(owner) + theirs * i64::from(member), 2 * both)
            }
            GroupRule::Affinity => (-i64::from(here.members > 0), 0),
        };
        Pull { base: weight * base, slope: weight * slope }
    }

    /// Several spreads with counts of their own have no common level: pod by pod.
    fn one_by_one(&self, levels: &[Level], limits: &[i64], count: i64) -> Vec<i64> {
        let mut assigned = vec![0; limits.len()];
        for _ in 0..count {
            let fits = |at: &usize| {
                assigned[*at] < limits[*at]
                    && levels.iter().all(|level| level.admits(*at, &assigned))
            };
            let key = |at: &usize| (levels[0].here[*at] + assigned[*at], self.rank(*at));
            let Some(best) = (0..limits.len()).filter(fits).min_by_key(key) else { break };
            assigned[best] += 1;
        }
        assigned
    }
}

/// Domains with their levels, equal ones in an order of their own.
fn basins<K: Ord>(
    limits: &[i64],
    order: impl Fn(usize) -> K,
    level: impl Fn(usize) -> Pull,
) -> Vec<Basin> {
    let mut ranks: Vec<usize> = (0..limits.len()).collect();
    ranks.sort_by_key(|at| order(*at));
    let mut basins = vec![Basin::default(); limits.len()];
    for (rank, at) in ranks.into_iter().enumerate() {
        let Pull { base, slope } = level(at);
        basins[at] = Basin { base, slope, rank, limit: limits[at] };
    }
    basins
}

/// How little a domain is wanted.
#[derive(Clone, Copy, Debug, Default)]
struct Pull {
    base: i64,
    slope: i64,
}

/// Lowers limits to what the spreads can reach: a domain that can grow no further holds the minimum
/// down, and with it all others.
fn narrow(levels: &[Level], limits: &mut [i64]) {
    loop {
        let before = limits.to_vec();
        for level in levels {
            let floor = level.floor(limits);
            for (at, limit) in limits.iter_mut().enumerate() {
                let most = floor.saturating_add(level.max_skew) - level.here[at];
                *limit = (*limit).min(most.max(0));
            }
        }
        if before == limits {
            return;
        }
    }
}

impl Level {
    /// The minimum once each domain has been given some more.
    fn floor(&self, assigned: &[i64]) -> i64 {
        if self.short {
            return 0;
        }
        let all =
            self.here.iter().zip(assigned).zip(&self.leveled).filter(|(_, leveled)| **leveled);
        let least = all.map(|((here, assigned), _)| here.saturating_add(*assigned)).min();
        // Without any domain, nothing bounds the minimum but the pods themselves.
        let least = least.unwrap_or(i64::MAX).min(self.outside);
        if least == i64::MAX { i64::MAX / 2 } else { least }
    }

    fn admits(&self, at: usize, assigned: &[i64]) -> bool {
        self.here[at] + assigned[at] + 1 - self.floor(assigned) <= self.max_skew
    }
}
