//! Compiles the protobuf packages with protox: no protoc needed here.

#![allow(
    clippy::disallowed_methods,
    reason = "cargo passes OUT_DIR to build scripts by environment"
)]

use std::error::Error;
use std::path::PathBuf;

const PROTOS: [&str; 3] = [
    "longshore/cluster/v1/cluster.proto",
    "longshore/planning/v1/planning.proto",
    "longshore/capacity/v1/capacity.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=longshore");
    let descriptors = protox::compile(PROTOS, ["."])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?).join("longshore_descriptor.bin");
    std::fs::write(&out, prost::Message::encode_to_vec(&descriptors))?;
    tonic_prost_build::configure()
        .btree_map(".")
        .bytes(".")
        .codec_path("crate::codec::BoundedCodec")
        .compile_fds(descriptors)?;
    Ok(())
}
