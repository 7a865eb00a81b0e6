//! Policy documents: IAM's JSON, parsed once.
//!
//! Invariant: what this evaluator does not understand is refused when the document is read, never
//! silently ignored when it is evaluated.

use serde::Deserialize;
use serde_json::{Map, Value};
use thiserror::Error;

use super::condition::Condition;

/// Why a document cannot be used.
#[derive(Debug, Error)]
pub enum PolicyError {
    /// Not the JSON of a policy.
    #[error("policy document: {0}")]
    Json(#[from] serde_json::Error),
    /// A condition operator that is not known here.
    #[error(
        "policy document: condition operator {0} is not supported; use IAM's string, arn, \
         bool, numeric or null operators"
    )]
    Operator(String),
    /// A policy variable: nothing here would fill it in.
    #[error("policy document: the variable in {0:?} is not supported; write the value itself")]
    Variable(String),
    /// A statement that names neither or both of a pair.
    #[error("policy document: statement {sid:?} needs exactly one of {pair}")]
    Pair {
        /// Statement id, when it has one.
        sid: Option<String>,
        /// The pair, for example `Action and NotAction`.
        pair: &'static str,
    },
}

/// A parsed policy document.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Statements in document order.
    pub statements: Vec<Statement>,
}

/// One statement.
#[derive(Clone, Debug)]
pub struct Statement {
    /// Its `Sid`.
    pub sid: Option<String>,
    /// True for `Deny`.
    pub deny: bool,
    /// Actions it speaks of.
    pub actions: Match,
    /// Resources it speaks of.
    pub resources: Match,
    /// Conditions, all of which have to hold.
    pub conditions: Vec<Condition>,
}

/// A list of patterns, or everything but them.
#[derive(Clone, Debug)]
pub enum Match {
    /// Any of these.
    Any(Vec<String>),
    /// None of these.
    NoneOf(Vec<String>),
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Document {
    #[serde(rename = "Version")]
    _version: Option<String>,
    #[serde(rename = "Id")]
    _id: Option<String>,
    statement: OneOrMany<RawStatement>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct RawStatement {
    sid: Option<String>,
    effect: Effect,
    action: Option<OneOrMany<String>>,
    not_action: Option<OneOrMany<String>>,
    resource: Option<OneOrMany<String>>,
    not_resource: Option<OneOrMany<String>>,
    #[serde(default)]
    condition: Map<String, Value>,
}

#[derive(Deserialize)]
enum Effect {
    Allow,
    Deny,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany<T> {
    Many(Vec<T>),
    One(T),
}

impl<T> OneOrMany<T> {
    fn into_vec(self) -> Vec<T> {
        match self {
            OneOrMany::Many(values) => values,
            OneOrMany::One(value) => vec![value],
        }
    }
}

impl Policy {
    /// Reads a document.
    ///
    /// # Errors
    /// When it is not a policy, or uses something this evaluator does not know.
    pub fn parse(document: &Value) -> Result<Policy, PolicyError> {
        refuse_variables(document)?;
        let document = Document::deserialize(document)?;
        let statements =
            document.statement.into_vec().into_iter().map(statement).collect::<Result<_, _>>()?;
        Ok(Policy { statements })
    }
}

fn refuse_variables(value: &Value) -> Result<(), PolicyError> {
    match value {
        Value::String(text) if text.contains("${") => Err(PolicyError::Variable(text.clone())),
        Value::Array(values) => values.iter().try_for_each(refuse_variables),
        Value::Object(fields) => fields.values().try_for_each(refuse_variables),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

fn statement(raw: RawStatement) -> Result<Statement, PolicyError> {
    let pair = |pair| PolicyError::Pair { sid: raw.sid.clone(), pair };
    let actions = one_of(raw.action, raw.not_action).ok_or(pair("Action and NotAction"))?;
    let resources =
        one_of(raw.resource, raw.not_resource).ok_or(pair("Resource and NotResource"))?;
    let mut conditions = Vec::new();
    for (operator, keys) in &raw.condition {
        for (key, values) in keys.as_object().into_iter().flatten() {
            conditions.push(Condition::parse(operator, key, values)?);
        }
    }
    let deny = matches!(raw.effect, Effect::Deny);
    Ok(Statement { sid: raw.sid, deny, actions, resources, conditions })
}

fn one_of(any: Option<OneOrMany<String>>, none: Option<OneOrMany<String>>) -> Option<Match> {
    match (any, none) {
        (Some(any), None) => Some(Match::Any(any.into_vec())),
        (None, Some(none)) => Some(Match::NoneOf(none.into_vec())),
        (None, None) | (Some(_), Some(_)) => None,
    }
}

impl Match {
    /// Whether the list speaks of `text`, compared with `matches`.
    pub fn covers(&self, text: &str, matches: fn(&str, &str) -> bool) -> bool {
        match self {
            Match::Any(patterns) => patterns.iter().any(|pattern| matches(pattern, text)),
            Match::NoneOf(patterns) => !patterns.iter().any(|pattern| matches(pattern, text)),
        }
    }

    /// The patterns as written.
    pub fn patterns(&self) -> &[String] {
        match self {
            Match::Any(patterns) | Match::NoneOf(patterns) => patterns,
        }
    }
}
