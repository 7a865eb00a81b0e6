//! A requirement on one label as the exact set of values it allows.
//!
//! Invariant: a requirement is a set over "every string, and absent". Intersection and inclusion
//! are those of sets, so the order in which requirements are combined never matters. `absent` is
//! part of the set: NotIn and DoesNotExist allow it, the others do not, and nothing is lost when
//! they meet.

use std::collections::BTreeSet;
use std::fmt;

use thiserror::Error;

/// Relation of a label's value to a requirement's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operator {
    /// One of the values.
    In,
    /// None of the values, or absent.
    NotIn,
    /// Present.
    Exists,
    /// Absent.
    DoesNotExist,
    /// An integer greater than the value.
    Gt,
    /// An integer less than the value.
    Lt,
    /// An integer greater than or equal to the value.
    Gte,
    /// An integer less than or equal to the value.
    Lte,
}

/// Why a requirement cannot be read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum RequirementError {
    /// Numeric operators take exactly one integer.
    #[error("{operator:?} takes exactly one integer, got {values:?}; write one whole number")]
    NotOneInteger {
        /// Operator.
        operator: Operator,
        /// Values given.
        values: Vec<String>,
    },
}

/// One operator with its values, as Kubernetes objects spell requirements.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Clause {
    /// Operator.
    pub operator: Operator,
    /// Values, in order.
    pub values: Vec<String>,
}

/// The values that a label may have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requirement {
    /// True when `values` lists what is excluded rather than what is allowed.
    complement: bool,
    values: BTreeSet<String>,
    absent: bool,
    gte: Option<i64>,
    lte: Option<i64>,
    /// Least number of distinct values that a launch must keep open; the larger one survives an
    /// intersection. It does not narrow the set.
    pub min_values: Option<u32>,
}

impl Requirement {
    /// Reads an operator with its values.
    ///
    /// # Errors
    /// When a numeric operator does not come with exactly one integer.
    pub fn new<S: AsRef<str>>(
        operator: Operator,
        values: impl IntoIterator<Item = S>,
    ) -> Result<Self, RequirementError> {
        let values: BTreeSet<String> = values.into_iter().map(|v| v.as_ref().to_owned()).collect();
        let number = || match values.first().map(|value| value.parse::<i64>()) {
            Some(Ok(number)) if values.len() == 1 => Ok(number),
            _ => {
                let values = values.iter().cloned().collect();
                Err(RequirementError::NotOneInteger { operator, values })
            }
        };
        Ok(match operator {
            Operator::In => Self::set(false, values, false),
            Operator::NotIn => Self::set(true, values, true),
            Operator::Exists => Self::exists(),
            Operator::DoesNotExist => Self::does_not_exist(),
            Operator::Gt => Self::above(number()?.checked_add(1)),
            Operator::Lt => Self::below(number()?.checked_sub(1)),
            Operator::Gte => Self::above(Some(number()?)),
            Operator::Lte => Self::below(Some(number()?)),
        })
    }

    /// Exactly this value.
    #[must_use]
    pub fn equals(value: &str) -> Self {
        Self::set(false, BTreeSet::from([value.to_owned()]), false)
    }

    /// One of these values.
    #[must_use]
    pub fn one_of<S: AsRef<str>>(values: impl IntoIterator<Item = S>) -> Self {
        Self::set(false, values.into_iter().map(|v| v.as_ref().to_owned()).collect(), false)
    }

    /// Any value, but some value.
    #[must_use]
    pub fn exists() -> Self {
        Self::set(true, BTreeSet::new(), false)
    }

    /// No value.
    #[must_use]
    pub fn does_not_exist() -> Self {
        Self::set(false, BTreeSet::new(), true)
    }

    /// The same requirement with a least number of values.
    #[must_use]
    pub fn with_min_values(mut self, min_values: Option<u32>) -> Self {
        self.min_values = min_values;
        self
    }

    /// True when a node with this value, or without the label, meets the requirement.
    #[must_use]
    pub fn allows(&self, value: Option<&str>) -> bool {
        match value {
            None => self.absent,
            Some(value) => self.complement != self.values.contains(value) && self.in_bounds(value),
        }
    }

    /// True when the label may be absent.
    #[must_use]
    pub fn allows_absent(&self) -> bool {
        self.absent
    }

    /// True when nothing, not even absence, meets the requirement.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.absent && !self.complement && self.values.is_empty()
    }

    /// The allowed values when they can be listed; absence is not among them.
    #[must_use]
    pub fn listed(&self) -> Option<&BTreeSet<String>> {
        (!self.complement).then_some(&self.values)
    }

    /// The only value allowed, when there is exactly one and absence is not allowed.
    #[must_use]
    pub fn single(&self) -> Option<&str> {
        let values = self.listed().filter(|values| values.len() == 1 && !self.absent)?;
        values.first().map(String::as_str)
    }

    /// What both allow.
    #[must_use]
    pub fn intersect(&self, other: &Self) -> Self {
        let gte = self.gte.max(other.gte);
        let lte = [self.lte, other.lte].into_iter().flatten().min();
        let values = match (self.complement, other.complement) {
            (true, true) => &self.values | &other.values,
            (true, false) => &other.values - &self.values,
            (false, true) => &self.values - &other.values,
            (false, false) => &self.values & &other.values,
        };
        let mut both =
            Self::set(self.complement && other.complement, values, self.absent && other.absent);
        (both.gte, both.lte) = (gte, lte);
        both.min_values = self.min_values.max(other.min_values);
        both.normalise()
    }

    /// True when something meets both.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        !self.intersect(other).is_empty()
    }

    /// True when everything that meets `narrower` meets this one too.
    #[must_use]
    pub fn covers(&self, narrower: &Self) -> bool {
        let mut shared = self.intersect(narrower);
        shared.min_values = narrower.min_values;
        shared == *narrower
    }

    /// Some value that meets the requirement, always the same one; none when only absence does.
    #[must_use]
    pub fn example(&self) -> Option<String> {
        if !self.complement {
            return self.values.first().cloned();
        }
        let start = self.gte.or(self.lte).unwrap_or(0);
        let step = if self.gte.is_some() || self.lte.is_none() { 1 } else { -1 };
        let tries = i64::try_from(self.values.len()).unwrap_or(i64::MAX - 1).saturating_add(1);
        (0..tries)
            .map(|n| start.saturating_add(step * n).to_string())
            .find(|value| self.allows(Some(value)))
    }

    /// The requirement as operators and values; combining them again gives an equal requirement.
    #[must_use]
    pub fn clauses(&self) -> Vec<Clause> {
        let listed = || self.values.iter().cloned().collect::<Vec<_>>();
        let clause = |operator, values| Clause { operator, values };
        if !self.complement {
            return match (self.values.is_empty(), self.absent) {
                (true, true) => vec![clause(Operator::DoesNotExist, Vec::new())],
                _ => vec![clause(Operator::In, listed())],
            };
        }
        let mut clauses = Vec::new();
        if !self.values.is_empty() || self.absent {
            clauses.push(clause(Operator::NotIn, listed()));
        }
        let bounds = [(Operator::Gte, self.gte), (Operator::Lte, self.lte)];
        clauses.extend(
            bounds.iter().filter_map(|(op, n)| n.map(|n| clause(*op, vec![n.to_string()]))),
        );
        if !self.absent && self.gte.is_none() && self.lte.is_none() {
            clauses.push(clause(Operator::Exists, Vec::new()));
        }
        clauses
    }

    fn set(complement: bool, values: BTreeSet<String>, absent: bool) -> Self {
        Self { complement, values, absent, gte: None, lte: None, min_values: None }
    }

    fn above(gte: Option<i64>) -> Self {
        gte.map_or_else(Self::none, |gte| Self { gte: Some(gte), ..Self::exists() })
    }

    fn below(lte: Option<i64>) -> Self {
        lte.map_or_else(Self::none, |lte| Self { lte: Some(lte), ..Self::exists() })
    }

    fn none() -> Self {
        Self::set(false, BTreeSet::new(), false)
    }

    fn in_bounds(&self, value: &str) -> bool {
        if self.gte.is_none() && self.lte.is_none() {
            return true;
        }
        value.parse::<i64>().is_ok_and(|number| {
            self.gte.is_none_or(|gte| number >= gte) && self.lte.is_none_or(|lte| number <= lte)
        })
    }

    /// Equal sets get equal representations, as far as they can be told by looking at bounds.
    fn normalise(mut self) -> Self {
        let mut values = std::mem::take(&mut self.values);
        values.retain(|value| self.in_bounds(value));
        self.values = values;
        if self.complement && self.gte.zip(self.lte).is_some_and(|(gte, lte)| gte > lte) {
            self.complement = false;
            self.values.clear();
        }
        if !self.complement {
            (self.gte, self.lte) = (None, None);
        }
        self
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Clause { operator, values }) in self.clauses().iter().enumerate() {
            f.write_str(if index == 0 { "" } else { " and " })?;
            match operator {
                Operator::Exists | Operator::DoesNotExist => write!(f, "{operator:?}")?,
                Operator::In
                | Operator::NotIn
                | Operator::Gt
                | Operator::Lt
                | Operator::Gte
                | Operator::Lte => write!(f, "{operator:?} [{}]", values.join(", "))?,
            }
        }
        Ok(())
    }
}
