//! Holds in words.
//!
//! Invariant: each text says what keeps the node and what would let it go.

use std::fmt;

use super::HoldRule;

impl HoldRule {
    /// A word for programs, in capitals.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotInitialized => "NOT_INITIALIZED",
            Self::Awaited => "REPLACES_ANOTHER",
            Self::CalledOff { .. } => "DISRUPTION_CALLED_OFF",
            Self::Unreadable => "UNREADABLE_OBJECT",
            Self::DoNotDisrupt { .. } => "DO_NOT_DISRUPT",
            Self::NotPlaceable => "POD_NOT_PLACEABLE",
            Self::Budget { .. } => "POD_DISRUPTION_BUDGET",
            Self::TwoBudgets { .. } => "TWO_POD_DISRUPTION_BUDGETS",
            Self::PoolBudget { .. } => "NODE_POOL_BUDGET",
            Self::Canary => "CANARY",
            Self::Evictions { .. } => "EVICTIONS_PER_HOUR",
            Self::WhenEmpty { .. } => "CONSOLIDATION_POLICY",
            Self::Never => "CONSOLIDATE_AFTER_NEVER",
            Self::Replicas => "REPLICAS",
            Self::NotQuiet { .. } => "NOT_QUIET",
            Self::NothingBetter { .. } => "NOTHING_BETTER",
            Self::Receives => "RECEIVES_PODS",
            Self::NotInThisPlan => "NOT_IN_THIS_PLAN",
        }
    }
}

impl fmt::Display for HoldRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotInitialized => {
                f.write_str("it has not taken pods yet; see its condition Initialized")
            }
            Self::Awaited => {
                f.write_str("it takes the place of a node that has not gone; its pods are to come")
            }
            Self::CalledOff { for_ms } => {
                write!(f, "its disruption was called off; it may go in {}", Span(*for_ms))
            }
            Self::Unreadable => f.write_str(
                "it, its node or pool, a pod on it or a PodDisruptionBudget of such a pod cannot be \
                 read; mend what the warning Events name",
            ),
            Self::DoNotDisrupt { for_ms } => write_do_not_disrupt(f, *for_ms),
            Self::NotPlaceable => f.write_str(
                "it could not be placed on another node, as it is; see what explains the pod",
            ),
            Self::Budget { pods, never } => write_budget(f, *pods, *never),
            Self::TwoBudgets { budgets } => {
                let names: Vec<String> = budgets.iter().map(ToString::to_string).collect();
                let names = names.join(" and ");
                write!(f, "PodDisruptionBudgets {names} cover it, and then it is never evicted")
            }
            Self::PoolBudget { disturbed, allowed, reason } => {
                write_pool_budget(f, *disturbed, *allowed, reason.name())
            }
            Self::Canary => {
                f.write_str("the first new nodes are looked at; see its condition RolloutHealthy")
            }
            Self::Evictions { pods, left } => write_evictions(f, *pods, *left),
            Self::WhenEmpty { pods } => {
                let pods = count(*pods, "pod");
                write!(f, "consolidationPolicy WhenEmpty, and {pods} would have to move")
            }
            Self::Never => f.write_str("consolidateAfter Never"),
            Self::Replicas => f.write_str("it keeps spec.replicas nodes"),
            Self::NotQuiet { for_ms } => {
                let span = Span(*for_ms);
                write!(f, "pods came or left, or it is new; it may be consolidated in {span}")
            }
            Self::NothingBetter { pods, less_after_ms } => {
                write_nothing_better(f, *pods, *less_after_ms)
            }
            Self::Receives => f.write_str("pods that have to leave other nodes go there"),
            Self::NotInThisPlan => {
                f.write_str("nothing; the plan had more to do first, and the next one looks again")
            }
        }
    }
}

fn write_pool_budget(
    f: &mut fmt::Formatter<'_>,
    disturbed: i64,
    allowed: i64,
    reason: &str,
) -> fmt::Result {
    let nodes = count(usize::try_from(disturbed).unwrap_or_default(), "node");
    let are = if disturbed == 1 { "is" } else { "are" };
    write!(f, "its budgets allow {allowed} at once for {reason}, and {nodes} {are} disrupted ")?;
    f.write_str("or not ready")
}

fn write_evictions(f: &mut fmt::Formatter<'_>, pods: usize, left: i64) -> fmt::Result {
    let pods = count(pods, "pod");
    write!(
        f,
        "its annotation longshore.dev/evictions-per-hour lets {left} more pods move within "
    )?;
    write!(f, "this hour, and {pods} would have to")
}

fn write_do_not_disrupt(f: &mut fmt::Formatter<'_>, for_ms: Option<i64>) -> fmt::Result {
    f.write_str("its annotation karpenter.sh/do-not-disrupt")?;
    match for_ms {
        None => f.write_str("; remove it to let the node go"),
        Some(for_ms) => write!(f, ", for {} more", Span(for_ms)),
    }
}

fn write_budget(f: &mut fmt::Formatter<'_>, pods: usize, never: bool) -> fmt::Result {
    let pods = count(pods, "pod");
    if never {
        write!(f, "it can never allow an eviction, and covers {pods} here; ")?;
        return f.write_str("raise maxUnavailable or lower minAvailable");
    }
    write!(f, "it allows no eviction now, and covers {pods} here")
}

fn write_nothing_better(
    f: &mut fmt::Formatter<'_>,
    pods: usize,
    less_after_ms: Option<i64>,
) -> fmt::Result {
    let pods = count(pods, "pod");
    write!(f, "no other nodes have room for its {pods}, and no cheaper node is worth it")?;
    less_after_ms.map_or(Ok(()), |in_ms| {
        write!(f, "; any saving of two per cent will be in {}", Span(in_ms))
    })
}

fn count(number: usize, what: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {what}{ending}")
}

/// Milliseconds as people say them, rounded up.
struct Span(i64);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.max(0).saturating_add(999) / 1000;
        match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
            (0, 0, seconds) => write!(f, "{seconds} s"),
            (0, minutes, 0) => write!(f, "{minutes} min"),
            (0, minutes, seconds) => write!(f, "{minutes} min {seconds} s"),
            (hours, minutes, _) => write!(f, "{hours} h {minutes} min"),
        }
    }
}
