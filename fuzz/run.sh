#!/usr/bin/env bash
# Builds the fuzz targets with coverage counters, on the pinned toolchain, and runs each for a while.
#
#   fuzz/run.sh [SECONDS [TARGET...]]
#
# Findings are left in fuzz/findings; the inputs that a run has grown are thrown away with it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

seconds=${1:-60}
shift || true
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(algebra compute_plan manifests)

# As libFuzzer wants its counters. --target keeps them out of build scripts and macros.
host=$(rustc -vV | sed -n 's/^host: //p')
export RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares"

mkdir -p findings
grown=$(mktemp -d)
trap 'rm -rf "$grown"' EXIT
for target in "${targets[@]}"; do
    CARGO_INCREMENTAL=0 cargo build --locked --target "$host" --features "$target" --bin "$target"
    echo "fuzz: $target for $seconds s"
    mkdir -p "$grown/$target" "seeds/$target"
    # Twenty seconds are far more than the slowest plan of these sizes takes.
    "${CARGO_TARGET_DIR:-target}/$host/debug/$target" "$grown/$target" "seeds/$target" \
        -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -max_len=4096 \
        -artifact_prefix=findings/ -print_final_stats=1 -close_fd_mask=1
done
