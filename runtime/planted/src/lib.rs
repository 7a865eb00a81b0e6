//! Defects that once were, to be committed again: what the simulation, or a test, must be able to
//! find.
//!
//! Invariant: without the feature `planted`, which only the simulation and tests turn on, nothing
//! can be planted and every [`is`] is a constant that the compiler removes.

#[cfg(feature = "planted")]
static PLANTED: std::sync::OnceLock<std::collections::BTreeSet<String>> =
    std::sync::OnceLock::new();

/// Names, by commas, of the defects that are planted where nobody says which: in a test.
#[cfg(feature = "planted")]
const NAMES: &str = "LONGSHORE_PLANTED";

/// Plants defects for the rest of the process, whatever the environment says. Only the first call
/// counts.
#[cfg(feature = "planted")]
pub fn plant(names: impl IntoIterator<Item = String>) {
    // A second call would change a run half-way.
    let _ = PLANTED.set(names.into_iter().collect());
}

/// True when the defect of this name is to be committed again.
#[cfg(feature = "planted")]
#[must_use]
pub fn is(name: &str) -> bool {
    PLANTED.get_or_init(named).contains(name)
}

#[cfg(feature = "planted")]
#[allow(
    clippy::disallowed_methods,
    reason = "a test that can be told to fail; no release has this"
)]
fn named() -> std::collections::BTreeSet<String> {
    let names = std::env::var(NAMES).unwrap_or_default();
    names.split(',').map(ToOwned::to_owned).collect()
}

/// True when the defect of this name is to be committed again.
#[cfg(not(feature = "planted"))]
#[must_use]
#[inline]
pub const fn is(_name: &str) -> bool {
    false
}
