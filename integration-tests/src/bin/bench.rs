//! `make bench`: Longshore's planner and the peer, measured on the same files.

use std::alloc::System;

use alloc_tracker::Allocator;
use clap::Parser;
use longshore_it::bench::{self, Args};

/// Counts what each thread allocates.
#[global_allocator]
static ALLOCATOR: Allocator<System> = Allocator::system();

fn main() -> anyhow::Result<()> {
    bench::run(&Args::parse())
}
