#!/usr/bin/env bash
# Makes the facts that longshore-ec2-data embeds (actuator/data/src/embedded) out of published
# packages, which it installs, pinned by `inputs`, into the user's cache.
#
#   generate.sh           writes the blobs
#   generate.sh --check   compares the committed blobs with what this generator makes
#   generate.sh --peer    asks Karpenter's own code about every type, for src/node/tests/peer.rs
#                         (builds it with the AWS SDK: five minutes the first time)
#
# Exit status 1: the blobs differ, or the generator fails. 2: it cannot run here (no Go, no Python,
# no package registry). Needs Go 1.24 and Python 3.10 or newer; 20 s the first time, then 4 s.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
embedded=$(cd "$here/../src/embedded" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/longshore/ec2-data
zstandard=0.25.0

say() { printf 'generate: %s\n' "$*" >&2; }
cannot() { say "$*"; exit 2; }
need() { command -v "$1" >/dev/null || cannot "'$1' is not installed; $2"; }

version() { awk -v package="$1" '$1 == package { print $2 }' "$here/inputs"; }

# go_module MODULE : downloads the pinned version, checked against Go's checksum database, and
# prints its folder. It is never built.
go_module() {
    local found
    found=$(cd "$cache" && go mod download -json "$1@$(version "go:$1")") ||
        cannot "the Go module $1 cannot be had: $found"
    python3 -c 'import json, sys; print(json.load(sys.stdin)["Dir"])' <<<"$found"
}

# python_env : a virtual environment with the pinned packages; prints its folder.
python_env() {
    local moto env
    moto=$(version pypi:moto)
    env=$cache/python-moto-$moto-zstandard-$zstandard
    if [ ! -e "$env/.complete" ]; then
        say "installing moto $moto and zstandard $zstandard into $env"
        rm -rf "$env"
        python3 -m venv "$env" ||
            cannot "python3 cannot make a virtual environment; install python3-venv"
        "$env/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
            "moto==$moto" "zstandard==$zstandard" >&2 ||
            cannot "the Python packages cannot be had"
        touch "$env/.complete"
    fi
    echo "$env"
}

# tables FOLDER : the tables of a Go module's source as JSON.
tables() {
    local providers=$1/pkg/providers
    (cd "$here/tables" && go run . \
        "$providers/pricing/zz_generated.pricing_aws.go:InitialOnDemandPricesAWS" \
        "$providers/pricing/zz_generated.pricing_aws_us_gov.go:InitialOnDemandPricesUSGov" \
        "$providers/instancetype/zz_generated.vpclimits.go:Limits" \
        "$providers/instancetype/zz_generated.bandwidth.go:InstanceTypeBandwidthMegabits")
}

# peer OUT : what Karpenter says of every type, compressed, into a file. The module is copied first:
# resolving it completes go.mod and go.sum, which are not ours to keep.
peer() {
    local env moto
    env=$(python_env)
    moto=$(echo "$env"/lib/python3*/site-packages/moto)
    cp "$here"/peer/{go.mod,main.go} "$scratch/"
    (cd "$scratch" && GOFLAGS="-mod=mod -buildvcs=false" go build -o peer .)
    "$scratch/peer" "$moto/ec2/resources/instance_types.json.gz" >"$scratch/peer.jsonl"
    "$env/bin/python" - "$scratch/peer.jsonl" "$1" <<'END'
import pathlib, sys, zstandard
lines, out = map(pathlib.Path, sys.argv[1:])
out.write_bytes(zstandard.ZstdCompressor(level=19).compress(lines.read_bytes()))
END
}

# generate OUT : writes the blobs into a folder.
generate() {
    local env karpenter prices moto
    env=$(python_env)
    karpenter=$(go_module github.com/aws/karpenter-provider-aws)
    prices=$(go_module github.com/cristim/ec2-instances-info)
    tables "$karpenter" >"$scratch/tables.json"
    moto=$(echo "$env"/lib/python3*/site-packages/moto)
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$here "$env/bin/python" -m ec2facts \
        "$here/inputs" "$moto" "$scratch/tables.json" "$prices" "$1"
}

need go "install Go 1.24 or newer and run this again"
need python3 "install Python 3.10 or newer with its venv module and run this again"
mkdir -p "$cache"
# Two runs at once: the second waits, then finds the packages present.
exec 9>"$cache/lock"
flock 9
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

case ${1:-} in
    "") generate "$embedded" ;;
    --check)
        generate "$scratch/out"
        if ! diff -rq "$scratch/out" "$embedded" >&2; then
            say "the embedded facts are not what the generator makes; run $0"
            exit 1
        fi
        say "the embedded facts are what the generator makes"
        ;;
    --peer) peer "$embedded/../node/tests/peer.jsonl.zst" ;;
    *) cannot "unknown argument '$1'; there are --check and --peer" ;;
esac
