//! Names of messages and texts by what is in them.
//!
//! Invariant: equal content has an equal name, in every process and on every platform.

use std::fmt::Write as _;

use prost::Message;
use sha2::{Digest as _, Sha256};

/// The first bytes of the SHA-256 of a message, in hexadecimal.
#[must_use]
pub fn hash<const BYTES: usize>(message: &impl Message) -> String {
    hash_of_bytes::<BYTES>(&message.encode_to_vec())
}

/// The same of bytes.
#[must_use]
pub fn hash_of_bytes<const BYTES: usize>(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest[..BYTES].iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
