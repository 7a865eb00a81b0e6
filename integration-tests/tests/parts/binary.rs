//! A program that is not there is an error that says how to get it.

use longshore_it::parts::binary::{part_program, workspace_program};

#[test]
fn missing_programs_name_the_way_out() {
    for (answer, way_out) in [
        (workspace_program("no-such-program"), "cargo build --workspace --all-targets"),
        (part_program("no-such-part", "x"), "there are: kubernetes etcd"),
        (part_program("etcd", "no-such-program"), "name a program that the part has"),
    ] {
        let error = answer.unwrap_err().to_string();
        assert!(error.contains(way_out), "{error}");
    }
}
