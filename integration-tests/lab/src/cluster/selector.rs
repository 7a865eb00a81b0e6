//! Label and field selectors, in the forms of query strings and of `LabelSelector` objects.
//!
//! Invariant: a selector that parsed never fails to match or not match.

use std::collections::BTreeMap;

use serde_json::Value;

use super::error::ApiError;
use super::object;

/// A conjunction of requirements on labels. The empty one matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    rule: Rule,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Absent,
    Above(i64),
    Below(i64),
}

impl LabelSelector {
    /// Parses the form used in query strings: `a=b,c!=d,e in (f,g),h,!i`.
    ///
    /// # Errors
    /// [`ApiError::BadRequest`] quoting what was not understood.
    pub fn parse(text: &str) -> Result<Self, ApiError> {
        let parts = split_outside_parentheses(text);
        let requirements = parts.into_iter().filter(|part| !part.is_empty()).map(parse_requirement);
        Ok(Self { requirements: requirements.collect::<Result<_, _>>()? })
    }

    /// Reads a `LabelSelector` object: matchLabels and matchExpressions.
    pub fn of_object(selector: &Value) -> Self {
        let equals = object::string_map(&selector["matchLabels"])
            .into_iter()
            .map(|(key, value)| Requirement { key, rule: Rule::In(vec![value]) });
        let expressions =
            object::items(&selector["matchExpressions"]).iter().filter_map(requirement_of);
        Self { requirements: equals.chain(expressions).collect() }
    }

    /// Reads a list of `{key, operator, values}` as node selector terms hold them.
    pub fn of_expressions(expressions: &Value) -> Self {
        Self {
            requirements: object::items(expressions).iter().filter_map(requirement_of).collect(),
        }
    }

    /// A selector that demands exactly these labels.
    pub fn of_map(labels: &BTreeMap<String, String>) -> Self {
        let equals = |(key, value): (&String, &String)| Requirement {
            key: key.clone(),
            rule: Rule::In(vec![value.clone()]),
        };
        Self { requirements: labels.iter().map(equals).collect() }
    }

    /// True when nothing is demanded.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// True when the labels, looked up by key, satisfy every requirement.
    pub fn matches<'a>(&self, value_of: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.iter().all(|requirement| {
            let value = value_of(&requirement.key);
            match &requirement.rule {
                Rule::In(values) => value.is_some_and(|value| values.iter().any(|v| v == value)),
                Rule::NotIn(values) => {
                    !value.is_some_and(|value| values.iter().any(|v| v == value))
                }
                Rule::Exists => value.is_some(),
                Rule::Absent => value.is_none(),
                Rule::Above(bound) => number(value).is_some_and(|number| number > *bound),
                Rule::Below(bound) => number(value).is_some_and(|number| number < *bound),
            }
        })
    }

    /// True when the object's labels satisfy it.
    pub fn matches_object(&self, object: &Value) -> bool {
        self.requirements.is_empty() || self.matches(|key| object::label(object, key))
    }

    /// True when a map of labels satisfies it.
    pub fn matches_map(&self, labels: &BTreeMap<String, String>) -> bool {
        self.matches(|key| labels.get(key).map(String::as_str))
    }
}

fn number(value: Option<&str>) -> Option<i64> {
    value?.parse().ok()
}

fn split_outside_parentheses(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let parts = text.split(|character| {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        character == ',' && depth == 0
    });
    parts.map(str::trim).collect()
}

fn parse_requirement(part: &str) -> Result<Requirement, ApiError> {
    let requirement = |key: &str, rule| Requirement { key: key.trim().to_owned(), rule };
    let one = |value: &str| vec![value.trim().to_owned()];
    if let Some((key, values)) = part.split_once(" notin ") {
        return Ok(requirement(key, Rule::NotIn(parse_set(part, values)?)));
    }
    if let Some((key, values)) = part.split_once(" in ") {
        return Ok(requirement(key, Rule::In(parse_set(part, values)?)));
    }
    if let Some((key, value)) = part.split_once("!=") {
        return Ok(requirement(key, Rule::NotIn(one(value))));
    }
    if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return Ok(requirement(key, Rule::In(one(value))));
    }
    if part.contains([' ', '(', ')']) {
        return Err(unparsable(part));
    }
    Ok(match part.strip_prefix('!') {
        Some(key) => requirement(key, Rule::Absent),
        None => requirement(part, Rule::Exists),
    })
}

fn parse_set(part: &str, values: &str) -> Result<Vec<String>, ApiError> {
    let inner = values.trim().strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    let inner = inner.ok_or_else(|| unparsable(part))?;
    Ok(inner.split(',').map(|value| value.trim().to_owned()).collect())
}

fn unparsable(part: &str) -> ApiError {
    ApiError::BadRequest(format!("unable to parse requirement: \"{part}\""))
}

fn requirement_of(expression: &Value) -> Option<Requirement> {
    let values = || {
        let values = object::items(&expression["values"]).iter();
        values.filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
    };
    let bound = || values().first().and_then(|value| value.parse().ok()).unwrap_or(i64::MAX);
    let rule = match expression["operator"].as_str()? {
        "In" => Rule::In(values()),
        "NotIn" => Rule::NotIn(values()),
        "Exists" => Rule::Exists,
        "DoesNotExist" => Rule::Absent,
        "Gt" => Rule::Above(bound()),
        "Lt" => Rule::Below(bound()),
        _ => Rule::In(Vec::new()),
    };
    Some(Requirement { key: expression["key"].as_str()?.to_owned(), rule })
}

/// A conjunction of equalities on fields, `metadata.name=x,status.phase!=Failed`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    terms: Vec<FieldTerm>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct FieldTerm {
    path: Vec<String>,
    value: String,
    equal: bool,
}

impl FieldSelector {
    /// Parses the form used in query strings. Any path to a scalar is accepted.
    ///
    /// # Errors
    /// [`ApiError::BadRequest`] quoting the term without an operator.
    pub fn parse(text: &str) -> Result<Self, ApiError> {
        let terms = text.split(',').map(str::trim).filter(|term| !term.is_empty());
        Ok(Self { terms: terms.map(parse_field_term).collect::<Result<_, _>>()? })
    }

    /// True when every term holds for the object; an absent field reads as empty.
    pub fn matches(&self, object: &Value) -> bool {
        self.terms.iter().all(|term| {
            let field = term.path.iter().fold(object, |value, step| &value[step.as_str()]);
            let text = field.as_str().map_or_else(|| field.to_string(), str::to_owned);
            let equal = match field.is_null() {
                true => term.value.is_empty() || term.value == "false",
                false => text == term.value,
            };
            equal == term.equal
        })
    }
}

fn parse_field_term(term: &str) -> Result<FieldTerm, ApiError> {
    let (path, value, equal) = if let Some((path, value)) = term.split_once("!=") {
        (path, value, false)
    } else if let Some((path, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
        (path, value, true)
    } else {
        return Err(ApiError::BadRequest(format!("invalid field selector: \"{term}\"")));
    };
    Ok(FieldTerm {
        path: path.split('.').map(str::to_owned).collect(),
        value: value.trim().to_owned(),
        equal,
    })
}
