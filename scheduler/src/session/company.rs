//! Claims that were asked for together, so that they can be launched together: the actuator asks
//! EC2 in one call for what waits at the same time.
//!
//! Invariant: no claim waits for others longer than a named time, and none that was asked for
//! alone.

use std::collections::BTreeMap;

/// Longest time from when a claim was asked for until it is launched without those that were asked
/// for with it, in milliseconds. The API server makes some hundreds in it.
const TOGETHER_MS: i64 = 150;

/// Claims that were asked for lately, with when that was by the session's clock.
#[derive(Clone, Debug, Default)]
pub struct Company {
    asked: BTreeMap<String, i64>,
}

impl Company {
    /// A claim has been asked for.
    pub fn asked(&mut self, claim: &str, now_ms: i64) {
        self.asked.retain(|_, asked_ms| now_ms < *asked_ms + TOGETHER_MS);
        self.asked.insert(claim.to_owned(), now_ms);
    }

    /// It will never be there.
    pub fn left(&mut self, claim: &str) {
        self.asked.remove(claim);
    }

    /// True while a claim that is there waits for others; `is_there` says of which that is true.
    #[must_use]
    pub fn waits(&self, claim: &str, is_there: impl Fn(&str) -> bool, now_ms: i64) -> bool {
        let young = |asked_ms: &i64| now_ms < *asked_ms + TOGETHER_MS;
        self.asked.get(claim).is_some_and(young)
            && self.asked.iter().any(|(other, asked_ms)| young(asked_ms) && !is_there(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_waits_for_those_asked_for_with_it_and_not_for_long() {
        let mut company = Company::default();
        let waits = |company: &Company, there: &[&str], now_ms| {
            company.waits("a", |claim| there.contains(&claim), now_ms)
        };
        company.asked("a", 0);
        assert!(!waits(&company, &["a"], 1), "it is alone");
        company.asked("b", 0);
        assert!(waits(&company, &["a"], 1));
        assert!(!waits(&company, &["a", "b"], 1), "all are there");
        assert!(!waits(&company, &["a"], TOGETHER_MS), "one is long in coming");
        company.asked("c", TOGETHER_MS - 1);
        assert!(!waits(&company, &["a"], TOGETHER_MS + 1), "others come later");
        company.left("b");
        company.left("c");
        assert!(!waits(&company, &["a"], 1), "they will not be there");
    }
}
