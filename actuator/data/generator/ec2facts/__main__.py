"""Writes the blobs that longshore-ec2-data embeds.

    python -m ec2facts INPUTS MOTO TABLES INSTANCES_INFO OUT

Invariant: equal inputs give equal bytes: sorted keys, one compressor version, no time, no chance.
"""

import json
import sys
from pathlib import Path

import zstandard

from . import regions, sources, types

FORMAT = 1  # longshore_ec2_data::dataset reads this layout
COMPRESSION_LEVEL = 19
LIMIT_BYTES = 1 << 20


def main(inputs: Path, moto: Path, tables: Path, instances_info: Path, out: Path) -> None:
    read = sources.read(moto, tables, instances_info)
    items = types.instance_types(read)
    places = regions.regions(read, items)
    type_frames, types_blob = _pack([("types", items)])
    region_frames, regions_blob = _pack([(place["name"], place) for place in places])
    named = _sources(inputs)
    index = {
        "format": FORMAT,
        "date": max(source["date"] for source in named),
        "sources": named,
        "types": type_frames[0],
        "regions": region_frames,
    }
    out.mkdir(parents=True, exist_ok=True)
    (out / "index.json").write_text(_index_text(index))
    (out / "types.json.zst").write_bytes(types_blob)
    (out / "regions.json.zst").write_bytes(regions_blob)
    total = len(types_blob) + len(regions_blob)
    assert total < LIMIT_BYTES, f"{total} bytes are too many to embed"
    print(f"{len(items)} types, {len(places)} regions, {total} bytes", file=sys.stderr)


def _pack(parts: list[tuple[str, object]]) -> tuple[list[dict], bytes]:
    """One compressed frame for each part, and where it lies among them."""
    compressor = zstandard.ZstdCompressor(level=COMPRESSION_LEVEL)
    frames, blob = [], b""
    for name, value in parts:
        content = json.dumps(value, separators=(",", ":")).encode()
        packed = compressor.compress(content)
        place = {"name": name, "offset": len(blob), "bytes": len(packed)}
        frames.append(place | {"content_bytes": len(content)})
        blob += packed
    return frames, blob


def _sources(inputs: Path) -> list[dict]:
    columns = ["package", "version", "date", "holds"]
    lines = [line for line in inputs.read_text().splitlines() if line and line[0] != "#"]
    rows = [dict(zip(columns, line.split(None, 3))) for line in lines]
    return [row | {"package": row["package"].partition(":")[2]} for row in rows]


def _index_text(index: dict) -> str:
    """JSON with a line for each source and each region, for readable differences."""
    lines = []
    for key, value in index.items():
        if isinstance(value, list):
            items = ",\n".join(f"    {json.dumps(item)}" for item in value)
            lines.append(f"  {json.dumps(key)}: [\n{items}\n  ]")
        else:
            lines.append(f"  {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
