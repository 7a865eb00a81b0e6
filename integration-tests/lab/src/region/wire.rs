//! AWS wire protocols: requests into one shape, replies and errors out of one shape.
//!
//! Invariant: nothing here knows what a service does; services never see HTTP.

mod error;
mod params;
mod reply;
mod request;
mod xml;

pub use error::{AwsError, Protocol, Result};
pub use params::Params;
pub use reply::{Body, render};
pub use request::{Request, Service};
pub use xml::{Element, group, maybe, members, set, text};
