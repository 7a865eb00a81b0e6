//! Defects that once were, to be committed again: what the simulation must be able to find.
//!
//! Invariant: without the feature `planted`, which only the simulation turns on, nothing can be planted
//! and every [`is`] is a constant that the compiler removes.

#[cfg(feature = "planted")]
static PLANTED: std::sync::OnceLock<std::collections::BTreeSet<String>> =
    std::sync::OnceLock::new();

/// Plants defects for the rest of the process. Only the first call counts.
#[cfg(feature = "planted")]
pub fn plant(names: impl IntoIterator<Item = String>) {
    // A second call would change a run half-way.
    let _ = PLANTED.set(names.into_iter().collect());
}

/// True when the defect of this name is to be committed again.
#[cfg(feature = "planted")]
#[must_use]
pub fn is(name: &str) -> bool {
    PLANTED.get().is_some_and(|planted| planted.contains(name))
}

/// True when the defect of this name is to be committed again.
#[cfg(not(feature = "planted"))]
#[must_use]
#[inline]
pub const fn is(_name: &str) -> bool {
    false
}
