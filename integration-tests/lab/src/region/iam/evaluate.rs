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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn verdict(statements: serde_json::Value, action: &str, resource: &str) -> String {
        let policy = Policy::parse(&json!({"Statement": statements})).expect("policy");
        let context = Context::default().with("aws:RequestedRegion", "us-east-1");
        match evaluate(&[policy], Ask { action, resource, context: &context }) {
            Verdict::Allowed => "allowed".to_owned(),
            Verdict::ImplicitDeny => "implicit".to_owned(),
            Verdict::ExplicitDeny(statement) => statement.sid.clone().unwrap_or_default(),
        }
    }

    #[test]
    fn an_explicit_deny_wins_wherever_it_stands() {
        let allow = json!({"Effect": "Allow", "Action": "ec2:*", "Resource": "*"});
        let deny = json!({
            "Sid": "NoMetal",
            "Effect": "Deny",
            "Action": ["ec2:RunInstances"],
            "Resource": "arn:aws:ec2:*:*:instance/*",
        });
        let instance = "arn:aws:ec2:us-east-1:1:instance/i-1";
        for statements in [json!([allow, deny]), json!([deny, allow])] {
            assert_eq!(verdict(statements.clone(), "ec2:RunInstances", instance), "NoMetal");
            assert_eq!(verdict(statements, "ec2:CreateTags", instance), "allowed");
        }
        assert_eq!(verdict(json!([allow]), "iam:PassRole", "*"), "implicit");
    }

    #[test]
    fn not_action_and_not_resource_speak_of_the_rest() {
        let statement = json!({
            "Effect": "Allow",
            "NotAction": ["iam:*"],
            "NotResource": "arn:aws:ec2:*:*:subnet/*",
        });
        assert_eq!(
            verdict(statement.clone(), "ec2:RunInstances", "arn:aws:ec2:r:1:image/a"),
            "allowed"
        );
        assert_eq!(verdict(statement.clone(), "iam:PassRole", "arn:aws:iam::1:role/r"), "implicit");
        assert_eq!(verdict(statement, "ec2:RunInstances", "arn:aws:ec2:r:1:subnet/s"), "implicit");
    }

    #[test]
    fn every_condition_has_to_hold() {
        let statement = |region: &str| {
            json!({
                "Effect": "Allow",
                "Action": "ec2:DescribeInstances",
                "Resource": "*",
                "Condition": {
                    "StringEquals": {"aws:RequestedRegion": region},
                    "Null": {"aws:TokenIssueTime": "true"},
                },
            })
        };
        assert_eq!(verdict(statement("us-east-1"), "ec2:DescribeInstances", "*"), "allowed");
        assert_eq!(verdict(statement("us-east-2"), "ec2:DescribeInstances", "*"), "implicit");
    }

    #[test]
    fn documents_that_cannot_be_evaluated_are_refused() {
        for statement in [
            json!({"Effect": "Allow", "Resource": "*"}),
            json!({"Effect": "Allow", "Action": "a:b", "Resource": "*", "Principal": "*"}),
            json!({"Effect": "Allow", "Action": "a:b", "Resource": "arn:${aws:PrincipalTag/t}"}),
            json!({"Effect": "Allow", "Action": "a:b", "NotAction": "c:d", "Resource": "*"}),
            json!({"Effect": "Allow", "Action": "a:b", "Resource": "*",
                   "Condition": {"StringSortOf": {"k": "v"}}}),
        ] {
            assert!(Policy::parse(&json!({"Statement": statement})).is_err(), "{statement}");
        }
    }
}
