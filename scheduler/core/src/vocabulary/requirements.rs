//! Conjunctions of requirements, one for each label key.
//!
//! Invariant: adding a requirement only narrows; the result does not depend on the order.

pub mod requirement;
pub mod selector;

use std::collections::BTreeMap;
use std::fmt;

use crate::vocabulary::labels::{Labels, canonical, is_well_known};
use crate::vocabulary::requirements::requirement::Requirement;

/// Requirements by label key, all of which must hold. Empty means no constraint.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requirements(BTreeMap<String, Requirement>);

/// The first key on which two sides disagree, with what each allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Label key.
    pub key: String,
    /// What is wanted.
    pub wanted: Requirement,
    /// What the other side allows; none when it does not define the key.
    pub offered: Option<Requirement>,
}

impl Requirements {
    /// No constraint.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Equality with each label.
    #[must_use]
    pub fn from_labels(labels: &Labels) -> Self {
        let all = labels.iter().map(|(key, value)| (key, Requirement::equals(value)));
        if labels.keys().all(|key| canonical(key) == key) {
            return Self(all.map(|(key, value)| (key.clone(), value)).collect());
        }
        let mut requirements = Self::new();
        all.for_each(|(key, value)| requirements.add(key, value));
        requirements
    }

    /// Narrows one key.
    pub fn add(&mut self, key: &str, requirement: Requirement) {
        let key = canonical(key);
        let narrowed = match self.0.get(key) {
            Some(present) => present.intersect(&requirement),
            None => requirement,
        };
        self.0.insert(key.to_owned(), narrowed);
    }

    /// Both conjunctions at once.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let mut both = self.clone();
        for (key, requirement) in &other.0 {
            both.add(key, requirement.clone());
        }
        both
    }

    /// The requirement on a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Requirement> {
        self.0.get(canonical(key))
    }

    /// Forgets the requirement on a key.
    pub fn remove(&mut self, key: &str) {
        self.0.remove(canonical(key));
    }

    /// Keys and requirements in order of key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Requirement)> {
        self.0.iter().map(|(key, requirement)| (key.as_str(), requirement))
    }

    /// True when there is no constraint.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True when some key allows nothing.
    #[must_use]
    pub fn is_contradictory(&self) -> bool {
        self.0.values().any(Requirement::is_empty)
    }

    /// True when an existing node with exactly these labels meets every requirement.
    #[must_use]
    pub fn allow(&self, labels: &Labels) -> bool {
        self.conflict_with_labels(labels).is_none()
    }

    /// The first requirement that exactly these labels do not meet.
    #[must_use]
    pub fn conflict_with_labels(&self, labels: &Labels) -> Option<Conflict> {
        let (key, wanted) = self.0.iter().find(|(key, requirement)| {
            !requirement.allows(labels.get(key.as_str()).map(String::as_str))
        })?;
        let offered = labels.get(key).map(|value| Requirement::equals(value));
        Some(Conflict { key: key.clone(), wanted: wanted.clone(), offered })
    }

    /// The first key on which what a new node may still become rules out these requirements:
    /// every key they share must overlap, and a key that `offered` leaves undefined must allow
    /// absence unless it is well known.
    #[must_use]
    pub fn conflict_with_offer(&self, offered: &Self) -> Option<Conflict> {
        let (key, wanted) = self.0.iter().find(|(key, wanted)| match offered.0.get(*key) {
            Some(offer) => !wanted.overlaps(offer),
            None => !wanted.allows_absent() && !is_well_known(key),
        })?;
        let offered = offered.0.get(key).cloned();
        Some(Conflict { key: key.clone(), wanted: wanted.clone(), offered })
    }

    /// True when whatever meets `narrower` meets these requirements; a key that `narrower` leaves
    /// open counts as possibly absent.
    #[must_use]
    pub fn cover(&self, narrower: &Self) -> bool {
        self.0.iter().all(|(key, wanted)| match narrower.0.get(key) {
            Some(offer) => wanted.covers(offer),
            None => wanted.allows_absent(),
        })
    }
}

impl FromIterator<(String, Requirement)> for Requirements {
    fn from_iter<I: IntoIterator<Item = (String, Requirement)>>(items: I) -> Self {
        let mut requirements = Self::new();
        for (key, requirement) in items {
            requirements.add(&key, requirement);
        }
        requirements
    }
}

impl fmt::Display for Requirements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (key, requirement)) in self.0.iter().enumerate() {
            let gap = if index == 0 { "" } else { ", " };
            write!(f, "{gap}{key} {requirement}")?;
        }
        Ok(())
    }
}
