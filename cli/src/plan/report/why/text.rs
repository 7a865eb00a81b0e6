//! Reasons for a place as a page.
//!
//! Invariant: a line for each thing said, its name on the left, so that many can be read across.

use std::fmt::{Display, Formatter, Result, Write as _};

use super::super::units::{cents, counted, percent_of_ppm, share, usd};
use super::super::{Offering, text};
use super::{OneMore, Place, Why};

/// Most places that are told; a workload with more is told of those with most pods.
const PLACES_MAX: usize = 6;

impl Display for Why {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let words = Words { fee: self.fee() };
        self.places.iter().take(PLACES_MAX).try_for_each(|place| place.write(f, words))?;
        if let Some(rest) = self.places.len().checked_sub(PLACES_MAX).filter(|rest| *rest > 0) {
            let pods: i64 = self.places[PLACES_MAX..].iter().map(|place| place.pods).sum();
            let (pods, places) = (number(pods, "pod"), number(wide(rest), "more place"));
            writeln!(f, "  {pods} in {places}: --output json tells all")?;
        }
        self.one_more.as_ref().map_or(Ok(()), |more| more.write(f, words))?;
        let Some(fee) = words.fee.filter(|fee| *fee != 0) else { return Ok(()) };
        writeln!(
            f,
            "  each node     costs ${}/hour besides its price, which counts in the choice",
            usd(fee)
        )
    }
}

impl Why {
    /// What every offering that is told of costs besides its price, where that is the same of all.
    fn fee(&self) -> Option<i64> {
        let placed = self.places.iter().take(PLACES_MAX);
        let placed = placed.flat_map(|it| it.chosen.iter().chain(&it.next).chain(&it.alone));
        let more = self.one_more.iter().flat_map(|more| more.added.iter().chain(&more.dropped));
        let mut fees = placed.chain(more).map(|it| it.cost() - it.price_micro_usd_per_hour);
        let first = fees.next()?;
        fees.all(|fee| fee == first).then_some(first)
    }
}

/// How offerings are told of: a fee that is the same of all is said once, at the end.
#[derive(Clone, Copy)]
struct Words {
    fee: Option<i64>,
}

impl Words {
    fn sold(self, offer: &Offering) -> String {
        let Offering { instance_type, zone, capacity_type, .. } = offer;
        let estimated = if offer.price_estimated { "*" } else { "" };
        let price = usd(offer.price_micro_usd_per_hour);
        let cost = offer.cost_micro_usd_per_hour.filter(|_| self.fee.is_none());
        let cost = cost.map(|cost| format!(", costing ${}/hour", usd(cost))).unwrap_or_default();
        format!("{instance_type} {capacity_type} in {zone} at ${price}{estimated}/hour{cost}")
    }

    /// Offers, equal ones counted.
    fn joined(self, offers: &[Offering]) -> String {
        let mut counts: Vec<(&Offering, usize)> = Vec::new();
        for offer in offers {
            match counts.iter_mut().find(|(known, _)| *known == offer) {
                Some((_, count)) => *count += 1,
                None => counts.push((offer, 1)),
            }
        }
        let mut text = String::new();
        for (at, (offer, count)) in counts.into_iter().enumerate() {
            let gap = if at == 0 { "" } else { " and " };
            // Writing to a string cannot fail.
            let _ = write!(text, "{gap}{count} {}", self.sold(offer));
        }
        text
    }
}

impl Place {
    fn write(&self, f: &mut Formatter<'_>, words: Words) -> Result {
        let pods = number(self.pods, "pod");
        match &self.chosen {
            Some(chosen) => {
                let nodes = number(self.nodes, "new node");
                let pool = &self.pool;
                writeln!(f, "  {pods} to {nodes} of NodePool {pool}: {}", words.sold(chosen))?;
            }
            None if self.bound => writeln!(f, "  {pods} bound to {}", self.place)?,
            None => writeln!(
                f,
                "  {pods} to {}: it has room, so nothing is bought; {} would admit {}",
                self.place,
                number(self.admitting_nodes, "node"),
                if self.pods == 1 { "it" } else { "them" }
            )?,
        }
        self.write_share(f)?;
        if !self.company.is_empty() {
            writeln!(f, "    beside      {}", self.company.join(", "))?;
        }
        self.write_choice(f, words)
    }

    fn write_share(&self, f: &mut Formatter<'_>) -> Result {
        let parts = self.shares.iter().map(|part| {
            format!("{} of {}", share(part.requested, part.allocatable), part.resource)
        });
        let parts = parts.collect::<Vec<_>>().join(", ");
        if parts.is_empty() {
            return Ok(());
        }
        write!(f, "    each takes  {parts}")?;
        match self.node_price_micro_usd_per_hour {
            0 => writeln!(f),
            node => {
                let part = usd(self.pod_price_micro_usd_per_hour);
                writeln!(f, "; its part of the node's ${}/hour is ${part}", usd(node))
            }
        }
    }

    fn write_choice(&self, f: &mut Formatter<'_>, words: Words) -> Result {
        let Some(chosen) = &self.chosen else { return Ok(()) };
        if let Some(last) = self.narrowings.last() {
            let left = match last.offers {
                1 => "the only offer left".to_owned(),
                offers => format!("the cheapest of {offers} offers left"),
            };
            writeln!(f, "    why         {left}, narrowed down by")?;
            writeln!(f, "                types  offers")?;
        }
        for step in &self.narrowings {
            let (types, offers) = (step.types, step.offers);
            writeln!(f, "                {types:>5}  {offers:>6}  {}", step.message)?;
        }
        let cost = chosen.cost();
        for (at, next) in self.next.iter().enumerate() {
            let name = if at == 0 { "next best" } else { "" };
            let more = next.cost() - cost;
            let ppm = i128::from(more) * 1_000_000 / i128::from(cost.max(1));
            let ppm = i64::try_from(ppm).unwrap_or(i64::MAX);
            writeln!(f, "    {name:<10}  {}, {} dearer", words.sold(next), percent_of_ppm(ppm))?;
        }
        match &self.alone {
            Some(alone) => writeln!(f, "    alone       {} would do for one", words.sold(alone)),
            None => Ok(()),
        }
    }
}

impl OneMore {
    fn write(&self, f: &mut Formatter<'_>, words: Words) -> Result {
        if let Some(reason) = &self.refused {
            let mut tree = String::new();
            text::tree(&mut tree, reason, 2);
            return write!(f, "  one more      would have no place\n{tree}");
        }
        let (hour, month) = (self.price_micro_usd_per_hour, self.price_micro_usd_per_month);
        let (hour, month) = (signed(hour, usd), signed(month, cents));
        writeln!(f, "  one more      {hour}/hour, {month}/month: {}", self.how(words))
    }

    fn how(&self, words: Words) -> String {
        if !self.host.is_empty() {
            return format!("there is room on {}", self.host);
        }
        match (self.added.is_empty(), self.dropped.is_empty()) {
            (true, true) if self.price_micro_usd_per_hour == 0 => {
                "there is room on a node that is launched anyway".to_owned()
            }
            (true, true) => "other nodes stay in service for it".to_owned(),
            (false, true) => format!("launches {} more", words.joined(&self.added)),
            (true, false) => format!("launches no {}", words.joined(&self.dropped)),
            (false, false) => {
                let (added, dropped) = (words.joined(&self.added), words.joined(&self.dropped));
                format!("launches {added} instead of {dropped}")
            }
        }
    }
}

fn signed(micro_usd: i64, text: impl Fn(i64) -> String) -> String {
    let sign = if micro_usd < 0 { "-" } else { "" };
    format!("{sign}${}", text(micro_usd.saturating_abs()))
}

fn number(count: i64, noun: &str) -> String {
    counted(u32::try_from(count).unwrap_or(u32::MAX), noun)
}

fn wide(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
