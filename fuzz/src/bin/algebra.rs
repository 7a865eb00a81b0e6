//! The algebra of requirements against membership.

#![no_main]

use longshore_fuzz::algebra::{Clause, laws};

libfuzzer_sys::fuzz_target!(|clauses: [Clause; 3]| {
    let [a, b, c] = clauses.map(|clause| clause.requirement());
    if let (Some(a), Some(b), Some(c)) = (a, b, c) {
        laws(&a, &b, &c);
    }
});
