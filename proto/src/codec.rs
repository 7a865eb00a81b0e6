//! How messages become types: prost, behind a count of what a message is made of.
//!
//! Invariant: what a request takes in memory is bounded before any of it is taken. A message of
//! four megabytes may hold two million empty objects, which take a gigabyte; so the parts of a
//! request are counted in its bytes.

use std::marker::PhantomData;

use bytes::Buf as _;
use prost::Message;
use tonic::Status;
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder};
use tonic_prost::{ProstDecoder, ProstEncoder};

use crate::limits::{PARTS_FREE, PARTS_PER_BYTES, SHALLOW_PARTS_MAX};
use crate::reason::Reason;

/// Messages nested deeper are not looked into; what is that deep here is small.
const DEPTH_MAX: usize = 12;
/// Parts up to this depth are counted as shallow: objects of a view, launches, and what is in them.
const SHALLOW: usize = 1;

/// Encodes as prost does, and decodes what is not made of too many parts.
#[derive(Clone, Debug)]
pub struct BoundedCodec<T, U>(PhantomData<(T, U)>);

impl<T, U> Default for BoundedCodec<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T, U> Codec for BoundedCodec<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = ProstEncoder<T>;
    type Decoder = BoundedDecoder<U>;

    fn encoder(&mut self) -> Self::Encoder {
        ProstEncoder::default()
    }

    fn decoder(&mut self) -> Self::Decoder {
        BoundedDecoder(ProstDecoder::default())
    }
}

/// Decodes requests of a bounded number of parts, and any answer: whoever is asked was chosen.
#[derive(Clone, Debug)]
pub struct BoundedDecoder<U>(ProstDecoder<U>);

impl<U: Message + Default> Decoder for BoundedDecoder<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        if std::any::type_name::<U>().ends_with("Request") {
            // A message is in one piece here: it was gathered in one buffer.
            bounded(buffer.chunk())?;
        }
        self.0.decode(buffer)
    }

    fn buffer_settings(&self) -> BufferSettings {
        self.0.buffer_settings()
    }
}

/// Whether a message is made of so few parts that it may be decoded.
fn bounded(message: &[u8]) -> Result<(), Status> {
    let all_max = PARTS_FREE + message.len() / PARTS_PER_BYTES;
    let mut parts = Parts { shallow_left: SHALLOW_PARTS_MAX, left: all_max };
    if parts.count(message, 0).is_some() {
        return Ok(());
    }
    Err(Reason::MessageTooLarge.status(format!(
        "a message of {} bytes is made of more than {all_max} parts, or of more than {SHALLOW_PARTS_MAX} \
         objects and their fields; send them in several messages",
        message.len()
    )))
}

/// How many parts a message may still have.
struct Parts {
    shallow_left: usize,
    left: usize,
}

impl Parts {
    /// Counts the parts with a length of their own, of any depth; a text that looks like a message
    /// counts as one. `None` when there are too many.
    fn count(&mut self, mut bytes: &[u8], depth: usize) -> Option<()> {
        while let Some((part, rest)) = next(bytes) {
            bytes = rest;
            let Some(part) = part else { continue };
            self.left = self.left.checked_sub(1)?;
            if depth <= SHALLOW {
                self.shallow_left = self.shallow_left.checked_sub(1)?;
            }
            if depth < DEPTH_MAX {
                self.count(part, depth + 1)?;
            }
        }
        Some(())
    }
}

/// The next field: its content when that has a length of its own, and what follows. `None` at the
/// end, and where the bytes are no message.
fn next(bytes: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let (tag, rest) = varint(bytes)?;
    match tag & 7 {
        0 => varint(rest).map(|(_, rest)| (None, rest)),
        1 => rest.get(8..).map(|rest| (None, rest)),
        2 => {
            let (length, rest) = varint(rest)?;
            let length = usize::try_from(length).ok()?;
            let part = rest.get(..length)?;
            Some((Some(part), &rest[length..]))
        }
        5 => rest.get(4..).map(|rest| (None, rest)),
        _ => None,
    }
}

fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for (index, byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some((value, &bytes[index + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{CHUNK_BYTES_TARGET, MESSAGE_BYTES_MAX};
    use crate::planning::v1::ComputePlanRequest;
    use crate::types::v1::object::Kind;
    use crate::types::v1::{NodeClass, Object, Pod, PodShape, SelectorTerm, Toleration};

    fn refused(message: &impl Message) -> bool {
        bounded(&message.encode_to_vec()).is_err()
    }

    fn question(objects: Vec<Object>) -> ComputePlanRequest {
        ComputePlanRequest { objects, ..ComputePlanRequest::default() }
    }

    #[test]
    fn a_message_of_countless_small_parts_is_refused_before_it_is_decoded() {
        let empty = vec![Object::default(); MESSAGE_BYTES_MAX / 2];
        assert!(refused(&question(empty)));
        let tolerations = vec![Toleration::default(); MESSAGE_BYTES_MAX / 2 - 16];
        let shape = PodShape { tolerations, ..PodShape::default() };
        assert!(refused(&question(vec![Object { kind: Some(Kind::PodShape(shape)) }])));
        let mut broken = question(vec![Object::default(); 100_000]).encode_to_vec();
        broken.push(0xff);
        assert!(bounded(&broken).is_err(), "what is no message is no way around");
    }

    #[test]
    fn what_watchers_and_clients_send_passes() {
        let pod = |number: usize| Pod {
            uid: format!("00000000-0000-0000-0000-{number:012}"),
            namespace: "default".to_owned(),
            name: format!("web-{number}"),
            shape_id: "0123456789abcdef".to_owned(),
            node_name: format!("ip-10-0-{number}.ec2.internal"),
            create_time: Some(prost_types::Timestamp { seconds: 1_700_000_000, nanos: 7 }),
            ..Pod::default()
        };
        let object = |number| Object { kind: Some(Kind::Pod(pod(number))) };
        let count = MESSAGE_BYTES_MAX / object(0).encoded_len();
        assert!(count > CHUNK_BYTES_TARGET / 200);
        assert!(!refused(&question((0..count * 9 / 10).map(object).collect())));
        let user_data = "QmFzZTY0IGxvb2tzIGxpa2UgYSBtZXNzYWdlLCBub3cgYW5kIHRoZW4h".repeat(9_000);
        let term = SelectorTerm { name: user_data, ..SelectorTerm::default() };
        let class = NodeClass { ami_terms: vec![term], ..NodeClass::default() };
        assert!(!refused(&question(vec![Object { kind: Some(Kind::NodeClass(class)) }])));
    }
}
