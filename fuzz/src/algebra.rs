//! Requirements from arbitrary bytes, and the laws that they obey.
//!
//! Invariant: the law is membership: a requirement is the set of label values, absence among them,
//! that it allows, and every operation is one of sets.

use arbitrary::Arbitrary;
use longshore_core::requirement::{Operator, Requirement};

/// A clause as somebody would write it.
#[derive(Clone, Debug, Arbitrary)]
pub struct Clause {
    operator: u8,
    values: Vec<u8>,
    least: Option<u8>,
}

/// Values that clauses name: numbers about zero and far from it, words, and what is neither.
const VALUES: [&str; 14] = [
    "",
    "0",
    "1",
    "2",
    "3",
    "-1",
    "007",
    "9223372036854775807",
    "9223372036854775808",
    "a",
    "b",
    "1.5",
    "arm64",
    " 2",
];

const OPERATORS: [Operator; 8] = [
    Operator::In,
    Operator::NotIn,
    Operator::Exists,
    Operator::DoesNotExist,
    Operator::Gt,
    Operator::Lt,
    Operator::Gte,
    Operator::Lte,
];

impl Clause {
    /// The requirement; none when the clause is malformed and so refused.
    pub fn requirement(&self) -> Option<Requirement> {
        let operator = OPERATORS[usize::from(self.operator) % OPERATORS.len()];
        let values = self.values.iter().take(4).map(|at| VALUES[usize::from(*at) % VALUES.len()]);
        let least = self.least.map(u32::from);
        Requirement::new(operator, values).ok().map(|read| read.with_min_values(least))
    }
}

/// What every label may be, absence among it.
fn universe() -> impl Iterator<Item = Option<&'static str>> {
    VALUES.into_iter().chain(["4", "zz", "-9"]).map(Some).chain([None])
}

/// Checks all laws on three requirements.
pub fn laws(a: &Requirement, b: &Requirement, c: &Requirement) {
    let both = a.intersect(b);
    assert_eq!(both, b.intersect(a), "intersection commutes");
    assert_eq!(both.intersect(c), a.intersect(&b.intersect(c)), "intersection associates");
    assert_eq!(a.intersect(a), *a, "intersection with itself");
    for value in universe() {
        let member = a.allows(value) && b.allows(value);
        assert_eq!(both.allows(value), member, "{value:?} in {a} and {b} gives {both}");
        assert!(!(member && both.is_empty()), "{both} is called empty, and allows {value:?}");
        let overlap = a.overlaps(b) || !member;
        assert!(overlap, "{a} and {b} are said to be apart, and both allow {value:?}");
        let covered = !a.covers(b) || a.allows(value) || !b.allows(value);
        assert!(covered, "{a} is said to cover {b}, which alone allows {value:?}");
    }
    assert_eq!(a.overlaps(b), b.overlaps(a), "overlap is mutual");
    assert_eq!(a.overlaps(b), !both.is_empty(), "{a} and {b}: overlap and contradiction");
    if let Some(example) = both.example() {
        assert!(both.allows(Some(&example)), "{both} gives {example:?} for an example");
    }
    again(&both);
}

/// The clauses that a requirement is written as mean the same again.
fn again(requirement: &Requirement) {
    let clauses = requirement.clauses();
    let read = clauses.iter().map(|c| Requirement::new(c.operator, &c.values));
    let read: Option<Vec<Requirement>> = read.map(Result::ok).collect();
    let Some((first, rest)) = read.as_ref().and_then(|read| read.split_first()) else { return };
    let meant = rest.iter().fold(first.clone(), |all, next| all.intersect(next));
    for value in universe() {
        assert_eq!(meant.allows(value), requirement.allows(value), "{requirement}: {value:?}");
    }
}
