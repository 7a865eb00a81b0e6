//! Announcements from EC2: read from a queue, matched to our instances, recorded, shown.
//!
//! Invariant: a message is deleted only after what it says is recorded; one that cannot be
//! understood is deleted and counted, since it would come back for ever.

mod parse;
mod queue;

pub use parse::{Announcement, parse};
pub use queue::read;
