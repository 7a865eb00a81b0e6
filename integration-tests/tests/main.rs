//! The one integration-test binary: each further one would link the EC2 SDK once more.
//!
//! Invariant: a test brings what it needs (see `longshore_it::parts`) and takes it away again, so
//! that all of them may run at once and in any order.

mod clients;
mod deploy;
mod doctor;
mod kill;
mod parts;
mod refusals;
mod tidy;
mod up;
mod walkthrough;
