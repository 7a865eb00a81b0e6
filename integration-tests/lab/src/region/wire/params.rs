//! Parameters of the Query protocols: `A.1.B=x` as a tree.
//!
//! Invariant: reading a parameter that was not sent is not an error; lists come in index order.

use std::collections::BTreeMap;
use std::fmt;

use super::{AwsError, Result};

/// One node of the tree: a value, children, or neither.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Params {
    value: Option<String>,
    children: BTreeMap<String, Params>,
}

static ABSENT: Params = Params { value: None, children: BTreeMap::new() };

impl Params {
    /// Parses a form body.
    pub fn parse(form: &[u8]) -> Params {
        let mut root = Params::default();
        for (path, value) in form_urlencoded::parse(form) {
            let mut node = &mut root;
            for segment in path.split('.') {
                node = node.children.entry(segment.to_owned()).or_default();
            }
            node.value = Some(value.into_owned());
        }
        root
    }

    /// The node at a dotted path; an empty one when nothing was sent there.
    pub fn at(&self, path: &str) -> &Params {
        path.split('.').fold(self, |node, segment| node.children.get(segment).unwrap_or(&ABSENT))
    }

    /// True when neither a value nor children were sent.
    pub fn is_absent(&self) -> bool {
        self.value.is_none() && self.children.is_empty()
    }

    /// The text at a dotted path; an empty text counts as not sent, as EC2 treats it.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.at(path).value.as_deref().filter(|text| !text.is_empty())
    }

    /// The text at a path, or EC2's complaint about a missing parameter.
    pub fn require(&self, path: &str) -> Result<&str> {
        self.text(path).ok_or_else(|| AwsError::missing_parameter(path))
    }

    /// Entries of a list in index order, with or without IAM's `member` level.
    pub fn list(&self, path: &str) -> Vec<&Params> {
        let node = self.at(path);
        let node = node.children.get("member").unwrap_or(node);
        let mut entries: Vec<(usize, &Params)> = node
            .children
            .iter()
            .filter_map(|(index, entry)| Some((index.parse().ok()?, entry)))
            .collect();
        entries.sort_by_key(|(index, _)| *index);
        entries.into_iter().map(|(_, entry)| entry).collect()
    }

    /// Texts of a list in index order.
    pub fn texts(&self, path: &str) -> Vec<String> {
        self.list(path).into_iter().filter_map(|entry| entry.value.clone()).collect()
    }

    /// A whole number; absent is `None`, anything else but digits is an error.
    pub fn number(&self, path: &str) -> Result<Option<u32>> {
        self.parsed(path)
    }

    /// A decimal number; absent is `None`.
    pub fn decimal(&self, path: &str) -> Result<Option<f64>> {
        self.parsed(path)
    }

    /// A boolean; absent is false.
    pub fn flag(&self, path: &str) -> bool {
        self.text(path).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// Key and value pairs of a tag list; `key` and `value` fields as EC2 and IAM name them.
    pub fn tags(&self, path: &str) -> BTreeMap<String, String> {
        self.list(path)
            .into_iter()
            .filter_map(|tag| {
                let value = tag.text("Value").unwrap_or_default();
                Some((tag.text("Key")?.to_owned(), value.to_owned()))
            })
            .collect()
    }

    fn parsed<T: std::str::FromStr>(&self, path: &str) -> Result<Option<T>> {
        let Some(value) = self.text(path) else { return Ok(None) };
        let invalid =
            || AwsError::invalid_parameter(format!("Invalid value '{value}' for parameter {path}"));
        value.parse().map(Some).map_err(|_| invalid())
    }
}

/// Longest value that `Display` shows whole.
const SHOWN_CHARS_MAX: usize = 60;

impl fmt::Display for Params {
    /// `A.1.B=x C=y`, in order of path, long values cut.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.show("", out)
    }
}

impl Params {
    fn show(&self, path: &str, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(value) = &self.value {
            let shown: String = value.chars().take(SHOWN_CHARS_MAX).collect();
            write!(out, "{path}={shown} ")?;
        }
        for (segment, child) in &self.children {
            let dot = if path.is_empty() { "" } else { "." };
            child.show(&format!("{path}{dot}{segment}"), out)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_ordered_by_number_and_members_are_seen_through() {
        let params =
            Params::parse(b"Id.10=c&Id.2=b&Id.1=a&Tags.member.1.Key=k&Tags.member.1.Value=v");
        assert_eq!(params.texts("Id"), ["a", "b", "c"]);
        assert_eq!(params.tags("Tags"), BTreeMap::from([("k".to_owned(), "v".to_owned())]));
    }

    #[test]
    fn absent_is_not_an_error_and_nonsense_is() {
        let params = Params::parse(b"A.B=x%20y&N=ten");
        assert_eq!(params.text("A.B"), Some("x y"));
        assert!(params.at("A.C").is_absent());
        assert_eq!(params.number("M").expect("absent"), None);
        assert_eq!(params.number("N").expect_err("not a number").code, "InvalidParameterValue");
    }
}
