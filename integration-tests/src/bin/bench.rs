//! `make bench`: Longshore's planner and the peer, measured on the same files.

use std::alloc::System;

use clap::Parser;
use longshore_it::bench::{self, Args};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

/// Counts what a plan allocates, at the cost of a few additions for each allocation.
#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() -> anyhow::Result<()> {
    bench::run(&Args::parse())
}
