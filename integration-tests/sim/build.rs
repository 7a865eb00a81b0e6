//! Compiles the part of etcd's API that the simulated etcd serves.
//!
//! Invariant: with protox, so that no protoc is needed for it.

use std::error::Error;

const PROTOS: [&str; 2] = ["etcd.proto", "election.proto"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let descriptors = protox::compile(PROTOS, ["proto"])?;
    tonic_prost_build::configure().build_client(false).compile_fds(descriptors)?;
    Ok(())
}
