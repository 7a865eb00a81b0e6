//! AWS as the cloud: clients, and the traits of [`crate::cloud`] in terms of them.
//!
//! Invariant: the only module that sees an AWS type. Everything it needs beyond the standard
//! controller policy is optional, and its absence is said in words.

#[cfg(feature = "aws")]
mod access;
mod alias;
pub mod blueprint;
#[cfg(feature = "aws")]
mod client;
#[cfg(feature = "aws")]
mod errors;
#[cfg(feature = "aws")]
mod facts;
#[cfg(feature = "aws")]
mod fleet;
#[cfg(feature = "aws")]
pub mod inspect;
#[cfg(feature = "aws")]
mod listing;
#[cfg(feature = "aws")]
mod market;
#[cfg(feature = "aws")]
mod messages;
#[cfg(feature = "aws")]
mod network;
pub mod request;
#[cfg(feature = "aws")]
mod selector;
#[cfg(feature = "aws")]
mod tag;
#[cfg(feature = "aws")]
mod templates;
pub mod userdata;

pub use alias::{Alias, AliasError, ImageParameter, Variant};
#[cfg(feature = "aws")]
pub use client::Aws;
#[cfg(feature = "aws")]
pub use errors::classify;
