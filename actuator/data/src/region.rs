//! What one region sells: which type in which zone, and for how much.
//!
//! Invariant: offerings are sorted by type name and name only types of the data set; every price
//! is above zero; a price no source lists for this region is marked estimated.

use serde::Deserialize;

/// One region.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Region {
    name: Box<str>,
    zones: Vec<Zone>,
    offerings_estimated: bool,
    offerings: Vec<Offering>,
}

/// An availability zone. The pairing of name and id differs between accounts; this is one of them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "(Box<str>, Box<str>)")]
pub struct Zone {
    /// Name within the account: `us-east-1a`.
    pub name: Box<str>,
    /// Physical zone: `use1-az6`.
    pub id: Box<str>,
}

/// One instance type as a region sells it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "(Box<str>, Price, u8, Vec<ZoneOffering>)")]
pub struct Offering {
    /// Name of the type.
    pub instance_type: Box<str>,
    /// On-demand price, the same in every zone.
    pub on_demand: Price,
    /// How often spot instances of the type were interrupted, where that is known.
    pub interruption: Option<InterruptionBand>,
    /// Zones that sell the type, in the order of [`Region::zones`]; never empty.
    pub zones: Vec<ZoneOffering>,
}

/// One instance type in one zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(from = "(usize, Option<Price>)")]
pub struct ZoneOffering {
    /// Position of the zone in [`Region::zones`].
    pub zone: usize,
    /// Spot price; `None` where the type is not sold on the spot market. The source lists a
    /// region's zonal prices without naming the zones, so which zone has which is assigned.
    pub spot: Option<Price>,
}

/// What an hour of an instance with Linux costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(from = "(u64, u8)")]
pub struct Price {
    /// Millionths of a US dollar for an hour; above zero.
    pub micro_usd_per_hour: u64,
    /// No source lists it: derived from the type's price elsewhere or from its relatives.
    pub estimated: bool,
}

/// Share of spot instances interrupted in a month, as EC2's spot advisor bands it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InterruptionBand {
    /// Under 5 %.
    Under5Percent,
    /// 5 to 10 %.
    From5To10Percent,
    /// 10 to 15 %.
    From10To15Percent,
    /// 15 to 20 %.
    From15To20Percent,
    /// Over 20 %.
    Over20Percent,
}

impl Region {
    /// Name: `eu-west-1`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Availability zones, sorted by name.
    #[must_use]
    pub fn zones(&self) -> &[Zone] {
        &self.zones
    }

    /// The zone of that name.
    #[must_use]
    pub fn zone(&self, name: &str) -> Option<&Zone> {
        self.zone_position(name).and_then(|position| self.zones.get(position))
    }

    /// No source says which zone sells what: each type is taken to be sold in all of them.
    #[must_use]
    pub fn offerings_estimated(&self) -> bool {
        self.offerings_estimated
    }

    /// All that the region sells, sorted by type name.
    #[must_use]
    pub fn offerings(&self) -> &[Offering] {
        &self.offerings
    }

    /// How the region sells that type, if it does.
    #[must_use]
    pub fn offering(&self, instance_type: &str) -> Option<&Offering> {
        let at = |offering: &Offering| (*offering.instance_type).cmp(instance_type);
        self.offerings.binary_search_by(at).ok().and_then(|position| self.offerings.get(position))
    }

    /// On-demand price of a type, if the region sells it.
    #[must_use]
    pub fn on_demand(&self, instance_type: &str) -> Option<Price> {
        self.offering(instance_type).map(|offering| offering.on_demand)
    }

    /// Whether a zone, by name, sells a type.
    #[must_use]
    pub fn offers(&self, instance_type: &str, zone: &str) -> bool {
        self.zone_offering(instance_type, zone).is_some()
    }

    /// Spot price of a type in a zone, by name; `None` where it is not sold there or not as spot.
    #[must_use]
    pub fn spot(&self, instance_type: &str, zone: &str) -> Option<Price> {
        self.zone_offering(instance_type, zone).and_then(|offering| offering.spot)
    }

    fn zone_offering(&self, instance_type: &str, zone: &str) -> Option<&ZoneOffering> {
        let position = self.zone_position(zone)?;
        self.offering(instance_type)?.zones.iter().find(|offering| offering.zone == position)
    }

    fn zone_position(&self, name: &str) -> Option<usize> {
        self.zones.iter().position(|zone| &*zone.name == name)
    }
}

impl InterruptionBand {
    /// The most a band stands for in percent; 100 for the open one.
    #[must_use]
    pub fn upper_percent(self) -> u32 {
        match self {
            Self::Under5Percent => 5,
            Self::From5To10Percent => 10,
            Self::From10To15Percent => 15,
            Self::From15To20Percent => 20,
            Self::Over20Percent => 100,
        }
    }

    /// The generator numbers the bands from 1; 0 stands for unknown.
    fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Under5Percent),
            2 => Some(Self::From5To10Percent),
            3 => Some(Self::From10To15Percent),
            4 => Some(Self::From15To20Percent),
            5 => Some(Self::Over20Percent),
            _ => None,
        }
    }
}

impl From<(Box<str>, Box<str>)> for Zone {
    fn from((name, id): (Box<str>, Box<str>)) -> Self {
        Self { name, id }
    }
}

impl From<(Box<str>, Price, u8, Vec<ZoneOffering>)> for Offering {
    fn from(row: (Box<str>, Price, u8, Vec<ZoneOffering>)) -> Self {
        let (instance_type, on_demand, band, zones) = row;
        Self { instance_type, on_demand, interruption: InterruptionBand::from_number(band), zones }
    }
}

impl From<(usize, Option<Price>)> for ZoneOffering {
    fn from((zone, spot): (usize, Option<Price>)) -> Self {
        Self { zone, spot }
    }
}

impl From<(u64, u8)> for Price {
    fn from((micro_usd_per_hour, estimated): (u64, u8)) -> Self {
        Self { micro_usd_per_hour, estimated: estimated != 0 }
    }
}
