//! A bounded amount of something that many share: bytes of memory, mostly.
//!
//! Invariant: what is handed out is never more than there is, and is given back when the grant is
//! dropped. Nobody has more than is left for all others together: dynamic thresholds, as in the
//! shared memory of switches (A. K. Choudhury and E. L. Hahne, 1998), with a factor of one. One who
//! takes all that he can gets half, two get a third each, and something is always left for the
//! next.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use thiserror::Error;

/// Why nothing was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{wanted} more are wanted, {held} are held already, and {free} of {total} are free")]
pub struct Spent {
    /// How many more were wanted.
    pub wanted: usize,
    /// How many the tenant has.
    pub held: usize,
    /// How many nobody has.
    pub free: usize,
    /// How many there are.
    pub total: usize,
}

#[derive(Default)]
struct State {
    used: usize,
    tenants: BTreeMap<String, usize>,
}

struct Inner {
    total: usize,
    state: Mutex<State>,
}

/// An amount that tenants share. Clones are of the same amount.
#[derive(Clone)]
pub struct Budget(Arc<Inner>);

impl Budget {
    /// So much to share.
    #[must_use]
    pub fn new(total: usize) -> Self {
        Self(Arc::new(Inner { total, state: Mutex::default() }))
    }

    /// How much there is to share.
    #[must_use]
    pub fn total(&self) -> usize {
        self.0.total
    }

    /// Nothing yet, for a tenant who will want more.
    #[must_use]
    pub fn open(&self, tenant: &str) -> Grant {
        Grant { budget: self.clone(), tenant: tenant.to_owned(), amount: 0 }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one tenant has for one purpose; given back when dropped.
pub struct Grant {
    budget: Budget,
    tenant: String,
    amount: usize,
}

impl Grant {
    /// Has exactly `amount` from now on, or as much as before.
    ///
    /// # Errors
    /// When that is more than the tenant may have.
    pub fn resize(&mut self, amount: usize) -> Result<(), Spent> {
        let total = self.budget.0.total;
        let mut state = self.budget.lock();
        let held = state.tenants.get(&self.tenant).copied().unwrap_or(0);
        if amount > self.amount {
            let wanted = amount - self.amount;
            let free = total - state.used;
            // What is left for the others then is to be as much as the tenant has.
            if held.saturating_add(wanted) > free.saturating_sub(wanted) {
                return Err(Spent { wanted, held, free, total });
            }
        }
        state.used = state.used - self.amount + amount;
        let held = held - self.amount + amount;
        if held == 0 {
            state.tenants.remove(&self.tenant);
        } else {
            state.tenants.insert(self.tenant.clone(), held);
        }
        drop(state);
        self.amount = amount;
        Ok(())
    }

    /// Has so much more from now on.
    ///
    /// # Errors
    /// When that is more than the tenant may have.
    pub fn grow(&mut self, more: usize) -> Result<(), Spent> {
        self.resize(self.amount.saturating_add(more))
    }

    /// How much it is.
    #[must_use]
    pub const fn amount(&self) -> usize {
        self.amount
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        // Less is always granted.
        let _ = self.resize(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes in steps of one until nothing more is granted.
    fn greedy(budget: &Budget, tenant: &str) -> Vec<Grant> {
        let one = || {
            let mut grant = budget.open(tenant);
            grant.grow(1).map(|()| grant).ok()
        };
        std::iter::from_fn(one).collect()
    }

    #[test]
    fn the_greedy_leave_something_for_the_next() {
        let budget = Budget::new(1_000);
        let first = greedy(&budget, "first");
        assert_eq!(first.len(), 500);
        let second = greedy(&budget, "second");
        assert_eq!(second.len(), 250);
        assert!(budget.open("modest").grow(10).is_ok());
        assert!(budget.open("first").grow(1).is_err(), "another grant of the same tenant");
        drop(first);
        assert!(budget.open("third").grow(300).is_ok());
        drop(second);
        assert_eq!(greedy(&budget, "second").len(), 500, "everything came back");
    }

    #[test]
    fn a_grant_that_cannot_grow_keeps_what_it_has() {
        let budget = Budget::new(100);
        let mut grant = budget.open("a");
        grant.resize(40).unwrap();
        let spent = Spent { wanted: 30, held: 40, free: 60, total: 100 };
        assert_eq!(grant.grow(30), Err(spent));
        assert_eq!((grant.amount(), grant.grow(10)), (40, Ok(())));
        assert_eq!(grant.grow(usize::MAX).unwrap_err().held, 50, "no overflow");
        grant.resize(0).unwrap();
        assert!(budget.open("b").grow(50).is_ok());
    }
}
