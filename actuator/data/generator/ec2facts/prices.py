"""Prices of every offering: listed where a source lists them, else estimated and marked so.

Invariant: an estimate follows from listed prices by the rules below, in order, without chance.

On-demand, of a type in a region:
  1. the newer list, where it covers the region;
  2. the older list; where the type's reference price has moved since, moved alike (estimated);
  3. the reference price times what the region charges, against the reference region, for the
     type's family, or its category, or on the whole (estimated).
The reference price of a type is its price in the newer list of the reference region, or that of
another size of its family, by the size's weight, or of the family before it (both estimated).

Spot, of a type in a zone: the older list's zonal prices, moved with the on-demand price; else the
region's published average discount; else the discount usual for the type, its family, its
category, or all (the latter two marked estimated).
"""

import re
from dataclasses import dataclass
from hashlib import sha256
from statistics import median

from .sources import Market, Sources

REFERENCE_REGION = "us-east-1"
# Relative weights of sizes within a family; AWS calls them normalisation factors.
WEIGHTS = {"nano": 0.25, "micro": 0.5, "small": 1, "medium": 2, "large": 4, "xlarge": 8}
FAMILY = re.compile(r"(?P<letters>[a-z]+)(?P<generation>\d+)(?P<rest>[a-z]*(-flex)?)")
# A price that moved by less is taken to be the same price, rounded differently.
SAME = 0.005


@dataclass(frozen=True)
class Price:
    micro_usd: int
    estimated: bool

    def times(self, factor: float) -> "Price":
        return Price(max(1, round(self.micro_usd * factor)), True)


class Prices:
    def __init__(self, sources: Sources):
        self.listed = sources.listed
        self.markets = sources.markets
        self._reference = {
            name: Price(price, False) for name, price in sources.listed[REFERENCE_REGION].items()
        }
        self._levels = {region: self._level(region) for region in self.markets}
        self._discounts = self._usual_discounts()

    def on_demand(self, region: str, name: str) -> Price | None:
        if price := self.listed.get(region, {}).get(name):
            return Price(price, False)
        if price := self._market(region, name).on_demand:
            moved = self._moved(name)
            return Price(price, False) if moved == 1 else Price(price, False).times(moved)
        reference = self.reference(name)
        return reference and reference.times(_closest(self._levels.get(region, {}), name, 1.0))

    def spot(self, region: str, name: str, zones: list[str]) -> list[Price]:
        """One price for each zone, in their order."""
        market = self._market(region, name)
        on_demand = self.on_demand(region, name)
        moved = self._moved(name)
        if market.spot:
            known = [Price(price, False) for price in market.spot]
            known = known if moved == 1 else [price.times(moved) for price in known]
            return _spread(known, name, zones)
        if market.savings_percent is not None:
            ratio = 1 - market.savings_percent / 100
        else:
            ratio = _closest(self._discounts, name, 1.0)
        return [on_demand.times(ratio)] * len(zones)

    def band(self, region: str, name: str) -> int:
        return self._market(region, name).band

    def reference(self, name: str) -> Price | None:
        """Price in the reference region."""
        if price := self._reference.get(name):
            return price
        family, size = name.split(".")
        if (weight := _weight(size)) and (sibling := self._sibling(family, weight)):
            return sibling
        older = _family_before(family)
        return older and (price := self.reference(f"{older}.{size}")) and price.times(1)

    def _sibling(self, family: str, weight: float) -> Price | None:
        """The price of the size of a family whose weight is next to the one wanted."""
        sizes = [
            (abs(found / weight - 1), found, price)
            for name, price in sorted(self._reference.items())
            if name.startswith(f"{family}.") and (found := _weight(name.split(".")[1]))
        ]
        if not sizes:
            return None
        _, found, price = min(sizes, key=lambda size: size[:2])
        return price.times(weight / found)

    def _market(self, region: str, name: str) -> Market:
        return self.markets.get(region, {}).get(name) or Market(None, [], None, 0)

    def _moved(self, name: str) -> float:
        """How far the reference price has moved between the older list and the newer one."""
        old = self._market(REFERENCE_REGION, name).on_demand
        new = self._reference.get(name)
        if not old or not new or abs(new.micro_usd / old - 1) < SAME:
            return 1
        return new.micro_usd / old

    def _level(self, region: str) -> dict[str, float]:
        """What a region charges against the reference region: by family, category, on the whole."""
        here, there = self.markets[region], self.markets[REFERENCE_REGION]
        ratios = {
            name: market.on_demand / there[name].on_demand
            for name, market in here.items()
            if market.on_demand and name in there and there[name].on_demand
        }
        return _medians(ratios)

    def _usual_discounts(self) -> dict[str, float]:
        """Spot price against on-demand: by type, by family, by category, on the whole."""
        ratios: dict[str, list[float]] = {}
        for markets in self.markets.values():
            for name, market in markets.items():
                if market.spot and market.on_demand:
                    ratios.setdefault(name, []).append(median(market.spot) / market.on_demand)
        by_type = {name: median(found) for name, found in ratios.items()}
        return by_type | _medians(by_type)


def _medians(by_type: dict[str, float]) -> dict[str, float]:
    groups: dict[str, list[float]] = {}
    for name, value in by_type.items():
        for group in _groups(name):
            groups.setdefault(group, []).append(value)
    return {group: median(values) for group, values in groups.items()}


def _closest(by_group: dict[str, float], name: str, otherwise: float) -> float:
    found = (by_group[group] for group in [name, *_groups(name)] if group in by_group)
    return next(found, otherwise)


def _groups(name: str) -> list[str]:
    """Ever wider groups that a type belongs to; none looks like a type's name."""
    family = name.split(".")[0]
    category = re.match("[a-z]+", family).group()
    return [family, f"{category}*", "*"]


def _weight(size: str) -> float | None:
    if found := re.fullmatch(r"(?:metal-)?(\d+)x(?:large|l)", size):
        return 8 * int(found.group(1))
    return WEIGHTS.get(size)


def _family_before(family: str) -> str | None:
    found = FAMILY.fullmatch(family)
    if not found or int(found["generation"]) <= 1:
        return None
    return f"{found['letters']}{int(found['generation']) - 1}{found['rest']}"


def _spread(known: list[Price], name: str, zones: list[str]) -> list[Price]:
    """Gives known zonal prices to zones. The source sorts them by price and drops the zone, so
    that any order is as true as another; this one depends on type and zone only, and makes no
    zone cheap as a rule. Zones beyond the known prices get the middle one."""
    order = sorted(zones, key=lambda zone: sha256(f"{name} {zone}".encode()).digest())
    middle = known[len(known) // 2].times(1)
    prices = dict(zip(order, known))
    return [prices.get(zone, middle) for zone in zones]
