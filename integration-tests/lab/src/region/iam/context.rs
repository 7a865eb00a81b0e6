//! The request context that conditions look at.
//!
//! Invariant: keys compare without regard to case, as IAM's do; the spelling is kept for show.

use std::collections::BTreeMap;

use super::super::config::Tags;

/// Context keys with their values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Context {
    entries: BTreeMap<String, (String, Vec<String>)>,
}

impl Context {
    /// Adds a key with one value.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl ToString) -> Context {
        self.put(key, vec![value.to_string()]);
        self
    }

    /// Adds what a resource's tags contribute: `aws:ResourceTag/K`, and EC2's `ec2:ResourceTag/K`.
    #[must_use]
    pub fn with_resource_tags(mut self, tags: &Tags) -> Context {
        for (key, value) in tags {
            self.put(&format!("aws:ResourceTag/{key}"), vec![value.clone()]);
            self.put(&format!("ec2:ResourceTag/{key}"), vec![value.clone()]);
        }
        self
    }

    /// Adds what tags in the request contribute: `aws:RequestTag/K` and `aws:TagKeys`.
    #[must_use]
    pub fn with_request_tags(mut self, tags: &Tags) -> Context {
        for (key, value) in tags {
            self.put(&format!("aws:RequestTag/{key}"), vec![value.clone()]);
        }
        if !tags.is_empty() {
            self.put("aws:TagKeys", tags.keys().cloned().collect());
        }
        self
    }

    /// Adds every entry of another context.
    #[must_use]
    pub fn with_all(mut self, other: Context) -> Context {
        self.entries.extend(other.entries);
        self
    }

    /// Values of a key, when it is present.
    pub fn get(&self, key: &str) -> Option<&[String]> {
        self.entries.get(&key.to_lowercase()).map(|(_, values)| values.as_slice())
    }

    /// Keys as spelled when added, with their values, in order of their lower-case form.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.entries.values().map(|(key, values)| (key.as_str(), values.as_slice()))
    }

    fn put(&mut self, key: &str, values: Vec<String>) {
        self.entries.insert(key.to_lowercase(), (key.to_owned(), values));
    }
}
