//! Policy evaluation: an explicit deny wins, then an allow, else refused.
//!
//! Invariant: pure; equal policies and question give an equal verdict.

use super::policy::{Policy, Statement};
use super::{Context, pattern};

/// A question put to the policies.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// Action, for example `ec2:RunInstances`.
    pub action: &'a str,
    /// ARN of the resource, or `*` for actions without one.
    pub resource: &'a str,
    /// Request context.
    pub context: &'a Context,
}

/// The answer.
#[derive(Clone, Debug)]
pub enum Verdict<'a> {
    /// Some statement allows it and none denies it.
    Allowed,
    /// No statement speaks of it.
    ImplicitDeny,
    /// This statement denies it.
    ExplicitDeny(&'a Statement),
}

/// Evaluates `policies` on one question.
pub fn evaluate<'a>(policies: &'a [Policy], ask: Ask<'_>) -> Verdict<'a> {
    let applicable = || {
        policies
            .iter()
            .flat_map(|policy| &policy.statements)
            .filter(|statement| applies(statement, ask))
    };
    if let Some(statement) = applicable().find(|statement| statement.deny) {
        return Verdict::ExplicitDeny(statement);
    }
    match applicable().next() {
        Some(_) => Verdict::Allowed,
        None => Verdict::ImplicitDeny,
    }
}

fn applies(statement: &Statement, ask: Ask<'_>) -> bool {
    statement.actions.covers(ask.action, pattern::matches_ignoring_case)
        && statement.resources.covers(ask.resource, pattern::matches)
        && statement.conditions.iter().all(|condition| condition.holds(ask.context))
}
