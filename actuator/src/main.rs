//! The regional actuator's process.
fn main() {}
