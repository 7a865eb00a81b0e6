//! The one integration-test binary: each further one would link the EC2 SDK once more.
//!
//! Invariant: a test brings what it needs (see `longshore_it::parts`) and takes it away again, so
//! that all of them may run at once and in any order.

mod adoption;
mod agree;
mod chaos;
mod clients;
mod deploy;
mod doctor;
mod identity;
mod install;
mod kill;
mod parts;
mod refusals;
mod tidy;
mod up;
mod walkthrough;

/// A new folder under the target folder, for the logs of a test. It stays, for whoever wonders why
/// a run failed.
fn kept_dir(prefix: &str) -> anyhow::Result<std::path::PathBuf> {
    let mut builder = tempfile::Builder::new();
    Ok(builder.prefix(prefix).tempdir_in(env!("CARGO_TARGET_TMPDIR"))?.keep())
}
