//! The whole system in one thread: the real watcher, scheduler and actuator over a simulated network,
//! region and cluster, all from one seed.
//!
//! Invariant: the same seed and build give the same journal, byte for byte.

mod apiserver;
mod clock;
mod cloud;
mod gate;
mod journal;
mod net;
mod process;
mod random;
mod region;
mod run;
mod users;
mod verdict;
mod world;

fn main() -> std::process::ExitCode {
    run::main()
}
