//! Requirements, selectors, taints and tolerations.
//!
//! Invariant: what goes out satisfies the comments of requirement.proto; keys are spelled as they
//! are today.

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use longshore_proto::types::v1::{
    LabelSelector, Operator, Requirement, RequirementTerm, Taint, TaintEffect, Toleration,
};

use super::fault::{FieldFault, FieldResult, Problem};
use crate::names;

/// A requirement from its parts.
///
/// # Errors
/// An unknown operator, or values that do not suit it.
pub fn requirement(key: &str, operator: &str, values: &[String]) -> FieldResult<Requirement> {
    let parsed = match operator {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        "Gt" => Operator::Gt,
        "Lt" => Operator::Lt,
        "Gte" => Operator::Gte,
        "Lte" => Operator::Lte,
        other => {
            let problem = Problem::UnknownOperator(other.to_owned());
            return Err(FieldFault::new(format!("[{key}]"), problem));
        }
    };
    if let Some(needs) = misfit(parsed, values) {
        let (operator, values) = (operator.to_owned(), values.to_vec());
        let problem = Problem::Values { operator, needs, values };
        return Err(FieldFault::new(format!("[{key}]"), problem));
    }
    Ok(Requirement {
        key: names::canonical(key).to_owned(),
        operator: parsed.into(),
        values: values.to_vec(),
        min_values: None,
    })
}

/// What an operator needs when it does not have it.
fn misfit(operator: Operator, values: &[String]) -> Option<&'static str> {
    match operator {
        Operator::In if values.is_empty() => Some("at least one value"),
        Operator::Exists | Operator::DoesNotExist if !values.is_empty() => Some("no values"),
        Operator::Gt | Operator::Lt | Operator::Gte | Operator::Lte => {
            let one_integer = values.len() == 1 && values[0].parse::<i64>().is_ok();
            (!one_integer).then_some("exactly one integer")
        }
        Operator::Unspecified
        | Operator::In
        | Operator::NotIn
        | Operator::Exists
        | Operator::DoesNotExist => None,
    }
}

/// `key In [value]`.
#[must_use]
pub fn equals(key: &str, value: &str) -> Requirement {
    within(key, [value.to_owned()])
}

/// `key In values`.
#[must_use]
pub fn within(key: &str, values: impl IntoIterator<Item = String>) -> Requirement {
    Requirement {
        key: names::canonical(key).to_owned(),
        operator: Operator::In.into(),
        values: values.into_iter().collect(),
        min_values: None,
    }
}

/// A conjunction of node selector expressions.
///
/// # Errors
/// As [`requirement`].
pub fn expressions(list: &[core::NodeSelectorRequirement]) -> FieldResult<Vec<Requirement>> {
    list.iter()
        .map(|r| requirement(&r.key, &r.operator, r.values.as_deref().unwrap_or_default()))
        .collect()
}

/// The alternatives of a node selector that can be had by their labels; empty ones select nothing.
///
/// # Errors
/// As [`requirement`].
pub fn node_terms(selector: &core::NodeSelector) -> FieldResult<Vec<RequirementTerm>> {
    let terms = selector.node_selector_terms.iter();
    let terms = terms.filter_map(|term| term.match_expressions.as_deref());
    let terms = terms.filter(|list| !list.is_empty());
    terms.map(|list| Ok(RequirementTerm { requirements: expressions(list)? })).collect()
}

/// A selector of labels.
///
/// # Errors
/// As [`requirement`].
pub fn selector(selector: &meta::LabelSelector) -> FieldResult<LabelSelector> {
    let expressions = selector.match_expressions.iter().flatten();
    Ok(LabelSelector {
        match_labels: selector.match_labels.clone().unwrap_or_default(),
        match_expressions: expressions
            .map(|r| {
                let values = r.values.as_deref().unwrap_or_default();
                // Pod labels keep their spelling: only node labels have changed theirs.
                Ok(Requirement { key: r.key.clone(), ..requirement(&r.key, &r.operator, values)? })
            })
            .collect::<FieldResult<_>>()?,
    })
}

/// A taint of a node or template.
///
/// # Errors
/// An unknown effect.
pub fn taint(key: &str, value: Option<&str>, effect: &str) -> FieldResult<Taint> {
    Ok(Taint {
        key: key.to_owned(),
        value: value.unwrap_or_default().to_owned(),
        effect: taint_effect(effect).map_err(|p| FieldFault::new(format!("[{key}]"), p))?.into(),
    })
}

/// Taints of a node or template.
///
/// # Errors
/// As [`taint`].
pub fn taints<'a>(list: impl IntoIterator<Item = &'a core::Taint>) -> FieldResult<Vec<Taint>> {
    list.into_iter().map(|t| taint(&t.key, t.value.as_deref(), &t.effect)).collect()
}

fn taint_effect(effect: &str) -> Result<TaintEffect, Problem> {
    match effect {
        "NoSchedule" => Ok(TaintEffect::NoSchedule),
        "PreferNoSchedule" => Ok(TaintEffect::PreferNoSchedule),
        "NoExecute" => Ok(TaintEffect::NoExecute),
        other => Err(Problem::Effect(other.to_owned())),
    }
}

/// The inverse of [`taint`].
#[must_use]
pub fn core_taint(taint: &Taint) -> core::Taint {
    let effect = match taint.effect() {
        TaintEffect::PreferNoSchedule => "PreferNoSchedule",
        TaintEffect::NoExecute => "NoExecute",
        TaintEffect::NoSchedule | TaintEffect::Unspecified => "NoSchedule",
    };
    core::Taint {
        key: taint.key.clone(),
        value: (!taint.value.is_empty()).then(|| taint.value.clone()),
        effect: effect.to_owned(),
        time_added: None,
    }
}

/// Tolerations; those with an operator or effect that this build does not know tolerate nothing. A
/// pod that was pinned to one node is of the same kind as before.
#[must_use]
pub fn tolerations(list: Option<&[core::Toleration]>) -> Vec<Toleration> {
    let all = list.unwrap_or_default().iter().filter_map(toleration);
    all.filter(|it| it.exists || it.key != names::UNREGISTERED_TAINT).collect()
}

/// True for a toleration of one value, which is what no operator means, too.
#[must_use]
pub fn is_equal(toleration: &core::Toleration) -> bool {
    matches!(toleration.operator.as_deref(), None | Some("" | "Equal"))
}

fn toleration(from: &core::Toleration) -> Option<Toleration> {
    let exists = from.operator.as_deref() == Some("Exists");
    if !exists && !is_equal(from) {
        return None;
    }
    let effect = match from.effect.as_deref().unwrap_or_default() {
        "" => TaintEffect::Unspecified,
        other => taint_effect(other).ok()?,
    };
    Some(Toleration {
        key: from.key.clone().unwrap_or_default(),
        exists,
        value: from.value.clone().unwrap_or_default(),
        effect: effect.into(),
    })
}

/// True when one of the tolerations lets a pod stay with the taint.
#[must_use]
pub fn tolerates(tolerations: &[Toleration], taint: &Taint) -> bool {
    tolerations.iter().any(|t| {
        let any_key = t.key.is_empty() && t.exists;
        let effect = t.effect() == TaintEffect::Unspecified || t.effect == taint.effect;
        effect && (any_key || (t.key == taint.key && (t.exists || t.value == taint.value)))
    })
}

/// True when a set of labels satisfies a selector, as the API server decides it.
#[must_use]
pub fn selects(
    selector: &LabelSelector,
    labels: &std::collections::BTreeMap<String, String>,
) -> bool {
    let equal = selector.match_labels.iter().all(|(k, v)| labels.get(k) == Some(v));
    equal
        && selector.match_expressions.iter().all(|r| {
            let value = labels.get(&r.key);
            let listed = value.is_some_and(|v| r.values.contains(v));
            match r.operator() {
                Operator::In => listed,
                Operator::NotIn => !listed,
                Operator::Exists => value.is_some(),
                Operator::DoesNotExist => value.is_none(),
                Operator::Unspecified
                | Operator::Gt
                | Operator::Lt
                | Operator::Gte
                | Operator::Lte => false,
            }
        })
}

/// Operator as the API writes it; nothing for an unspecified one.
#[must_use]
pub const fn api_operator(operator: Operator) -> Option<crate::api::Operator> {
    use crate::api::Operator as Api;
    Some(match operator {
        Operator::Unspecified => return None,
        Operator::In => Api::In,
        Operator::NotIn => Api::NotIn,
        Operator::Exists => Api::Exists,
        Operator::DoesNotExist => Api::DoesNotExist,
        Operator::Gt => Api::Gt,
        Operator::Lt => Api::Lt,
        Operator::Gte => Api::Gte,
        Operator::Lte => Api::Lte,
    })
}

/// Name of an operator of the API, as manifests write it.
#[must_use]
pub const fn operator_name(operator: crate::api::Operator) -> &'static str {
    use crate::api::Operator as Api;
    match operator {
        Api::In => "In",
        Api::NotIn => "NotIn",
        Api::Exists => "Exists",
        Api::DoesNotExist => "DoesNotExist",
        Api::Gt => "Gt",
        Api::Lt => "Lt",
        Api::Gte => "Gte",
        Api::Lte => "Lte",
    }
}
