#!/usr/bin/env bash
# Builds the images of what is checked out, and again from a copy of it in another place with nothing in common,
# and says whether the digests are the same.
#
#   deploy/images/twice.sh OUT   the images, and summary.json: {"images": […], "reproducible": …}
#
# With ONCE=1 the second build is left out, and "reproducible" is null.
set -euo pipefail
cd "$(dirname "$0")/../.."

out=$(realpath -m "${1:?name the folder that the images go to}")
deploy/images/build.sh "$out"
again=null
if [ "${ONCE:-}" != 1 ]; then
    copy=$(mktemp -d)
    trap 'rm -rf "$copy"' EXIT
    git clone --quiet . "$copy/elsewhere"
    CARGO_TARGET_DIR=$copy/target "$copy/elsewhere/deploy/images/build.sh" "$copy/images"
    if cmp --silent "$out/images.json" "$copy/images/images.json"; then again=true; else again=false; fi
fi
python3 - "$out" "$again" <<'SUMMARY'
import json, pathlib, sys

out = pathlib.Path(sys.argv[1])
images = json.loads((out / "images.json").read_text())
summary = {"images": images, "reproducible": json.loads(sys.argv[2])}
(out / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
for image in images:
    mebibytes = image["compressed_bytes"] / 2**20
    print(f"{image['name']:20} {mebibytes:6.1f} MiB  {', '.join(image['platforms'])}  {image['digest']}")
print("built twice, same digests:", {True: "yes", False: "NO", None: "not tried"}[summary["reproducible"]])
SUMMARY
