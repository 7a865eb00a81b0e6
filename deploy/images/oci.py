#!/usr/bin/env python3
"""Packs static binaries into an OCI image for several platforms, without a daemon.

    deploy/images/oci.py --name longshore-scheduler --version 0.1.0 --revision COMMIT --epoch SECONDS \
        --binary amd64=PATH --binary arm64=PATH --roots /etc/ssl/certs/ca-certificates.crt \
        --sbom SBOM.json --out target/images

The same input gives the same bytes: files are in order, have one time and no owner but root, and what
compresses them is told no time. An image holds the programs, the authorities that AWS's certificates are
from, and a user without rights; no shell, no package manager, no libc. What it is made of (CycloneDX) and
how it was made (in-toto, SLSA) refer to it from the same archive. Prints what it has written, as JSON.
"""

import argparse
import datetime
import gzip
import hashlib
import io
import json
import pathlib
import tarfile

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
EMPTY = "application/vnd.oci.empty.v1+json"
SBOM = "application/vnd.cyclonedx+json"
PROVENANCE = "application/vnd.in-toto+json"
SOURCE = "longshore"
# As in the chart: nobody's user.
USER = 65532


class Layout:
    """Blobs by their digests."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}

    def put(self, content: bytes, media_type: str, **more: object) -> dict:
        """Keeps a blob, and returns its descriptor."""
        digest = hashlib.sha256(content).hexdigest()
        self.blobs[digest] = content
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content), **more}

    def put_json(self, value: object, media_type: str, **more: object) -> dict:
        return self.put(json.dumps(value, sort_keys=True, separators=(",", ":")).encode(), media_type, **more)

    def archive(self, path: pathlib.Path, manifests: list[dict]) -> None:
        """Writes everything as one tar that lists these manifests."""
        index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests}
        files = {
            "oci-layout": b'{"imageLayoutVersion":"1.0.0"}',
            "index.json": json.dumps(index, sort_keys=True, separators=(",", ":")).encode(),
        }
        files |= {f"blobs/sha256/{digest}": content for digest, content in self.blobs.items()}
        path.write_bytes(tar(files, 0))


def tar(files: dict[str, bytes], epoch: int, executable: str = "") -> bytes:
    """A tar of files by their paths, with the directories on the way."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        known: set[str] = set()
        for name in sorted(files):
            parts = name.split("/")[:-1]
            for depth in range(1, len(parts) + 1):
                directory = "/".join(parts[:depth])
                if directory not in known:
                    known.add(directory)
                    entry = tarfile.TarInfo(directory)
                    entry.type, entry.mode, entry.mtime = tarfile.DIRTYPE, 0o755, epoch
                    archive.addfile(entry)
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime = len(files[name]), epoch
            entry.mode = 0o755 if name == executable else 0o644
            archive.addfile(entry, io.BytesIO(files[name]))
    return out.getvalue()


def layer(layout: Layout, files: dict[str, bytes], epoch: int, executable: str = "") -> tuple[dict, str]:
    """A layer, and the digest of what it unpacks to."""
    plain = tar(files, epoch, executable)
    packed = layout.put(gzip.compress(plain, compresslevel=9, mtime=0), LAYER)
    return packed, f"sha256:{hashlib.sha256(plain).hexdigest()}"


def base(roots: pathlib.Path) -> dict[str, bytes]:
    """What every image has beside its program."""
    return {
        "etc/ssl/certs/ca-certificates.crt": roots.read_bytes(),
        "etc/passwd": f"root:x:0:0:root:/:\nlongshore:x:{USER}:{USER}:longshore:/:\n".encode(),
        "etc/group": f"root:x:0:\nlongshore:x:{USER}:\n".encode(),
        "etc/nsswitch.conf": b"hosts: files dns\n",
    }


def platform_image(layout: Layout, args: argparse.Namespace, arch: str, binary: pathlib.Path) -> dict:
    """The manifest of one platform."""
    program = binary.name
    layers = [
        layer(layout, base(args.roots), args.epoch),
        layer(layout, {f"usr/bin/{program}": binary.read_bytes()}, args.epoch, f"usr/bin/{program}"),
    ]
    created = args.created
    config = {
        "architecture": arch,
        "os": "linux",
        "created": created,
        "config": {
            "User": f"{USER}:{USER}",
            "Entrypoint": [f"/usr/bin/{program}"],
            "Env": ["PATH=/usr/bin", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"],
            "WorkingDir": "/",
            "Labels": labels(args),
        },
        "rootfs": {"type": "layers", "diff_ids": [digest for _, digest in layers]},
        "history": [{"created": created, "created_by": what} for what in ("authorities and user", program)],
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": layout.put_json(config, CONFIG),
        "layers": [packed for packed, _ in layers],
        "annotations": labels(args),
    }
    return layout.put_json(manifest, MANIFEST, platform={"architecture": arch, "os": "linux"})


def labels(args: argparse.Namespace) -> dict[str, str]:
    return {
        "org.opencontainers.image.title": args.name,
        "org.opencontainers.image.version": args.version,
        "org.opencontainers.image.revision": args.revision,
        "org.opencontainers.image.created": args.created,
        "org.opencontainers.image.licenses": "Apache-2.0",
    }


def referrer(layout: Layout, subject: dict, media_type: str, content: bytes) -> dict:
    """Something that is said of an image, beside it."""
    plain = {key: subject[key] for key in ("mediaType", "digest", "size")}
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "artifactType": media_type,
        "config": layout.put(b"{}", EMPTY),
        "layers": [layout.put(content, media_type)],
        "subject": plain,
    }
    return layout.put_json(manifest, MANIFEST, artifactType=media_type)


def provenance(args: argparse.Namespace, image: dict) -> bytes:
    """How the image was made: an in-toto statement with SLSA's predicate."""
    digest = image["digest"].removeprefix("sha256:")
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": args.name, "digest": {"sha256": digest}}],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": f"{SOURCE}/make-image/v1",
                "externalParameters": {"name": args.name, "version": args.version},
                "resolvedDependencies": [{"uri": SOURCE, "digest": {"gitCommit": args.revision}}],
            },
            "runDetails": {"builder": {"id": f"{SOURCE}/make-image"}},
        },
    }
    return json.dumps(statement, sort_keys=True, separators=(",", ":")).encode()


def compressed_bytes(layout: Layout, manifest: dict) -> int:
    """What is pulled for one platform."""
    content = json.loads(layout.blobs[manifest["digest"].removeprefix("sha256:")])
    return sum(part["size"] for part in [content["config"], *content["layers"]])


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--revision", required=True, help="commit")
    parser.add_argument("--epoch", required=True, type=int, help="time of the commit, in seconds since 1970")
    parser.add_argument("--binary", required=True, action="append", metavar="ARCH=PATH")
    parser.add_argument("--roots", required=True, type=pathlib.Path, help="certificates of authorities, in PEM")
    parser.add_argument("--sbom", required=True, type=pathlib.Path, help="CycloneDX, in JSON")
    parser.add_argument("--out", required=True, type=pathlib.Path)
    return parser.parse_args()


def main() -> None:
    args = arguments()
    args.created = datetime.datetime.fromtimestamp(args.epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    layout = Layout()
    binaries = sorted(entry.split("=", 1) for entry in args.binary)
    manifests = [platform_image(layout, args, arch, pathlib.Path(path)) for arch, path in binaries]
    index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests, "annotations": labels(args)}
    reference = {"org.opencontainers.image.ref.name": args.version}
    image = layout.put_json(index, INDEX, annotations=reference)
    said = [
        referrer(layout, image, SBOM, args.sbom.read_bytes()),
        referrer(layout, image, PROVENANCE, provenance(args, image)),
    ]
    args.out.mkdir(parents=True, exist_ok=True)
    layout.archive(args.out / f"{args.name}.oci.tar", [image, *said])
    print(json.dumps({
        "name": args.name,
        "digest": image["digest"],
        "platforms": [f"linux/{arch}" for arch, _ in binaries],
        "compressed_bytes": max(compressed_bytes(layout, manifest) for manifest in manifests),
    }))


if __name__ == "__main__":
    main()
