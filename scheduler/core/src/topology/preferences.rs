//! Preferences: preferred node affinity, soft taints, and preferences about other pods.
//!
//! Invariant: a preference is a penalty, never a condition. A node that pods have named by
//! preferred node affinity, or that a soft taint does not keep them from, is bought whenever it can
//! be; a domain that a preference about other pods would choose is taken while its nodes cost
//! little more than elsewhere. Pods that find no place with their preferences are placed without
//! them.

use crate::model::Model;
use crate::vocabulary::labels::NODE_POOL;
use crate::vocabulary::requirements::Requirements;
use crate::vocabulary::requirements::requirement::{Operator, Requirement};
use crate::vocabulary::taint::{TaintEffect, Toleration};
use crate::world::shape::PodShape;

/// Which preferences are tried; each is given up after the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Preferences {
    /// All.
    All,
    /// Those about nodes; not those about other pods.
    Nodes,
    /// That of nodes not to get pods which do not tolerate their soft taints.
    Taints,
    /// None.
    None,
}

impl Preferences {
    /// All that can be given up.
    pub(crate) const KINDS: [Self; 3] = [Self::All, Self::Nodes, Self::Taints];

    /// What is tried next.
    pub(crate) fn next(self) -> Option<Self> {
        match self {
            Self::All => Some(Self::Nodes),
            Self::Nodes => Some(Self::Taints),
            Self::Taints => Some(Self::None),
            Self::None => None,
        }
    }

    /// True when the shape has preferences of the kind that is given up after this.
    pub(crate) fn any(self, model: &Model<'_>, shape: usize) -> bool {
        match self {
            Self::All => {
                model.topology.groups_of(shape).any(|group| group.spec.preference.is_some())
            }
            Self::Nodes => !model.shapes[shape].preferred_node_terms.is_empty(),
            Self::Taints => soft_taints(model, model.shapes[shape]).is_some(),
            Self::None => false,
        }
    }

    /// True while preferences about other pods are tried.
    pub(crate) fn of_pods(self) -> bool {
        self == Self::All
    }
}

/// The preference for a pool without soft taints, when some pool has one that the shape does not
/// tolerate.
pub(super) fn soft_taints(model: &Model<'_>, kind: &PodShape) -> Option<Requirements> {
    let soft = |tolerations: &[Toleration], pool: &crate::pool::NodePool| {
        pool.taints.iter().any(|taint| {
            taint.effect == TaintEffect::PreferNoSchedule
                && !tolerations.iter().any(|toleration| toleration.covers(taint))
        })
    };
    let pools = model.market.pools.iter();
    let shunned = pools.filter(|pool_offers| soft(&kind.tolerations, pool_offers.pool));
    let names: Vec<&str> = shunned.map(|pool_offers| pool_offers.pool.name.as_str()).collect();
    if names.is_empty() {
        return None;
    }
    let others = Requirement::new(Operator::NotIn, names).ok()?;
    Some([(NODE_POOL.to_owned(), others)].into_iter().collect())
}
