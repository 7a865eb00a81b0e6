//! Filters and pages of describe calls.
//!
//! Invariant: a filter that a resource does not know is an error, as in EC2, never a silent match.

use super::super::config::Tags;
use super::super::iam::matches;
use super::super::wire::{AwsError, Element, Params, Result, maybe, set, text};

/// The filters of one call.
#[derive(Debug)]
pub struct Filters {
    filters: Vec<(String, Vec<String>)>,
}

impl Filters {
    /// Reads `Filter.N.Name` and `Filter.N.Value.M`.
    pub fn of(params: &Params) -> Filters {
        let read = |filter: &Params| Some((filter.text("Name")?.to_owned(), filter.texts("Value")));
        Filters { filters: params.list("Filter").into_iter().filter_map(read).collect() }
    }

    /// Whether a resource passes. `attribute` gives the values of a filter name, or `None` for a
    /// name it does not know; tag filters are answered from `tags`.
    pub fn keep(
        &self,
        tags: &Tags,
        attribute: impl Fn(&str) -> Option<Vec<String>>,
    ) -> Result<bool> {
        for (name, wanted) in &self.filters {
            let found = tag_values(name, tags).or_else(|| attribute(name)).ok_or_else(|| {
                AwsError::invalid_parameter(format!("The filter '{name}' is invalid"))
            })?;
            let hit = |value: &String| wanted.iter().any(|pattern| matches(pattern, value));
            if !found.iter().any(hit) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn tag_values(filter: &str, tags: &Tags) -> Option<Vec<String>> {
    match filter {
        "tag-key" => Some(tags.keys().cloned().collect()),
        "tag-value" => Some(tags.values().cloned().collect()),
        _ => {
            let key = filter.strip_prefix("tag:")?;
            Some(tags.get(key).cloned().into_iter().collect())
        }
    }
}

/// Keeps what passes all filters.
pub fn retain<T>(items: Vec<T>, keep: impl Fn(&T) -> Result<bool>) -> Result<Vec<T>> {
    let mut kept = Vec::new();
    for item in items {
        if keep(&item)? {
            kept.push(item);
        }
    }
    Ok(kept)
}

/// One page of `items`, and the token of the next. `most` is the page size when none is asked for,
/// and the largest that may be.
pub fn page<T>(params: &Params, items: Vec<T>, most: u32) -> Result<(Vec<T>, Option<String>)> {
    let size = params.number("MaxResults")?.unwrap_or(most).clamp(1, most);
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let start = match params.text("NextToken") {
        None => 0,
        Some(token) => {
            token.strip_prefix("page-").and_then(|rest| rest.parse().ok()).ok_or_else(|| {
                AwsError::client("InvalidNextToken", format!("Invalid value '{token}' for token"))
            })?
        }
    };
    let total = items.len();
    let page: Vec<T> = items.into_iter().skip(start).take(size).collect();
    let end = start.saturating_add(size);
    Ok((page, (end < total).then(|| format!("page-{end}"))))
}

/// `<name>` list and, when there is one, `<nextToken>`.
pub fn paged(
    name: &'static str,
    items: impl IntoIterator<Item = Vec<Element>>,
    next: Option<String>,
) -> Vec<Element> {
    [set(name, items)].into_iter().chain(maybe("nextToken", next)).collect()
}

/// `<tagSet>`.
pub fn tag_set(tags: &Tags) -> Element {
    set("tagSet", tags.iter().map(|(key, value)| vec![text("key", key), text("value", value)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_take_wildcards_and_refuse_unknown_names() {
        let params = Params::parse(
            b"Filter.1.Name=tag:Name&Filter.1.Value.1=EksCluster/Private*\
              &Filter.2.Name=state&Filter.2.Value.1=available",
        );
        let filters = Filters::of(&params);
        let tags = Tags::from([("Name".to_owned(), "EksCluster/PrivateSubnet1".to_owned())]);
        let state = |name: &str| (name == "state").then(|| vec!["available".to_owned()]);
        assert!(filters.keep(&tags, state).expect("known filters"));
        assert!(!filters.keep(&Tags::new(), state).expect("known filters"));
        let error = filters.keep(&tags, |_| None).expect_err("unknown");
        assert_eq!(error.code, "InvalidParameterValue");
    }

    #[test]
    fn pages_cover_everything_once() {
        let (first, next) =
            page(&Params::parse(b"MaxResults=2"), vec![1, 2, 3], 100).expect("page");
        let token = format!("MaxResults=2&NextToken={}", next.expect("more"));
        let (second, next) =
            page(&Params::parse(token.as_bytes()), vec![1, 2, 3], 100).expect("page");
        assert_eq!((first, second, next), (vec![1, 2], vec![3], None));
        assert!(page(&Params::parse(b"NextToken=x"), vec![1], 100).is_err());
    }
}
