"""Regions: zones and what each of them sells.

Invariant: every offering names a type of the data set, has at least one zone and a price.
"""

from .prices import Prices
from .sources import Sources

# Regions that the offerings leave out and a price list covers: their types are taken to be sold in
# every zone, and the zones to be a, b and c. China is left out: it sells in another currency.
PRICED_ONLY = ["ap-southeast-7", "mx-central-1", "us-gov-east-1", "us-gov-west-1"]
COMPASS = ["north", "south", "central", "east", "west"]


def regions(sources: Sources, types: list[dict]) -> list[dict]:
    by_name = {item["name"]: item for item in types}
    prices = Prices(sources)
    known = [
        _region(region, offered, sources, prices, by_name)
        for region, offered in sources.offerings.items()
    ]
    assumed = [_assumed(region, sources, prices, by_name) for region in PRICED_ONLY]
    return sorted(known + assumed, key=lambda region: region["name"])


def _region(name: str, offered: dict, sources: Sources, prices: Prices, types: dict) -> dict:
    ids = _zone_ids(name, sources)
    zones = sorted(ids)
    rows = [
        _offering(name, types[item], [zone for zone in zones if zone in where], zones, prices)
        for item, where in sorted(offered.items())
        if item in types
    ]
    return {
        "name": name,
        "zones": [[zone, ids[zone]] for zone in zones],
        "offerings_estimated": False,
        "offerings": [row for row in rows if row],
    }


def _assumed(name: str, sources: Sources, prices: Prices, types: dict) -> dict:
    zones = set(_regular_ids(name))
    priced = sources.listed.get(name, {}).keys() | sources.markets.get(name, {}).keys()
    offered = {item: zones for item in priced}
    return _region(name, offered, sources, prices, types) | {"offerings_estimated": True}


def _offering(region: str, item: dict, where: list[str], zones: list[str], prices: Prices):
    """A row; None for the few types that have no price anywhere."""
    name = item["name"]
    on_demand = prices.on_demand(region, name)
    if on_demand is None:
        return None
    spot = [None] * len(where)
    if item.get("spot"):
        spot = [_pair(price) for price in prices.spot(region, name, where)]
    positions = map(zones.index, where)
    return [name, _pair(on_demand), prices.band(region, name), list(zip(positions, spot))]


def _pair(price) -> list[int]:
    return [price.micro_usd, int(price.estimated)]


def _zone_ids(region: str, sources: Sources) -> dict[str, str]:
    """Which zone name stands for which zone id. That differs between accounts; of the account the
    facts were taken in it is known by what is sold: name and id of a zone sell the same types."""
    by_name = _sold(sources.offerings.get(region, {}))
    by_id = _sold(sources.offerings_by_id.get(region, {}))
    ids = {}
    for zone, sold in sorted(by_name.items()):
        ids[zone] = min(found for found in by_id if by_id[found] == sold)
        del by_id[ids[zone]]
    return ids or _regular_ids(region)


def _sold(offered: dict[str, set[str]]) -> dict[str, set[str]]:
    """Zone -> types, from type -> zones."""
    zones: dict[str, set[str]] = {}
    for item, where in offered.items():
        for zone in where:
            zones.setdefault(zone, set()).add(item)
    return zones


def _regular_ids(region: str) -> dict[str, str]:
    """Zone ids of a region that numbers its zones in order: eu-south-2a is eus2-az1."""
    parts = region.split("-")
    short = "usg" if region.startswith("us-gov") else parts[0]
    short += "".join(point[0] for point in COMPASS if point in region) + parts[-1]
    return {f"{region}{letter}": f"{short}-az{number}" for number, letter in enumerate("abc", 1)}
