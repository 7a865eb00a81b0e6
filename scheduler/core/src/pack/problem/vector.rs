//! Amounts as dense vectors over the resources that are requested at all.
//!
//! Invariant: all vectors of one problem have the length of its `Dims`, in the same order.

use std::collections::BTreeSet;

use crate::vocabulary::resources::Resources;

/// Amount of each resource, in the order of [`Dims`].
pub(crate) type Vector = Vec<i64>;

/// The resources of a problem.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dims {
    names: Vec<String>,
}

impl Dims {
    /// The resources that any of the requests asks for.
    pub(crate) fn of<'a>(requests: impl Iterator<Item = &'a Resources>) -> Self {
        let mut names = BTreeSet::new();
        for request in requests {
            for name in request.names() {
                if !names.contains(name) {
                    names.insert(name.to_owned());
                }
            }
        }
        Self { names: names.into_iter().collect() }
    }

    /// Names in order.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// The dense form of an amount.
    pub(crate) fn vector(&self, amount: &Resources) -> Vector {
        self.names.iter().map(|name| amount.get(name)).collect()
    }

    /// The dense form of what is available.
    pub(crate) fn room(&self, amount: &Resources) -> Vector {
        self.names.iter().map(|name| amount.available(name)).collect()
    }
}

/// How often `request` fits into `room`; `i64::MAX` when it requests nothing.
pub(crate) fn copies(request: &[i64], room: &[i64]) -> i64 {
    let mut least = i64::MAX;
    for (need, have) in request.iter().zip(room) {
        if *need > 0 {
            least = least.min(have.max(&0) / need);
        }
    }
    least
}

/// True when `request` fits into `room` once.
pub(crate) fn fits(request: &[i64], room: &[i64]) -> bool {
    request.iter().zip(room).all(|(need, have)| *need <= 0 || need <= have)
}

/// Adds `count` times `request` to `sum`.
pub(crate) fn add(sum: &mut [i64], request: &[i64], count: i64) {
    for (sum, amount) in sum.iter_mut().zip(request) {
        *sum = sum.saturating_add(amount.saturating_mul(count));
    }
}

/// An integer as a float; exact for every amount that occurs in practice (below 2^53).
#[expect(clippy::cast_precision_loss, reason = "used for guidance only; proofs use integers")]
pub(crate) fn float(amount: i64) -> f64 {
    amount as f64
}
