#!/usr/bin/env bash
# Builds the images of what is checked out: static programs for each platform, packed without a daemon.
#
#   deploy/images/build.sh OUT [ARCH...]   into the folder OUT, for amd64 and arm64 unless given
#
# Programs are linked with musl by zig, which brings a C compiler and a libc for every platform. No path of
# the build machine gets into them, times are those of the commit, and the authorities that they trust are
# those of a pinned package: who builds the same commit gets the same digests.
set -euo pipefail
cd "$(dirname "$0")/../.."

out=${1:?name the folder that the images go to}
shift
archs=("$@")
[ ${#archs[@]} -gt 0 ] || archs=(amd64 arm64)
programs=(longshore longshore-watcher longshore-scheduler longshore-actuator)
target=${CARGO_TARGET_DIR:-target}

say() { printf 'image: %s\n' "$*" >&2; }
part() { tools/setup.sh --dir "$1"; }

triple() {
    case $1 in
        amd64) echo x86_64-unknown-linux-musl ;;
        arm64) echo aarch64-unknown-linux-musl ;;
        *) say "no platform '$1'; there are amd64 and arm64" && exit 1 ;;
    esac
}

tools/setup.sh protoc ziglang zigbuild cyclonedx certifi
PROTOC=$(part protoc)/bin/protoc
PATH=$(part ziglang)/bin:$(part zigbuild)/bin:$(part cyclonedx)/bin:$PATH
revision=$(git rev-parse HEAD)
git diff --quiet HEAD -- || revision+=-dirty
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
version=$(awk -F '"' '/^version = / { print $2; exit }' Cargo.toml)
cargo_home=${CARGO_HOME:-$HOME/.cargo}
# What the metric karpenter_build_info says.
LONGSHORE_COMMIT=$revision
export PROTOC PATH SOURCE_DATE_EPOCH LONGSHORE_COMMIT
# Paths of this machine would be in panics' messages, those of generated code, too. Line by line, as cargo
# separates them: by a unit separator.
CARGO_ENCODED_RUSTFLAGS=$(printf '%s\x1f' --remap-path-prefix="$PWD=longshore" \
    --remap-path-prefix="$cargo_home=cargo" --remap-path-prefix="$(realpath -m "$target")=target" \
    | sed 's/\x1f$//')
RUSTC_WRAPPER=$PWD/deploy/images/rustc.sh
export CARGO_ENCODED_RUSTFLAGS RUSTC_WRAPPER

# --- programs -----------------------------------------------------------------------------------

# Of each package the program that is called like it: one has generators, too.
wanted=("${programs[@]/#/--package=}" "${programs[@]/#/--bin=}")
for arch in "${archs[@]}"; do
    triple=$(triple "$arch")
    if command -v rustup >/dev/null; then
        rustup target list --installed | grep -qx "$triple" || rustup target add "$triple" >&2
    fi
    started=$SECONDS
    cargo zigbuild --locked --profile dist --target "$triple" --target-dir "$target" "${wanted[@]}" >&2
    say "$arch: built in $((SECONDS - started)) s"
done

# --- images -------------------------------------------------------------------------------------

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# What they are made of is written beside each manifest: in a copy.
git ls-files -z | xargs -0 cp --parents --no-dereference --target-directory="$scratch"
cargo cyclonedx --quiet --format json --target "$(triple "${archs[0]}")" --manifest-path "$scratch/Cargo.toml"

mkdir -p "$out"
for program in "${programs[@]}"; do
    # Where the copy was is nobody's business.
    sbom=$scratch/$program.sbom.json
    find "$scratch" -name "$program.cdx.json" -exec sed "s#$scratch#longshore#g" {} + >"$sbom"
    binaries=()
    for arch in "${archs[@]}"; do
        binaries+=(--binary "$arch=$target/$(triple "$arch")/dist/$program")
    done
    deploy/images/oci.py --name "$program" --version "$version" --revision "$revision" \
        --epoch "$SOURCE_DATE_EPOCH" "${binaries[@]}" --roots "$(part certifi)/cacert.pem" \
        --sbom "$sbom" --out "$out"
done >"$scratch/images"
python3 -c 'import json, sys; print(json.dumps([json.loads(line) for line in sys.stdin], indent=1))' \
    <"$scratch/images" >"$out/images.json"
