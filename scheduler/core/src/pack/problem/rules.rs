//! Rules about which pods may share one node: hostname spread, affinity, anti-affinity, host ports.
//!
//! Invariant: a rule is a group with owners (who obey it) and members (who are counted); everything
//! about it that a node needs is the number of each that the node holds.

/// What a rule demands within one domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RuleKind {
    /// At most this many members beside an owner.
    AtMost(i64),
    /// An owner needs a member.
    Together,
    /// An owner bears no other member.
    Apart,
}

/// A rule over single nodes. Indexes of kinds are those of the shapes of the model.
#[derive(Clone, Debug)]
pub(crate) struct NodeRule {
    /// What it demands.
    pub(crate) kind: RuleKind,
    /// Whether each shape obeys it.
    pub(crate) owners: Vec<bool>,
    /// Whether each shape is counted by it.
    pub(crate) members: Vec<bool>,
}

/// How many members and owners of a rule one domain holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Pods counted.
    pub(crate) members: i64,
    /// Pods that obey.
    pub(crate) owners: i64,
}

/// What one node holds of each rule that it holds anything of, in order of rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NodeState(Vec<(usize, Tally)>);

/// All node rules of a problem.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeRules {
    rules: Vec<NodeRule>,
    of_shape: Vec<Vec<usize>>,
}

impl NodeRules {
    /// Indexes rules by the shapes they touch.
    pub(crate) fn new(rules: Vec<NodeRule>, shapes: usize) -> Self {
        let touches = |rule: &NodeRule, shape: usize| rule.owners[shape] || rule.members[shape];
        let of_shape = (0..shapes)
            .map(|shape| (0..rules.len()).filter(|r| touches(&rules[*r], shape)).collect())
            .collect();
        Self { rules, of_shape }
    }

    /// True when no rule touches the shape.
    pub(crate) fn is_free(&self, shape: usize) -> bool {
        self.of_shape[shape].is_empty()
    }

    /// True when the shape must join a member on the same node.
    pub(crate) fn needs_affinity(&self, shape: usize) -> bool {
        self.of_shape[shape].iter().any(|rule| {
            let rule = &self.rules[*rule];
            rule.kind == RuleKind::Together && rule.owners[shape]
        })
    }

    /// True when the shape has joined a member on this node wherever a rule wants it to.
    pub(crate) fn meets_affinity(&self, shape: usize, node: &NodeState) -> bool {
        self.of_shape[shape].iter().all(|index| {
            let rule = &self.rules[*index];
            rule.kind != RuleKind::Together || !rule.owners[shape] || node.tally(*index).members > 0
        })
    }

    /// True when a pod of `leader` is company for one of `shape`.
    pub(crate) fn leads(&self, leader: usize, shape: usize) -> bool {
        self.of_shape[shape].iter().any(|rule| {
            let rule = &self.rules[*rule];
            rule.kind == RuleKind::Together && rule.owners[shape] && rule.members[leader]
        })
    }

    /// True when the shape may be the first of its company: every rule that wants a member is one
    /// it satisfies itself and that has none anywhere yet.
    pub(crate) fn may_begin(&self, shape: usize, occupied: &[bool]) -> bool {
        self.of_shape[shape].iter().all(|index| {
            let rule = &self.rules[*index];
            rule.kind != RuleKind::Together
                || !rule.owners[shape]
                || (rule.members[shape] && !occupied[*index])
        })
    }

    /// The least number of nodes that pods, given as numbers of each shape, must be on for what
    /// they may not share.
    pub(crate) fn nodes_min(&self, pods: impl Iterator<Item = (usize, i64)>) -> i64 {
        let mut counts = vec![0; self.rules.len()];
        for (shape, count) in pods {
            for index in &self.of_shape[shape] {
                let rule = &self.rules[*index];
                counts[*index] += if rule.owners[shape] && rule.members[shape] { count } else { 0 };
            }
        }
        let nodes = self.rules.iter().zip(counts).map(|(rule, count)| match rule.kind {
            RuleKind::AtMost(most) => (count + most.max(1) - 1) / most.max(1),
            RuleKind::Apart => count,
            RuleKind::Together => 0,
        });
        nodes.max().unwrap_or(0)
    }

    /// Rules that want company, with their indexes.
    pub(crate) fn required_affinities(&self) -> impl Iterator<Item = (usize, &NodeRule)> {
        self.rules.iter().enumerate().filter(|(_, rule)| rule.kind == RuleKind::Together)
    }

    /// Number of rules.
    pub(crate) fn len(&self) -> usize {
        self.rules.len()
    }

    /// Marks the rules that a pod of the shape is a member of.
    pub(crate) fn mark_begun(&self, shape: usize, occupied: &mut [bool]) {
        for rule in &self.of_shape[shape] {
            occupied[*rule] |= self.rules[*rule].members[shape];
        }
    }

    /// How many more pods of the shape the node may take. `first` lets it begin a company.
    pub(crate) fn allowance(&self, shape: usize, node: &NodeState, first: bool) -> i64 {
        let each = self.of_shape[shape].iter().map(|index| {
            let rule = &self.rules[*index];
            rule.allowance(shape, node.tally(*index), first)
        });
        each.min().unwrap_or(i64::MAX)
    }

    /// Counts pods of the shape on the node; `count` may be negative.
    pub(crate) fn record(&self, shape: usize, count: i64, node: &mut NodeState) {
        for index in &self.of_shape[shape] {
            let rule = &self.rules[*index];
            let tally = node.tally_mut(*index);
            tally.members += if rule.members[shape] { count } else { 0 };
            tally.owners += if rule.owners[shape] { count } else { 0 };
        }
    }
}

impl NodeRule {
    fn allowance(&self, shape: usize, here: Tally, first: bool) -> i64 {
        let (owner, member) = (self.owners[shape], self.members[shape]);
        match self.kind {
            RuleKind::AtMost(_) if !owner && here.owners == 0 => i64::MAX,
            RuleKind::AtMost(most) if member => (most - here.members).max(0),
            RuleKind::AtMost(most) => unbounded_if(!owner || here.members <= most),
            RuleKind::Together => unbounded_if(!owner || here.members > 0 || (first && member)),
            RuleKind::Apart if member && here.owners > 0 => 0,
            RuleKind::Apart if owner && here.members > 0 => 0,
            RuleKind::Apart if owner && member => 1,
            RuleKind::Apart => i64::MAX,
        }
    }
}

impl NodeState {
    fn tally(&self, rule: usize) -> Tally {
        let found = self.0.binary_search_by_key(&rule, |(rule, _)| *rule);
        found.map_or_else(|_| Tally::default(), |at| self.0[at].1)
    }

    fn tally_mut(&mut self, rule: usize) -> &mut Tally {
        let at = match self.0.binary_search_by_key(&rule, |(rule, _)| *rule) {
            Ok(at) => at,
            Err(at) => {
                self.0.insert(at, (rule, Tally::default()));
                at
            }
        };
        &mut self.0[at].1
    }
}

fn unbounded_if(allowed: bool) -> i64 {
    if allowed { i64::MAX } else { 0 }
}
