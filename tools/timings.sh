#!/usr/bin/env bash
# How long the compiler takes from nothing: the planner with what it depends on, then everything,
# tests included. Uses a target directory of its own and removes it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

CARGO_TARGET_DIR=$(mktemp -d)
export CARGO_TARGET_DIR
trap 'rm -rf "$CARGO_TARGET_DIR"' EXIT

timed() {
    local what=$1 began=$SECONDS
    shift
    "$@" 2>/dev/null
    echo "$what: $((SECONDS - began)) s"
}

cargo fetch --locked --quiet
timed "cargo check of the planner, dependencies included" cargo check --package longshore-core
touch scheduler/core/src/lib.rs
timed "cargo check of the planner after a change" cargo check --package longshore-core
timed "cargo check of the whole, tests included" cargo check --workspace --all-targets
touch scheduler/core/src/lib.rs
timed "cargo check of the whole after a change in the planner" cargo check --workspace --all-targets
