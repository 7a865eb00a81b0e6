//! The call log: what was asked of the region, by whom, and what came of it.
//!
//! Invariant: every request that reached the region is counted once, in order of arrival; the
//! newest are kept with all that is known of them.

use std::collections::{BTreeMap, VecDeque};

use jiff::Timestamp;

/// Calls that are kept, of about half a KiB each: a day of six calls a second, in a quarter of a
/// GiB.
const KEPT_MAX: usize = 500_000;

/// All calls so far.
#[derive(Debug)]
pub struct CallLog {
    kept: VecDeque<CallRecord>,
    kept_max: usize,
    /// How many older ones there were, by API and outcome.
    older: BTreeMap<(String, String), usize>,
    older_total: usize,
}

/// One call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallRecord {
    /// `service:Action`, for example `ec2:CreateFleet`.
    pub api: String,
    /// Parameters as sent, sorted, shortened.
    pub summary: String,
    /// Request id that the reply carried.
    pub request_id: String,
    /// ARN of the caller.
    pub principal: String,
    /// When it arrived.
    pub at: Timestamp,
    /// Error code of the reply; `None` for success.
    pub error: Option<String>,
    /// Client token, when the call carried one.
    pub client_token: Option<String>,
    /// How many instances a fleet was to have; 0 for any other call.
    pub instances: usize,
}

impl CallRecord {
    /// What came of it: `ok`, or the code of the refusal.
    pub fn outcome(&self) -> &str {
        self.error.as_deref().unwrap_or("ok")
    }
}

impl Default for CallLog {
    fn default() -> CallLog {
        CallLog::keeping(KEPT_MAX)
    }
}

impl CallLog {
    fn keeping(kept_max: usize) -> CallLog {
        CallLog { kept: VecDeque::new(), kept_max, older: BTreeMap::new(), older_total: 0 }
    }

    /// Adds a call, and forgets all but the kind of the oldest when there are too many.
    pub fn push(&mut self, call: CallRecord) {
        self.kept.push_back(call);
        if self.kept.len() <= self.kept_max {
            return;
        }
        if let Some(oldest) = self.kept.pop_front() {
            self.older_total += 1;
            let outcome = oldest.outcome().to_owned();
            *self.older.entry((oldest.api, outcome)).or_default() += 1;
        }
    }

    /// The calls that are kept, in order of arrival.
    pub fn kept(&self) -> Vec<CallRecord> {
        self.kept.iter().cloned().collect()
    }

    /// Number of the oldest call that is kept, and of the next one to come.
    pub fn numbers(&self) -> (usize, usize) {
        (self.older_total, self.older_total + self.kept.len())
    }

    /// When the oldest call that is kept arrived, once older ones are not.
    pub fn kept_since(&self) -> Option<Timestamp> {
        self.kept.front().filter(|_| self.older_total > 0).map(|call| call.at)
    }

    /// Number of the first call that is kept and came at a moment or later.
    pub fn number_at(&self, at: Timestamp) -> usize {
        self.older_total + self.kept.partition_point(|call| call.at < at)
    }

    /// Calls by API and outcome, from the one of a number on; from the first on for the number 0.
    pub fn counts(&self, first: usize) -> BTreeMap<(String, String), usize> {
        let mut counts = if first == 0 { self.older.clone() } else { BTreeMap::new() };
        for call in self.kept.iter().skip(first.saturating_sub(self.older_total)) {
            *counts.entry((call.api.clone(), call.outcome().to_owned())).or_default() += 1;
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(api: &str, second: i64, error: Option<&str>) -> CallRecord {
        CallRecord {
            api: api.to_owned(),
            summary: String::new(),
            request_id: String::new(),
            principal: String::new(),
            at: Timestamp::from_second(second).unwrap(),
            error: error.map(str::to_owned),
            client_token: None,
            instances: 0,
        }
    }

    #[test]
    fn what_is_not_kept_is_counted_still() {
        let mut log = CallLog::keeping(2);
        assert_eq!((log.numbers(), log.kept_since()), ((0, 0), None));
        for (second, error) in [(1, None), (2, Some("x")), (3, None), (4, None)] {
            log.push(call("a", second, error));
        }
        log.push(call("b", 5, None));
        let counts = |first| -> Vec<(String, usize)> {
            let counts = log.counts(first).into_iter();
            counts.map(|((api, outcome), count)| (api + " " + &outcome, count)).collect()
        };
        let of = |all: &[(&str, usize)]| -> Vec<(String, usize)> {
            all.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
        };
        assert_eq!(counts(0), of(&[("a ok", 3), ("a x", 1), ("b ok", 1)]));
        assert_eq!(counts(3), of(&[("a ok", 1), ("b ok", 1)]));
        assert_eq!(counts(4), of(&[("b ok", 1)]));
        assert_eq!((log.numbers(), log.kept().len()), ((3, 5), 2));
        assert_eq!(log.kept_since(), Timestamp::from_second(4).ok());
        assert_eq!(log.number_at(Timestamp::from_second(5).unwrap()), 4);
    }
}
