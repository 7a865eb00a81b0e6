//! `make bench`: Longshore's planner and the peer, measured on the same files.

use alloc_tracker::Allocator;
use clap::Parser;
use longshore_it::bench::{self, Args};

/// That of the services, counting what each thread allocates.
#[global_allocator]
static ALLOCATOR: Allocator<longshore_runtime::Allocator> =
    Allocator::new(longshore_runtime::Allocator);

fn main() -> anyhow::Result<()> {
    bench::run(&Args::parse())
}
