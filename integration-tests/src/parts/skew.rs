//! Wall clocks that are wrong: a program that is told another time of day than the machine's.
//!
//! Invariant: only the time of day is shifted. Monotonic time, sleeps and time stamps of files are
//! the machine's own. The library that does it (libfaketime) is preloaded into the one program.

use std::process::Command;

use anyhow::Result;

use super::binary;

/// Lets the wall clock of a program be this many seconds ahead; behind when negative.
///
/// # Errors
/// When libfaketime is not installed.
pub fn shift(command: &mut Command, ahead_s: i64) -> Result<()> {
    let library = binary::part_program("libfaketime", "libfaketime.so.1")?;
    command
        .env("LD_PRELOAD", library)
        .env("FAKETIME", format!("{ahead_s:+}"))
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        .env("NO_FAKE_STAT", "1")
        // What it would share is a start time, for children; there are none.
        .env("FAKETIME_DISABLE_SHM", "1");
    Ok(())
}
