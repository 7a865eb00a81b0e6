//! Bad input, one file for each party that refuses it: a typed refusal or a status condition with
//! the way out, while all others are served.
//!
//! Invariant: input goes in and refusals come out over real wires, through the programs that users
//! run; no test looks into a process.

mod cli;
mod objects;
mod policy;
mod protocol;
mod region;
mod stage;
