//! Tags in EC2's form.
//!
//! Invariant: key and value as given.

use aws_sdk_ec2::types::Tag;

/// A tag in EC2's form.
pub(super) fn tag(key: &str, value: &str) -> Tag {
    Tag::builder().key(key).value(value).build()
}
