//! Which devices the CEL expressions of a DeviceClass select, for the few forms that drivers use.
//!
//! Invariant: a selection is exact or not given at all; a driver is given only when no device of
//! another one can be selected.

use std::collections::BTreeMap;

/// An attribute by domain and name. A name without a domain belongs to its driver's.
pub type Attribute = (String, String);

/// Devices of one driver with these attributes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Selection {
    /// The driver.
    pub driver: String,
    /// Text that each of these attributes must have.
    pub attributes: BTreeMap<Attribute, String>,
}

/// What is understood of expressions that must all hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expressions {
    drivers: Vec<String>,
    attributes: Vec<(Attribute, String)>,
    /// Some of it is of another form.
    more: bool,
}

impl Expressions {
    /// Reads expressions of the form `device.driver == "…" && device.attributes["…"].name == "…"`.
    pub fn read<'a>(expressions: impl IntoIterator<Item = &'a str>) -> Self {
        let mut all = Self::default();
        for term in expressions.into_iter().flat_map(conditions) {
            all.more |= all.take(term).is_none();
        }
        all
    }

    /// The one driver whose devices can be selected, when that is understood.
    #[must_use]
    pub fn driver(&self) -> Option<&str> {
        self.drivers.first().map(String::as_str)
    }

    /// What is selected, when all of it is understood.
    #[must_use]
    pub fn selection(&self) -> Option<Selection> {
        let driver = self.drivers.first()?.clone();
        let attributes: BTreeMap<_, _> = self.attributes.iter().cloned().collect();
        let agreed = self.drivers.iter().all(|other| *other == driver)
            && self.attributes.iter().all(|(key, text)| attributes.get(key) == Some(text));
        (agreed && !self.more).then_some(Selection { driver, attributes })
    }

    fn take(&mut self, term: &str) -> Option<()> {
        let (left, right) = term.split_once("==")?;
        let value = quoted(right)?.to_owned();
        let left = left.trim();
        if left == "device.driver" {
            self.drivers.push(value);
            return Some(());
        }
        let (domain, name) = left.strip_prefix("device.attributes[")?.split_once("].")?;
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(plain) {
            return None;
        }
        self.attributes.push(((quoted(domain)?.to_owned(), name.to_owned()), value));
        Some(())
    }
}

/// The conditions of an expression that must all hold: those joined by `&&` outside of brackets, or
/// the expression itself where it says more.
fn conditions(expression: &str) -> Vec<&str> {
    let bytes = expression.as_bytes();
    let (mut depth, mut quote, mut start) = (0_u32, None, 0);
    let mut found = Vec::new();
    for (at, byte) in bytes.iter().enumerate() {
        match (byte, quote) {
            (b'\\', _) => return vec![expression],
            (b'"' | b'\'', None) => quote = Some(*byte),
            (_, Some(open)) => quote = quote.filter(|_| open != *byte),
            (b'(' | b'[' | b'{', None) => depth += 1,
            (b')' | b']' | b'}', None) => depth = depth.saturating_sub(1),
            (b'|' | b'?', None) if depth == 0 => return vec![expression],
            (b'&', None) if depth == 0 && bytes.get(at + 1) == Some(&b'&') => {
                found.push(&expression[start..at]);
                start = at + 2;
            }
            _ => {}
        }
    }
    found.push(&expression[start..]);
    found
}

/// Text in quotes of either kind, without escapes.
fn quoted(text: &str) -> Option<&str> {
    let text = text.trim();
    let inner = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    let found = inner('"').or_else(|| inner('\''))?;
    (!found.contains(['"', '\'', '\\'])).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(expressions: &[&str]) -> (Option<String>, Option<String>) {
        let read = Expressions::read(expressions.iter().copied());
        let exact = read.selection().map(|Selection { driver, attributes }| {
            let attributes = attributes.iter().map(|((d, n), v)| format!(" {d}/{n}={v}"));
            driver + &attributes.collect::<String>()
        });
        (read.driver().map(str::to_owned), exact)
    }

    #[test]
    fn forms_that_drivers_use_are_understood() {
        let gpu = "device.driver == 'gpu.nvidia.com' && \
                   device.attributes['gpu.nvidia.com'].type == 'gpu'";
        let table: [(&[&str], &str); 5] = [
            (&["device.driver == \"neuron.aws.com\""], "neuron.aws.com"),
            (&["\n  device.driver=='gpu.amd.com'\n"], "gpu.amd.com"),
            (&[gpu], "gpu.nvidia.com gpu.nvidia.com/type=gpu"),
            (&["device.driver == 'a'", "device.attributes[\"b\"].c == 'd'"], "a b/c=d"),
            (&["device.driver == 'a' && device.attributes['a'].b == 'c && d'"], "a a/b=c && d"),
        ];
        for (expressions, expected) in table {
            assert_eq!(read(expressions).1.as_deref(), Some(expected), "{expressions:?}");
        }
    }

    #[test]
    fn all_others_are_not_and_their_driver_is_where_it_must_hold() {
        let table = [
            ("true", None),
            ("device.driver != 'a'", None),
            ("device.driver == 'a' || device.driver == 'b'", None),
            ("device.driver == 'a' && (x || y)", Some("a")),
            ("x || y && device.driver == 'a' && z", None),
            ("!(x && device.driver == 'a' && y)", None),
            ("device.driver == 'a' && device.driver == 'b'", Some("a")),
            ("device.driver == 'a' && !device.attributes['a'].shared", Some("a")),
            ("has(device.attributes['a'].b) && device.driver == 'a'", Some("a")),
            ("device.driver == 'a' && device.attributes['a'].b.contains('c')", Some("a")),
            ("device.driver == 'a' && device.attributes['a'].b == 1", Some("a")),
            (
                "device.driver == 'a' && device.attributes['a'].b == 'c' && \
                 device.attributes['a'].b == 'd'",
                Some("a"),
            ),
            ("x ? y : z && device.driver == 'b' && z", None),
            ("device.attributes['a'].b == 'c'", None),
            (r"device.driver == 'a' && '\'' && device.driver == 'b'", None),
            ("'a' == device.driver", None),
        ];
        for (expression, driver) in table {
            assert_eq!(read(&[expression]), (driver.map(str::to_owned), None), "{expression}");
        }
        assert_eq!(read(&[]), (None, None));
    }
}
