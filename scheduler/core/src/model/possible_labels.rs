//! Possible labels: what the labels of an existing node are, or may become while its node is on its
//! way.
//!
//! Invariant: labels that are known and the equalities with them give the same answers; the former
//! are read where they lie, since fleets have tens of thousands of nodes.

use std::borrow::Cow;

use crate::vocabulary::labels::{Labels, canonical};
use crate::vocabulary::requirements::Requirements;
use crate::vocabulary::requirements::requirement::Requirement;

/// Labels of an existing node.
#[derive(Clone, Debug)]
pub(crate) enum PossibleLabels<'a> {
    /// They are these; no key is a legacy one.
    Known(Cow<'a, Labels>),
    /// They will meet these requirements.
    Open(Requirements),
}

impl<'a> PossibleLabels<'a> {
    /// Of a node with these labels.
    pub(crate) fn of(labels: Cow<'a, Labels>) -> Self {
        if labels.keys().all(|key| canonical(key) == key) {
            return Self::Known(labels);
        }
        Self::Open(Requirements::from_labels(&labels))
    }

    /// The value of a label, when it is certain.
    pub(crate) fn label(&self, key: &str) -> Option<&str> {
        match self {
            Self::Known(labels) => labels.get(canonical(key)).map(String::as_str),
            Self::Open(requirements) => requirements.get(key).and_then(Requirement::single),
        }
    }

    /// True when something is known of a label.
    pub(crate) fn mentions(&self, key: &str) -> bool {
        match self {
            Self::Known(labels) => labels.contains_key(canonical(key)),
            Self::Open(requirements) => requirements.get(key).is_some(),
        }
    }

    /// True when it has the label for certain, whatever its value.
    pub(crate) fn has(&self, key: &str) -> bool {
        match self {
            Self::Known(labels) => labels.contains_key(canonical(key)),
            Self::Open(requirements) => {
                requirements.get(key).is_some_and(|wanted| !wanted.allows_absent())
            }
        }
    }

    /// Values that a label may have, where they can be listed.
    pub(crate) fn values(&self, key: &str) -> Vec<&str> {
        match self {
            Self::Known(labels) => {
                labels.get(canonical(key)).map(String::as_str).into_iter().collect()
            }
            Self::Open(requirements) => {
                let listed = requirements.get(key).and_then(Requirement::listed);
                listed.into_iter().flatten().map(String::as_str).collect()
            }
        }
    }

    /// True when the labels meet the requirements, whatever becomes of them.
    pub(crate) fn meets(&self, wanted: &Requirements) -> bool {
        match self {
            Self::Known(labels) => wanted.allow(labels),
            Self::Open(requirements) => wanted.cover(requirements),
        }
    }

    /// True when the labels meet the requirements, or may turn out to.
    pub(crate) fn may_meet(&self, wanted: &Requirements) -> bool {
        match self {
            Self::Known(labels) => wanted.allow(labels),
            Self::Open(requirements) => wanted.conflict_with_offer(requirements).is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::requirements::requirement::Operator;

    #[test]
    fn known_labels_answer_as_their_equalities_do() {
        let labels =
            Labels::from([("a".to_owned(), "5".to_owned()), ("b".to_owned(), "x".to_owned())]);
        let open = PossibleLabels::Open(Requirements::from_labels(&labels));
        let known = PossibleLabels::of(Cow::Borrowed(&labels));
        assert!(matches!(known, PossibleLabels::Known(_)));
        for key in ["a", "b", "c"] {
            assert_eq!(known.label(key), open.label(key));
            assert_eq!(known.mentions(key), open.mentions(key));
            assert_eq!(known.has(key), open.has(key));
            assert_eq!(known.values(key), open.values(key));
            let asked = [
                (Operator::In, "5"),
                (Operator::NotIn, "x"),
                (Operator::Exists, ""),
                (Operator::DoesNotExist, ""),
                (Operator::Gt, "4"),
                (Operator::Lt, "4"),
            ];
            for (operator, value) in asked {
                let values = Some(value).filter(|value| !value.is_empty());
                let wanted =
                    Requirement::new(operator, values).expect("an operator with its value");
                let wanted = Requirements::from_iter([(key.to_owned(), wanted)]);
                assert_eq!(known.meets(&wanted), open.meets(&wanted), "{wanted}");
            }
        }
    }

    #[test]
    fn legacy_keys_are_the_labels_that_they_mean() {
        let key = "failure-domain.beta.kubernetes.io/zone";
        let labels = Labels::from([(key.to_owned(), "z".to_owned())]);
        let possible_labels = PossibleLabels::of(Cow::Owned(labels));
        assert_eq!(possible_labels.label(key), Some("z"));
        assert_eq!(possible_labels.label(crate::vocabulary::labels::ZONE), Some("z"));
    }
}
