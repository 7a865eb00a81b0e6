//! What a region offers: instance types, their capacity, and where and how they can be bought.
//!
//! Invariant: types are kept by name and offerings by (zone, capacity type, reservation), so a
//! catalogue does not depend on the order in which its parts arrived.

pub mod capacity_group;
pub mod sold;

use std::collections::BTreeMap;
use std::fmt;

use crate::vocabulary::catalogue::capacity_group::CapacityGroup;
use crate::vocabulary::ids::{CatalogueId, InstanceTypeName, ReservationId, Zone, ZoneId};
use crate::vocabulary::labels::{INSTANCE_FAMILY, Labels};
use crate::vocabulary::resources::Resources;

/// Highest price of an instance, in micro-dollars per hour: a hundred thousand dollars an hour.
/// Millions of nodes at ten times as much, which is what weights can make of it, still sum up to
/// less than an `i64` holds.
pub const PRICE_MAX: i64 = 100_000_000_000;

/// How an instance is bought.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CapacityType {
    /// Reserved beforehand.
    Reserved,
    /// Spot market: cheap, may be interrupted.
    Spot,
    /// On demand.
    OnDemand,
}

impl CapacityType {
    /// Value of the label `karpenter.sh/capacity-type`.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Reserved => "reserved",
            Self::Spot => "spot",
            Self::OnDemand => "on-demand",
        }
    }

    /// Reads the label's value.
    #[must_use]
    pub fn from_label(value: &str) -> Option<Self> {
        [Self::Reserved, Self::Spot, Self::OnDemand].into_iter().find(|kind| kind.label() == value)
    }
}

impl fmt::Display for CapacityType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

/// Instance types on offer to node classes that share an AMI family and kubelet configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalogue {
    /// Content hash.
    pub id: CatalogueId,
    /// Types by name.
    pub types: BTreeMap<InstanceTypeName, InstanceType>,
}

/// One type of instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstanceType {
    /// Name, for example `m7g.large`.
    pub name: InstanceTypeName,
    /// Labels every node of the type carries, zone and capacity type apart.
    pub labels: Labels,
    /// What the hardware has; NodePool limits count this.
    pub capacity: Resources,
    /// What the system keeps back.
    pub overhead: Resources,
    /// Where and how it can be bought.
    pub offerings: Vec<Offering>,
}

/// One way to buy an instance type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offering {
    /// Zone name.
    pub zone: Zone,
    /// Zone id.
    pub zone_id: ZoneId,
    /// How it is bought.
    pub capacity_type: CapacityType,
    /// Price of one instance.
    pub price_micro_usd_per_hour: i64,
    /// False while recent launches failed for lack of capacity.
    pub available: bool,
    /// Reservation it draws from.
    pub reservation: Option<Reservation>,
    /// Group of its pool of capacity; [`Catalogue::put`] sets it.
    pub group: CapacityGroup,
    /// How often an instance is interrupted in a million hours, where that is known.
    pub interruptions_per_million_hours: Option<i64>,
}

/// A capacity reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// Its id.
    pub id: ReservationId,
    /// Instances left in it.
    pub remaining: i64,
}

impl Catalogue {
    /// Adds the types of another part of the same catalogue; equal names are replaced.
    pub fn merge(&mut self, part: Self) {
        if self.id.is_empty() {
            self.id = part.id;
        }
        self.types.extend(part.types);
    }

    /// Adds or replaces one type. Its offerings get an order of their own, so that a plan does not
    /// depend on the one they came in.
    pub fn put(&mut self, mut instance_type: InstanceType) {
        for offering in &mut instance_type.offerings {
            offering.group = CapacityGroup::of(instance_type.name.as_str(), offering.zone.as_str());
        }
        instance_type.offerings.sort_by(|a, b| a.identity().cmp(&b.identity()));
        self.types.insert(instance_type.name.clone(), instance_type);
    }

    /// The offering of a type in a zone, outside reservations unless that is the capacity type.
    #[must_use]
    pub fn offering(&self, name: &str, zone: &str, kind: CapacityType) -> Option<&Offering> {
        let offerings = &self.types.get(name)?.offerings;
        offerings.iter().find(|o| o.zone.as_str() == zone && o.capacity_type == kind)
    }

    /// All that one could mean to change, for price and availability updates: of reservations of
    /// one type in one zone there may be several.
    pub fn offerings_mut(
        &mut self,
        name: &str,
        zone: &str,
        kind: CapacityType,
    ) -> impl Iterator<Item = &mut Offering> {
        let offerings = self.types.get_mut(name).into_iter().flat_map(|it| &mut it.offerings);
        offerings.filter(move |o| o.zone.as_str() == zone && o.capacity_type == kind)
    }
}

impl Offering {
    /// What tells it from the other offerings of its type.
    fn identity(&self) -> impl Ord {
        (&self.zone, &self.zone_id, self.capacity_type, self.reservation_id())
    }

    /// Reservation it draws from.
    #[must_use]
    pub fn reservation_id(&self) -> Option<&ReservationId> {
        self.reservation.as_ref().map(|reservation| &reservation.id)
    }
}

impl InstanceType {
    /// Its family, such as `m7g`: the label that says so, else its name up to the first dot.
    #[must_use]
    pub fn family(&self) -> &str {
        let own = || self.name.as_str().split('.').next().unwrap_or_default();
        self.labels.get(INSTANCE_FAMILY).map_or_else(own, String::as_str)
    }

    /// What pods and DaemonSets may use.
    #[must_use]
    pub fn allocatable(&self) -> Resources {
        self.capacity.minus(&self.overhead).at_least_zero()
    }
}
