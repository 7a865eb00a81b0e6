//! One condition of a statement: operator, context key, accepted values.
//!
//! Invariant: follows IAM's rules for absent keys: a positive operator fails on them, a negated one
//! and `…IfExists` hold, `ForAllValues` holds, `ForAnyValue` fails.

use serde_json::Value;

use super::{Context, PolicyError, pattern};

/// A condition.
#[derive(Clone, Debug)]
pub struct Condition {
    /// Context key.
    pub key: String,
    /// Accepted values.
    pub values: Vec<String>,
    test: Test,
    quantifier: Quantifier,
    if_exists: bool,
}

#[derive(Clone, Copy, Debug)]
struct Test {
    compare: fn(&str, &str) -> bool,
    negated: bool,
    null: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quantifier {
    Single,
    ForAll,
    ForAny,
}

impl Condition {
    /// Reads one operator, key and values.
    pub fn parse(operator: &str, key: &str, values: &Value) -> Result<Condition, PolicyError> {
        let (quantifier, rest) = quantifier(operator);
        let (rest, if_exists) = match rest.strip_suffix("IfExists") {
            Some(base) => (base, true),
            None => (rest, false),
        };
        let test = test(rest).ok_or_else(|| PolicyError::Operator(operator.to_owned()))?;
        Ok(Condition { key: key.to_owned(), values: texts(values), test, quantifier, if_exists })
    }

    /// Whether it holds in a context.
    pub fn holds(&self, context: &Context) -> bool {
        let present = context.get(&self.key).filter(|values| !values.is_empty());
        if self.test.null {
            let absent_wanted = self.values.iter().any(|value| value == "true");
            return present.is_none() == absent_wanted;
        }
        let Some(found) = present else { return self.holds_when_absent() };
        match self.quantifier {
            Quantifier::Single | Quantifier::ForAny => {
                found.iter().any(|value| self.accepts(value))
            }
            Quantifier::ForAll => found.iter().all(|value| self.accepts(value)),
        }
    }

    fn holds_when_absent(&self) -> bool {
        match self.quantifier {
            Quantifier::ForAll => true,
            Quantifier::ForAny => false,
            Quantifier::Single => self.if_exists || self.test.negated,
        }
    }

    fn accepts(&self, found: &str) -> bool {
        let equal = self.values.iter().any(|wanted| (self.test.compare)(wanted, found));
        equal != self.test.negated
    }
}

fn quantifier(operator: &str) -> (Quantifier, &str) {
    match operator.split_once(':') {
        Some(("ForAllValues", rest)) => (Quantifier::ForAll, rest),
        Some(("ForAnyValue", rest)) => (Quantifier::ForAny, rest),
        _ => (Quantifier::Single, operator),
    }
}

fn test(operator: &str) -> Option<Test> {
    let positive = |compare| Some(Test { compare, negated: false, null: false });
    let negative = |compare| Some(Test { compare, negated: true, null: false });
    let equal: fn(&str, &str) -> bool = |wanted, found| wanted == found;
    let equal_ignoring_case: fn(&str, &str) -> bool =
        |wanted, found| wanted.eq_ignore_ascii_case(found);
    match operator {
        "StringEquals" => positive(equal),
        "StringNotEquals" => negative(equal),
        "StringEqualsIgnoreCase" | "Bool" => positive(equal_ignoring_case),
        "StringNotEqualsIgnoreCase" => negative(equal_ignoring_case),
        "StringLike" | "ArnLike" | "ArnEquals" => positive(pattern::matches),
        "StringNotLike" | "ArnNotLike" | "ArnNotEquals" => negative(pattern::matches),
        "NumericEquals" => positive(|wanted, found| number(found) == number(wanted)),
        "NumericLessThan" => positive(|wanted, found| number(found) < number(wanted)),
        "NumericLessThanEquals" => positive(|wanted, found| number(found) <= number(wanted)),
        "NumericGreaterThan" => positive(|wanted, found| number(found) > number(wanted)),
        "NumericGreaterThanEquals" => positive(|wanted, found| number(found) >= number(wanted)),
        "Null" => Some(Test { compare: equal, negated: false, null: true }),
        _ => None,
    }
}

/// Not a number compares false with everything.
fn number(text: &str) -> f64 {
    text.parse().unwrap_or(f64::NAN)
}

fn texts(values: &Value) -> Vec<String> {
    match values {
        Value::Array(values) => values.iter().flat_map(texts).collect(),
        Value::String(text) => vec![text.clone()],
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            vec![values.to_string()]
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn holds(operator: &str, values: Value, found: &[&str]) -> bool {
        let condition = Condition::parse(operator, "aws:Key", &values).expect("operator");
        let context = match found {
            [] => Context::default(),
            [one] => Context::default().with("AWS:key", one),
            many => {
                let tags = many.iter().map(|key| ((*key).to_owned(), String::new())).collect();
                let condition = Condition { key: "aws:TagKeys".to_owned(), ..condition };
                return condition.holds(&Context::default().with_request_tags(&tags));
            }
        };
        condition.holds(&context)
    }

    #[test]
    fn operators_follow_iam() {
        for (operator, values, found, expected) in [
            ("StringEquals", json!("a"), &["a"][..], true),
            ("StringEquals", json!(["a", "b"]), &["b"], true),
            ("StringEquals", json!("a"), &[], false),
            ("StringEqualsIfExists", json!("a"), &[], true),
            ("StringEqualsIfExists", json!("a"), &["b"], false),
            ("StringNotEquals", json!("a"), &["b"], true),
            ("StringNotEquals", json!(["a", "b"]), &["b"], false),
            ("StringNotEquals", json!("a"), &[], true),
            ("StringLike", json!("kube*"), &["kubernetes"], true),
            ("Bool", json!(true), &["true"], true),
            ("Null", json!("true"), &[], true),
            ("Null", json!("true"), &["x"], false),
            ("Null", json!("false"), &["x"], true),
            ("ForAllValues:StringEquals", json!(["a", "b"]), &["a", "b"], true),
            ("ForAllValues:StringEquals", json!(["a"]), &["a", "b"], false),
            ("ForAllValues:StringEquals", json!(["a"]), &[], true),
            ("ForAnyValue:StringEquals", json!(["a"]), &["a", "b"], true),
            ("ForAnyValue:StringEquals", json!(["a"]), &[], false),
            ("NumericLessThan", json!(3), &["2"], true),
            ("NumericLessThan", json!(3), &["x"], false),
        ] {
            assert_eq!(
                holds(operator, values.clone(), found),
                expected,
                "{operator} {values} {found:?}"
            );
        }
        assert!(Condition::parse("StringSortOf", "k", &json!("v")).is_err());
    }
}
