//! Durations and quantities as the API writes them.
//!
//! Invariant: a value that decoded is valid, and encodes to the text it came from.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use kube_quantity::{ParseQuantityError, ParsedQuantity};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize};

use super::schema::QUANTITY;

/// A duration that cannot be read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{0}` is not a duration; write hours, minutes and seconds such as 720h or 1h30m{1}")]
pub struct DurationError(String, &'static str);

/// A duration in hours, minutes and seconds, such as `10m` or `1h30m`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PlainDuration {
    text: String,
    duration: Duration,
}

impl PlainDuration {
    /// The length.
    #[must_use]
    pub const fn duration(&self) -> Duration {
        self.duration
    }
}

impl TryFrom<String> for PlainDuration {
    type Error = DurationError;

    fn try_from(text: String) -> Result<Self, DurationError> {
        match parse(&text) {
            Some(duration) => Ok(Self { text, duration }),
            None => Err(DurationError(text, "")),
        }
    }
}

impl From<PlainDuration> for String {
    fn from(value: PlainDuration) -> Self {
        value.text
    }
}

impl From<Duration> for PlainDuration {
    /// Whole seconds, in the largest unit that says them exactly, as people write them (`720h`);
    /// the rest is cut off.
    fn from(duration: Duration) -> Self {
        let seconds = duration.as_secs();
        let units = [(3_600, "h"), (60, "m"), (1, "s")];
        let unit = units.into_iter().find(|(unit, _)| seconds > 0 && seconds.is_multiple_of(*unit));
        let (unit, name) = unit.unwrap_or((1, "s"));
        Self { text: format!("{}{name}", seconds / unit), duration: Duration::from_secs(seconds) }
    }
}

impl JsonSchema for PlainDuration {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "PlainDuration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": r"^([0-9]+(s|m|h))+$" })
    }
}

/// A duration as in [`PlainDuration`], or `Never`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DurationOrNever(Option<PlainDuration>);

impl DurationOrNever {
    /// Never.
    pub const NEVER: Self = Self(None);

    /// The length, none for never.
    #[must_use]
    pub fn duration(&self) -> Option<Duration> {
        self.0.as_ref().map(PlainDuration::duration)
    }

    /// A pool's `expireAfter` when it says nothing: 30 days.
    pub(crate) fn thirty_days() -> Self {
        Self(Some(PlainDuration { text: "720h".into(), duration: Duration::from_hours(720) }))
    }
}

impl TryFrom<String> for DurationOrNever {
    type Error = DurationError;

    fn try_from(text: String) -> Result<Self, DurationError> {
        match parse(&text) {
            Some(duration) => Ok(Self(Some(PlainDuration { text, duration }))),
            None if text == "Never" => Ok(Self::NEVER),
            None => Err(DurationError(text, ", or Never")),
        }
    }
}

impl From<DurationOrNever> for String {
    fn from(value: DurationOrNever) -> Self {
        value.0.map_or_else(|| "Never".to_owned(), Self::from)
    }
}

impl From<Duration> for DurationOrNever {
    /// Whole seconds; the rest is cut off.
    fn from(duration: Duration) -> Self {
        Self(Some(duration.into()))
    }
}

impl JsonSchema for DurationOrNever {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "DurationOrNever".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": r"^(([0-9]+(s|m|h))+|Never)$" })
    }
}

/// Sums up `1h30m`; none when malformed, or longer than an `i64` of nanoseconds, which no other
/// reader of the object could hold either.
fn parse(text: &str) -> Option<Duration> {
    let mut total_seconds = 0_u64;
    let mut rest = text;
    while !rest.is_empty() {
        let (digits, tail) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
        let seconds = match tail.chars().next()? {
            'h' => 3600,
            'm' => 60,
            's' => 1,
            _ => return None,
        };
        let count: u64 = digits.parse().ok()?;
        total_seconds = total_seconds.checked_add(count.checked_mul(seconds)?)?;
        rest = &tail[1..];
    }
    let duration = Duration::from_secs(total_seconds);
    (!text.is_empty() && i64::try_from(duration.as_nanos()).is_ok()).then_some(duration)
}

/// Resource name to quantity.
pub type ResourceList = BTreeMap<String, Quantity>;

/// A Kubernetes quantity. Manifests write it as text or as a bare number; both decode.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Quantity(pub String);

impl Quantity {
    /// The number it stands for.
    ///
    /// # Errors
    /// When the text is no quantity, which the API server would have refused.
    pub fn parsed(&self) -> Result<ParsedQuantity, ParseQuantityError> {
        ParsedQuantity::try_from(self.0.as_str())
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<k8s_openapi::apimachinery::pkg::api::resource::Quantity> for Quantity {
    fn from(quantity: k8s_openapi::apimachinery::pkg::api::resource::Quantity) -> Self {
        Self(quantity.0)
    }
}

impl From<Quantity> for k8s_openapi::apimachinery::pkg::api::resource::Quantity {
    fn from(quantity: Quantity) -> Self {
        Self(quantity.0)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(QuantityVisitor)
    }
}

struct QuantityVisitor;

impl Visitor<'_> for QuantityVisitor {
    type Value = Quantity;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a quantity such as 500m, 4 or 16Gi")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Quantity, E> {
        Ok(Quantity(text.to_owned()))
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Quantity, E> {
        Ok(Quantity(number.to_string()))
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Quantity, E> {
        Ok(Quantity(number.to_string()))
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Quantity, E> {
        if number.is_finite() {
            Ok(Quantity(number.to_string()))
        } else {
            Err(E::custom("not a number"))
        }
    }
}

impl JsonSchema for Quantity {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Quantity".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "x-kubernetes-int-or-string": true, "pattern": QUANTITY })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(text: &str) -> Option<u64> {
        PlainDuration::try_from(text.to_owned()).ok().map(|parsed| parsed.duration().as_secs())
    }

    #[test]
    fn durations_add_up() {
        assert_eq!(seconds("720h"), Some(2_592_000));
        assert_eq!(seconds("1h30m5s"), Some(5_405));
        assert_eq!(seconds("0s"), Some(0));
        assert_eq!(seconds("5m5m"), Some(600));
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in ["", "5", "h", "1d", "-1h", "1.5h", "1h ", "Never", "9999999999h", "1h5"] {
            assert_eq!(seconds(text), None, "{text}");
        }
        let error = DurationOrNever::try_from("1d".to_owned()).unwrap_err().to_string();
        assert!(error.contains("1h30m, or Never"), "{error}");
    }

    #[test]
    fn never_and_text_survive_a_round_trip() {
        for text in ["Never", "60m", "1h0m0s"] {
            let parsed = DurationOrNever::try_from(text.to_owned()).unwrap();
            assert_eq!(String::from(parsed), text);
        }
        for (millis, text) in
            [(90_500, "90s"), (2_592_000_000, "720h"), (5_400_000, "90m"), (0, "0s")]
        {
            assert_eq!(String::from(DurationOrNever::from(Duration::from_millis(millis))), text);
        }
    }
}
