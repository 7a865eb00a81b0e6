//! XML replies as a small tree, rendered once.
//!
//! Invariant: text is always escaped; element order is the order of construction.

use std::fmt::Write as _;

use quick_xml::escape::partial_escape;

/// One XML element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    name: &'static str,
    content: Content,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Content {
    Text(String),
    Children(Vec<Element>),
}

/// `<name>value</name>`.
pub fn text(name: &'static str, value: impl ToString) -> Element {
    Element { name, content: Content::Text(value.to_string()) }
}

/// `<name>` around other elements.
pub fn group(name: &'static str, children: Vec<Element>) -> Element {
    Element { name, content: Content::Children(children) }
}

/// An element only when there is a value for it.
pub fn maybe(name: &'static str, value: Option<impl ToString>) -> Option<Element> {
    value.map(|value| text(name, value))
}

/// An EC2 list: each entry inside `<item>`.
pub fn set(name: &'static str, items: impl IntoIterator<Item = Vec<Element>>) -> Element {
    group(name, items.into_iter().map(|item| group("item", item)).collect())
}

/// An IAM list: each entry inside `<member>`.
pub fn members(name: &'static str, items: impl IntoIterator<Item = Vec<Element>>) -> Element {
    group(name, items.into_iter().map(|item| group("member", item)).collect())
}

impl Element {
    /// An EC2 list of plain texts: `<name><item>a</item><item>b</item></name>`.
    pub fn texts(name: &'static str, values: impl IntoIterator<Item = impl ToString>) -> Element {
        group(name, values.into_iter().map(|value| text("item", value)).collect())
    }

    /// Appends this element's text form to `out`.
    pub fn write(&self, out: &mut String) {
        let _ = write!(out, "<{}>", self.name);
        match &self.content {
            Content::Text(value) => out.push_str(&partial_escape(value.as_str())),
            Content::Children(children) => children.iter().for_each(|child| child.write(out)),
        }
        let _ = write!(out, "</{}>", self.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_lists_are_wrapped() {
        let mut out = String::new();
        set("tagSet", [vec![text("key", "a<b"), text("value", 1)]]).write(&mut out);
        assert_eq!(out, "<tagSet><item><key>a&lt;b</key><value>1</value></item></tagSet>");
    }
}
