//! Label selectors over pods.
//!
//! Invariant: an empty selector selects everything; "selects nothing" is an absent selector.

use crate::vocabulary::labels::Labels;
use crate::vocabulary::requirements::requirement::Requirement;

/// Selects objects by their labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LabelSelector {
    /// Equalities, all of which must hold.
    pub match_labels: Labels,
    /// Key and requirement pairs, all of which must hold.
    pub match_expressions: Vec<(String, Requirement)>,
}

impl LabelSelector {
    /// The selector of one equality.
    #[must_use]
    pub fn label(key: &str, value: &str) -> Self {
        let match_labels = Labels::from([(key.to_owned(), value.to_owned())]);
        Self { match_labels, match_expressions: Vec::new() }
    }

    /// True when it selects an object with these labels.
    #[must_use]
    pub fn selects(&self, labels: &Labels) -> bool {
        let value = |key: &str| labels.get(key).map(String::as_str);
        self.match_labels.iter().all(|(key, wanted)| value(key) == Some(wanted))
            && self.match_expressions.iter().all(|(key, wanted)| wanted.allows(value(key)))
    }
}
