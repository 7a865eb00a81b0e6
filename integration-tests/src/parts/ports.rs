//! Loopback ports for programs that must be told theirs before they start.
//!
//! Invariant: no port is handed out twice by one process. They lie below the range from which the
//! kernel serves outgoing connections (32768 and up), so none is taken between choice and use.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};

const FIRST: u32 = 20_000;
const COUNT: u32 = 12_000;

/// How many ports have been tried by this process.
static TRIED: AtomicU32 = AtomicU32::new(0);

/// A port on 127.0.0.1 that is free now.
///
/// # Errors
/// When every port of the range is taken.
pub fn free() -> Result<u16> {
    // Processes start at different places, so that two test runs seldom try the same port.
    let start = std::process::id().wrapping_mul(61);
    (0..COUNT)
        .map(|_| start.wrapping_add(TRIED.fetch_add(1, Ordering::Relaxed)) % COUNT + FIRST)
        .filter_map(|port| u16::try_from(port).ok())
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .with_context(|| {
            format!("no free port from {FIRST} to {}; stop some programs", FIRST + COUNT)
        })
}
