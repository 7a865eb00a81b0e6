#!/usr/bin/env bash
# Makes a release of what is checked out: images, chart, definitions, the command for each platform with its
# completions, checksums, and a signature of these where a key is given.
#
#   deploy/release.sh VERSION OUT
#   KEY=release.pem deploy/release.sh VERSION OUT   a private key in PEM; verify with
#       openssl dgst -sha256 -verify release.pub -signature SHA256SUMS.sig SHA256SUMS
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1:?say which version: the one of Cargo.toml}
out=$(realpath -m "${2:?name the folder that the release goes to}")
target=${CARGO_TARGET_DIR:-target}

say() { printf 'release: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

own=$(awk -F '"' '/^version = / { print $2; exit }' Cargo.toml)
[ "$version" = "$own" ] || die "Cargo.toml says $own; change it there, commit, and run this again"
git diff --quiet HEAD -- || die "there are changes that are not committed: a release is one commit"

rm -rf "$out"
mkdir -p "$out"
deploy/images/twice.sh "$out/images"
mv "$out"/images/*.oci.tar "$out"/images/summary.json "$out"
rm -r "$out/images"

# --- chart and definitions ----------------------------------------------------------------------

tools/setup.sh helm
"$(tools/setup.sh --dir helm)/bin/helm" package deploy/chart --version "$version" --app-version "$version" \
    --destination "$out" 2> >(grep -v 'symbolic link' >&2)
epoch=$(git log -1 --format=%ct)
pack() { tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$epoch" -cf - "$@" | gzip -9n; }
pack -C deploy crds >"$out/longshore-crds-$version.tar.gz"

# --- command ------------------------------------------------------------------------------------

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/completions"
for shell in bash zsh fish; do
    "$target/x86_64-unknown-linux-musl/dist/longshore" completions $shell >"$scratch/completions/longshore.$shell"
done
for platform in amd64:x86_64 arm64:aarch64; do
    cp "$target/${platform#*:}-unknown-linux-musl/dist/longshore" "$scratch/longshore"
    pack -C "$scratch" longshore completions >"$out/longshore-$version-linux-${platform%:*}.tar.gz"
done

# --- checksums ----------------------------------------------------------------------------------

(cd "$out" && sha256sum -- * >SHA256SUMS)
if [ -n "${KEY:-}" ]; then
    openssl dgst -sha256 -sign "$KEY" -out "$out/SHA256SUMS.sig" "$out/SHA256SUMS"
else
    say "no KEY is given: SHA256SUMS is not signed"
fi
ls -l "$out"
