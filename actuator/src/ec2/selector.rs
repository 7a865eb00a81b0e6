//! Selector terms as EC2 filters.
//!
//! Invariant: a term's parts are one request and all hold; alternatives are separate requests.

use aws_sdk_ec2::types::Filter;
use longshore_proto::types::v1::SelectorTerm;

/// Filters for a term's tags. A value of `*` asks for the key alone; other wildcards are EC2's own.
pub fn tag_filters(term: &SelectorTerm) -> Vec<Filter> {
    term.tags
        .iter()
        .map(|(key, value)| match value.as_str() {
            "*" => Filter::builder().name("tag-key").values(key).build(),
            value => Filter::builder().name(format!("tag:{key}")).values(value).build(),
        })
        .collect()
}

/// A filter with one value.
pub fn filter(name: &str, value: &str) -> Filter {
    Filter::builder().name(name).values(value).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_become_filters() {
        let tags = [("karpenter.sh/discovery", "dev"), ("Name", "*"), ("Zone", "Private*")];
        let tags = tags.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let filters = tag_filters(&SelectorTerm { tags, ..SelectorTerm::default() });
        let shown: Vec<_> =
            filters.iter().map(|f| format!("{}={}", f.name().unwrap(), f.values()[0])).collect();
        assert_eq!(shown, ["tag-key=Name", "tag:Zone=Private*", "tag:karpenter.sh/discovery=dev"]);
    }
}
