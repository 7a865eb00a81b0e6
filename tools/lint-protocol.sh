#!/usr/bin/env bash
# Lints the protocol and compares it with what others already speak: the last release, or, before
# the first one, the last commit (so that a breaking edit is noticed before it is committed).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

buf lint proto

base=$(git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null || echo HEAD)
before=$(mktemp -d)
trap 'rm -rf "$before"' EXIT
if git archive "$base" proto 2>/dev/null | tar -x -C "$before" 2>/dev/null \
    && [ -n "$(find "$before" -name '*.proto' -print -quit)" ]; then
    buf breaking proto --against "$before/proto"
    echo "protocol: lints, and is compatible with $base"
else
    echo "protocol: lints; $base has no protocol to compare with"
fi
