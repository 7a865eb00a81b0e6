//! Requirements, selectors, taints and tolerations on the wire and in the planner.

use longshore_core::vocabulary::requirements::Requirements;
use longshore_core::vocabulary::requirements::requirement::{Operator, Requirement};
use longshore_core::vocabulary::requirements::selector::LabelSelector;
use longshore_core::vocabulary::taint::{Taint, TaintEffect, Toleration};
use longshore_proto::types::v1;

use super::WireError;

/// Reads one requirement.
///
/// # Errors
/// When the operator is unknown or does not fit its values.
pub fn requirement(wire: &v1::Requirement) -> Result<(String, Requirement), WireError> {
    let fail = |problem: String| Err(WireError::field(&wire.key, problem));
    let Some(operator) = operator(wire.operator()) else {
        return fail(
            "unknown operator; use In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte or Lte".into(),
        );
    };
    if wire.key.is_empty() {
        return Err(WireError::field("key", "is empty; name a label"));
    }
    if operator == Operator::In && wire.values.is_empty() {
        return fail("In needs at least one value".into());
    }
    match Requirement::new(operator, &wire.values) {
        Ok(requirement) => Ok((wire.key.clone(), requirement.with_min_values(wire.min_values))),
        Err(error) => fail(error.to_string()),
    }
}

/// Reads a conjunction.
///
/// # Errors
/// When one of its requirements cannot be read.
pub fn requirements(wire: &[v1::Requirement]) -> Result<Requirements, WireError> {
    wire.iter().map(requirement).collect()
}

/// Writes a conjunction; reading it again gives equal requirements.
#[must_use]
pub fn requirements_to_wire(requirements: &Requirements) -> Vec<v1::Requirement> {
    let each = requirements.iter().flat_map(|(key, requirement)| {
        requirement.clauses().into_iter().map(move |clause| v1::Requirement {
            key: key.to_owned(),
            operator: operator_to_wire(clause.operator).into(),
            values: clause.values,
            min_values: requirement.min_values,
        })
    });
    each.collect()
}

/// Reads a selector.
///
/// # Errors
/// When one of its expressions cannot be read.
pub fn selector(wire: &v1::LabelSelector) -> Result<LabelSelector, WireError> {
    let expressions: Result<_, _> = wire.match_expressions.iter().map(requirement).collect();
    Ok(LabelSelector { match_labels: wire.match_labels.clone(), match_expressions: expressions? })
}

/// Reads taints.
///
/// # Errors
/// When an effect is missing.
pub fn taints(wire: &[v1::Taint]) -> Result<Vec<Taint>, WireError> {
    wire.iter().map(taint).collect()
}

fn taint(wire: &v1::Taint) -> Result<Taint, WireError> {
    let effect = effect(wire.effect()).ok_or_else(|| {
        let problem = "has no effect; use NoSchedule, PreferNoSchedule or NoExecute";
        WireError::field(&format!("taint {}", wire.key), problem)
    })?;
    Ok(Taint { key: wire.key.clone(), value: wire.value.clone(), effect })
}

/// Writes taints.
#[must_use]
pub fn taints_to_wire(taints: &[Taint]) -> Vec<v1::Taint> {
    let each = taints.iter().map(|taint| v1::Taint {
        key: taint.key.clone(),
        value: taint.value.clone(),
        effect: effect_to_wire(taint.effect).into(),
    });
    each.collect()
}

/// Reads a toleration.
#[must_use]
pub fn toleration(wire: &v1::Toleration) -> Toleration {
    Toleration {
        key: wire.key.clone(),
        exists: wire.exists,
        value: wire.value.clone(),
        effect: effect(wire.effect()),
    }
}

const fn operator(wire: v1::Operator) -> Option<Operator> {
    Some(match wire {
        v1::Operator::Unspecified => return None,
        v1::Operator::In => Operator::In,
        v1::Operator::NotIn => Operator::NotIn,
        v1::Operator::Exists => Operator::Exists,
        v1::Operator::DoesNotExist => Operator::DoesNotExist,
        v1::Operator::Gt => Operator::Gt,
        v1::Operator::Lt => Operator::Lt,
        v1::Operator::Gte => Operator::Gte,
        v1::Operator::Lte => Operator::Lte,
    })
}

const fn operator_to_wire(operator: Operator) -> v1::Operator {
    match operator {
        Operator::In => v1::Operator::In,
        Operator::NotIn => v1::Operator::NotIn,
        Operator::Exists => v1::Operator::Exists,
        Operator::DoesNotExist => v1::Operator::DoesNotExist,
        Operator::Gt => v1::Operator::Gt,
        Operator::Lt => v1::Operator::Lt,
        Operator::Gte => v1::Operator::Gte,
        Operator::Lte => v1::Operator::Lte,
    }
}

const fn effect(wire: v1::TaintEffect) -> Option<TaintEffect> {
    match wire {
        v1::TaintEffect::Unspecified => None,
        v1::TaintEffect::NoSchedule => Some(TaintEffect::NoSchedule),
        v1::TaintEffect::PreferNoSchedule => Some(TaintEffect::PreferNoSchedule),
        v1::TaintEffect::NoExecute => Some(TaintEffect::NoExecute),
    }
}

const fn effect_to_wire(effect: TaintEffect) -> v1::TaintEffect {
    match effect {
        TaintEffect::NoSchedule => v1::TaintEffect::NoSchedule,
        TaintEffect::PreferNoSchedule => v1::TaintEffect::PreferNoSchedule,
        TaintEffect::NoExecute => v1::TaintEffect::NoExecute,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(operator: v1::Operator, values: &[&str]) -> v1::Requirement {
        v1::Requirement {
            key: "zone".to_owned(),
            operator: operator.into(),
            values: values.iter().map(|value| (*value).to_owned()).collect(),
            min_values: None,
        }
    }

    #[test]
    fn requirements_survive_the_wire() {
        for (operator, values) in [
            (v1::Operator::In, vec!["a", "b"]),
            (v1::Operator::NotIn, vec!["a"]),
            (v1::Operator::Exists, vec![]),
            (v1::Operator::DoesNotExist, vec![]),
            (v1::Operator::Gt, vec!["3"]),
        ] {
            let read = requirements(&[wire(operator, &values)]).unwrap();
            assert_eq!(requirements(&requirements_to_wire(&read)).unwrap(), read, "{operator:?}");
        }
    }

    #[test]
    fn refusals_name_the_label_and_the_way_out() {
        let unknown = requirement(&wire(v1::Operator::Unspecified, &["a"])).unwrap_err();
        assert!(unknown.field == "zone" && unknown.problem.contains("NotIn"), "{unknown}");
        assert!(requirement(&wire(v1::Operator::In, &[])).is_err());
        assert!(requirement(&wire(v1::Operator::Gt, &["x"])).is_err());
        assert!(taints(&[v1::Taint::default()]).is_err());
    }
}
