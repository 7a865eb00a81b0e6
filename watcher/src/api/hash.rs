//! Karpenter's content hashes of NodePools (`v3`) and EC2NodeClasses (`v5`), by which it tells
//! whether a node is still what its pool and class ask for.
//!
//! Solves: is the hash that an object carries the hash of the object as it stands? The function is
//! that of mitchellh/hashstructure v2 (FormatV2, slices as sets, zero values ignored) over
//! Karpenter's Go types: 64-bit FNV-1 over field names and values, fields in their order, maps and
//! lists combined by exclusive or.
//!
//! Invariant: nothing is invented. A hash is only ever taken over from an object that carries it,
//! and only when it is proven to be the object's; what Go tells apart and we do not (a list that is
//! empty and one that is missing) is tried both ways.

mod shapes;

use serde::Serialize;
use serde_json::Value;

use self::shapes::{CLASS, Field, Kind, POOL};
use super::{EC2NodeClass, NodePool};
use crate::api::keys::annotations::{
    EC2_NODE_CLASS_HASH, EC2_NODE_CLASS_HASH_VERSION, NODE_POOL_HASH, NODE_POOL_HASH_VERSION,
};

/// Algorithm of a NodePool's hash that is known here.
pub const NODE_POOL_VERSION: &str = "v3";
/// Algorithm of an EC2NodeClass's hash that is known here.
pub const NODE_CLASS_VERSION: &str = "v5";
/// FNV's offset basis and prime for 64 bits (Fowler, Noll, Vo 1991).
const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

/// The hash that a pool carries, when it is that of its template.
#[must_use]
pub fn of_pool(pool: &NodePool) -> Option<String> {
    let notes = pool.metadata.annotations.as_ref()?;
    let carried = notes.get(NODE_POOL_HASH)?;
    let known = notes.get(NODE_POOL_HASH_VERSION)? == NODE_POOL_VERSION;
    let proven = known && matches(&pool.spec.template, &POOL, &[0], carried);
    proven.then(|| carried.clone())
}

/// The hash that a class carries, when it is that of its spec with this certificate authority.
#[must_use]
pub fn of_class(class: &EC2NodeClass, ca_bundle: &str) -> Option<String> {
    let notes = class.metadata.annotations.as_ref()?;
    let carried = notes.get(EC2_NODE_CLASS_HASH)?;
    let known = notes.get(EC2_NODE_CLASS_HASH_VERSION)? == NODE_CLASS_VERSION;
    // Whoever gives Karpenter an authority of its own, or none, may have given us another.
    let rests = [ca_bundle, ""].map(|ca| text(family(class)) ^ text(ca));
    let proven = known && matches(&class.spec, &CLASS, &rests, carried);
    proven.then(|| carried.clone())
}

/// True when a value, together with one of these remainders, hashes to what is carried.
fn matches<T: Serialize>(value: &T, kind: &Kind, rests: &[u64], carried: &str) -> bool {
    let Ok(value) = serde_json::to_value(value) else { return false };
    let carried: Result<u64, _> = carried.parse();
    let Ok(carried) = carried else { return false };
    let mut empties = Empties::default();
    loop {
        empties.met = 0;
        let Some(hash) = visit(&value, kind, &mut empties) else { return false };
        if rests.iter().any(|rest| hash ^ rest == carried) {
            return true;
        }
        empties.given += 1;
        if empties.given >> empties.met != 0 {
            return false;
        }
    }
}

/// Which of the empty lists and maps are taken as given (`[]`), by the bits of a number in the
/// order in which they are met; the others are taken as missing.
#[derive(Default)]
struct Empties {
    given: u32,
    met: u32,
}

impl Empties {
    fn is_given(&mut self) -> bool {
        let given = self.given >> self.met & 1 == 1;
        self.met += 1;
        given
    }
}

/// The family by which a class's images are read, as its hash has it.
fn family(class: &EC2NodeClass) -> &'static str {
    const FAMILIES: [&str; 6] =
        ["AL2", "AL2023", "Bottlerocket", "Windows2019", "Windows2022", "Windows2025"];
    if let Some(family) = class.spec.ami_family {
        return family.as_str();
    }
    let alias = class.spec.ami_selector_terms.iter().find_map(|term| term.alias.as_deref());
    let named = alias.and_then(|alias| alias.split('@').next()).unwrap_or_default();
    let found = FAMILIES.into_iter().find(|family| family.eq_ignore_ascii_case(named));
    found.unwrap_or("Custom")
}

/// Hash of a value of this kind; none for one that Karpenter would not have.
fn visit(value: &Value, kind: &Kind, empties: &mut Empties) -> Option<u64> {
    Some(match kind {
        Kind::Text => text(value.as_str()?),
        Kind::Flag => fnv(&[u8::from(value.as_bool()?)]),
        Kind::Int32 => fnv(&i32::try_from(value.as_i64()?).ok()?.to_le_bytes()),
        Kind::Int64 => fnv(&value.as_i64()?.to_le_bytes()),
        Kind::Size => text(&canonical(value.as_str()?)?),
        Kind::Period => {
            let nanos = nanos(value.as_str()?)?;
            record("Duration", [("Duration", nanos)])
        }
        Kind::PeriodOrNever => {
            let nanos = nanos(value.as_str()?)?;
            record("NillableDuration", [("Duration", Some(nanos.unwrap_or(fnv(&[0; 8]))))])
        }
        Kind::List(item) => {
            let items = value.as_array()?.iter().map(|it| visit(it, item, empties));
            items.sum_by_xor()?
        }
        Kind::Map(item) => {
            let entries = value.as_object()?.iter();
            let entries =
                entries.map(|(key, value)| Some(ordered(text(key), visit(value, item, empties)?)));
            finished(entries.sum_by_xor()?)
        }
        Kind::Record(name, fields) => {
            let mut hashed = Vec::with_capacity(fields.len());
            for field in *fields {
                hashed.push((field.go, self::field(value, field, empties)?));
            }
            record(name, hashed)
        }
    })
}

/// Hash of a field, the inner none when Go would see its zero value.
fn field(of: &Value, field: &Field, empties: &mut Empties) -> Option<Option<u64>> {
    let value = if field.json.is_empty() { of } else { &of[field.json] };
    let zero = match (value, field.kind) {
        (Value::Null, Kind::List(_) | Kind::Map(_)) => !empties.is_given(),
        (Value::Null, _) => true,
        (_, Kind::PeriodOrNever) => value == "Never",
        (Value::String(text), _) => !field.pointer && text.is_empty(),
        (Value::Bool(flag), _) => !field.pointer && !flag,
        (Value::Number(number), _) => !field.pointer && number.as_i64() == Some(0),
        (Value::Object(_), Kind::Record(..)) => !field.pointer && is_zero(value, field.kind),
        (Value::Array(_) | Value::Object(_), _) => false,
    };
    if zero {
        return Some(None);
    }
    let empty = if matches!(field.kind, Kind::List(_)) {
        &Value::Array(Vec::new())
    } else {
        &Value::Object(serde_json::Map::new())
    };
    let value = if value.is_null() { empty } else { value };
    visit(value, field.kind, empties).map(Some)
}

/// True when every field of a record is missing.
fn is_zero(value: &Value, kind: &Kind) -> bool {
    let Kind::Record(_, fields) = kind else { return false };
    fields.iter().all(|field| value[field.json].is_null())
}

trait Xor {
    /// All hashes by exclusive or; none when one is missing.
    fn sum_by_xor(self) -> Option<u64>;
}

impl<I: Iterator<Item = Option<u64>>> Xor for I {
    fn sum_by_xor(mut self) -> Option<u64> {
        self.try_fold(0, |sum, hash| Some(sum ^ hash?))
    }
}

fn record<'a>(name: &str, fields: impl IntoIterator<Item = (&'a str, Option<u64>)>) -> u64 {
    let set = fields.into_iter().filter_map(|(name, hash)| Some((name, hash?)));
    set.fold(text(name), |sum, (name, hash)| finished(sum ^ ordered(text(name), hash)))
}

fn ordered(first: u64, second: u64) -> u64 {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&first.to_le_bytes());
    bytes[8..].copy_from_slice(&second.to_le_bytes());
    fnv(&bytes)
}

fn finished(sum: u64) -> u64 {
    fnv(&sum.to_le_bytes())
}

fn text(text: &str) -> u64 {
    fnv(text.as_bytes())
}

fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(BASIS, |sum, byte| sum.wrapping_mul(PRIME) ^ u64::from(*byte))
}

/// Hash of a duration in nanoseconds, the inner none for zero.
fn nanos(text: &str) -> Option<Option<u64>> {
    let plain = super::PlainDuration::try_from(text.to_owned()).ok()?;
    let nanos = i64::try_from(plain.duration().as_nanos()).ok()?;
    Some((nanos != 0).then(|| fnv(&nanos.to_le_bytes())))
}

/// A size of a volume as Go's Quantity prints it: the largest unit that leaves a whole number.
fn canonical(text: &str) -> Option<String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let mut number: u64 = digits.parse().ok()?;
    let (units, base): (&[&str], u64) = match &text[digits.len()..] {
        "Gi" | "Ti" => (&["Gi", "Ti", "Pi"], 1024),
        "G" | "T" => (&["G", "T", "P"], 1000),
        _ => return None,
    };
    let mut at = units.iter().position(|unit| *unit == &text[digits.len()..])?;
    while number != 0 && number.is_multiple_of(base) && at + 1 < units.len() {
        (number, at) = (number / base, at + 1);
    }
    Some(format!("{number}{}", units[at]))
}

#[cfg(test)]
mod tests;
