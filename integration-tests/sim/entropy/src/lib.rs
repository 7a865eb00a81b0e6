//! Takes the system's randomness away from the process: whoever asks libc for some gets the same
//! bytes each time. Hash maps of libraries then iterate alike in each run, and tokio chooses alike
//! between branches that are ready together.
//!
//! Invariant: linked into the simulation only. Randomness that the services use is theirs to be
//! given (`longshore_runtime::entropy`), and never comes from here.

use std::sync::atomic::{AtomicU64, Ordering};

/// How often randomness was asked for: that the function is there at all is to be seen.
static ASKED: AtomicU64 = AtomicU64::new(0);

/// How often this process has asked for randomness.
#[must_use]
pub fn asked() -> u64 {
    ASKED.load(Ordering::Relaxed)
}

/// Stands for libc's `getrandom`: fills the buffer with bytes that are always the same.
///
/// # Safety
/// As of libc's: `buffer` is valid for writes of `length` bytes.
#[allow(
    unsafe_code,
    reason = "the one way to hold what the standard library and others draw from the system: a symbol of libc's name"
)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getrandom(buffer: *mut u8, length: usize, _flags: u32) -> isize {
    ASKED.fetch_add(1, Ordering::Relaxed);
    for offset in 0..length {
        // Any bytes do, if they are not all alike.
        let byte = u8::try_from((offset * 151 + 77) % 251).unwrap_or_default();
        // SAFETY: the caller owes `length` writable bytes.
        unsafe { buffer.add(offset).write(byte) };
    }
    isize::try_from(length).unwrap_or(isize::MAX)
}
