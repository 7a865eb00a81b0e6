//! The two services the scheduler serves, as thin shells.

pub mod cluster;
pub mod planning;
mod sessions;

pub use self::sessions::{Connected, Identity, Rival, Sessions};
