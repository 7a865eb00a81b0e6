//! The reader of manifests: whatever stands in a file is read or refused with its place, never a
//! panic.

#![no_main]

use longshore_manifests::{inventory, manifest};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let documents = match manifest::parse("f.yaml", text) {
        Ok(documents) => documents,
        Err(error) => return assert!(error.to_string().contains("f.yaml"), "{error}"),
    };
    if let Err(faults) = inventory::take(documents) {
        assert!(!faults.0.is_empty(), "refused without a word");
        assert!(faults.0.iter().all(|fault| fault.contains("f.yaml")), "{faults}");
    }
});
