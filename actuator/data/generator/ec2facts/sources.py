"""Reads the published packages into plain values; decides nothing.

Invariant: money is in whole micro USD as soon as it is read, so nothing after this rounds twice.
"""

import gzip
import json
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

# Spot advisor bands, numbered as the Rust side reads them; 0 stands for unknown.
BANDS = {"<5%": 1, "5-10%": 2, "10-15%": 3, "15-20%": 4, ">20%": 5}


@dataclass(frozen=True)
class Market:
    """Linux prices of one type in one region, as far as they are listed."""

    on_demand: int | None
    spot: list[int]  # one for each zone, cheapest first; which zone is not said
    savings_percent: int | None  # average spot discount
    band: int


@dataclass(frozen=True)
class Sources:
    types: dict  # type name -> DescribeInstanceTypes item
    offerings: dict[str, dict[str, set[str]]]  # region -> type name -> zone names
    offerings_by_id: dict[str, dict[str, set[str]]]  # region -> type name -> zone ids
    listed: dict[str, dict[str, int]]  # region -> type name -> on-demand, the newer list
    markets: dict[str, dict[str, Market]]  # region -> type name -> market, the older list
    limits: dict  # type name -> VPC limits
    bandwidth: dict[str, int]  # type name -> baseline Mbit/s


def read(moto: Path, tables: Path, instances_info: Path) -> Sources:
    facts = json.loads(tables.read_text())
    prices = facts["InitialOnDemandPricesAWS"] | facts["InitialOnDemandPricesUSGov"]
    resources = moto / "ec2/resources"
    return Sources(
        types=_gunzip(resources / "instance_types.json.gz"),
        offerings=_offerings(resources / "instance_type_offerings/availability-zone"),
        offerings_by_id=_offerings(resources / "instance_type_offerings/availability-zone-id"),
        listed={r: {t: micro_usd(p) for t, p in table.items()} for r, table in prices.items()},
        markets=_markets(json.loads((instances_info / "data/instances.json").read_text())),
        limits=facts["Limits"],
        bandwidth=facts["InstanceTypeBandwidthMegabits"],
    )


def micro_usd(dollars: str | float) -> int:
    return int((Decimal(str(dollars)) * 1_000_000).to_integral_value())


def _gunzip(path: Path):
    with gzip.open(path) as file:
        return json.load(file)


def _offerings(folder: Path) -> dict[str, dict[str, set[str]]]:
    regions = {}
    for path in sorted(folder.glob("*.json.gz")):
        region = regions.setdefault(path.name.removesuffix(".json.gz"), {})
        for offering in _gunzip(path):
            region.setdefault(offering["InstanceType"], set()).add(offering["Location"])
    return regions


def _markets(items: list) -> dict[str, dict[str, Market]]:
    regions: dict[str, dict[str, Market]] = {}
    for item in items:
        for region, systems in item["pricing"].items():
            if linux := systems.get("linux"):
                regions.setdefault(region, {})[item["instance_type"]] = _market(linux)
    return regions


def _market(linux: dict) -> Market:
    on_demand = micro_usd(linux.get("ondemand") or 0)
    return Market(
        on_demand=on_demand or None,
        spot=sorted(price for price in map(micro_usd, linux.get("spot") or []) if price > 0),
        savings_percent=linux.get("pct_savings_od"),
        band=BANDS.get(linux.get("pct_interrupt"), 0),
    )
