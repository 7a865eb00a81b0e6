//! The embedded facts: decoded when first asked for, a region at a time.
//!
//! Invariant: decoding happens at most once for the types and once for each region; a blob that
//! does not decode is an error to every caller, never a panic.

use std::sync::OnceLock;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::instance_type::InstanceType;
use crate::region::{Offering, Region};

/// Layout of the blobs that this crate reads; the generator writes the same number.
const FORMAT: u32 = 1;

static INDEX: &str = include_str!("embedded/index.json");
static TYPES: &[u8] = include_bytes!("embedded/types.json.zst");
static REGIONS: &[u8] = include_bytes!("embedded/regions.json.zst");

/// Why a fact could not be had.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DataError {
    /// An embedded blob is not what the generator writes: a fault of the build.
    #[error("embedded EC2 data, {part}: {reason}; regenerate it and build again")]
    Corrupt {
        /// Which blob.
        part: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The data set has no region of that name.
    #[error("no EC2 data for region {region:?}; there is data for: {known}")]
    UnknownRegion {
        /// The name asked for.
        region: String,
        /// Names there are, separated by commas.
        known: String,
    },
}

/// Where a part of the facts comes from.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Published package the facts were taken out of.
    pub package: Box<str>,
    /// Its version.
    pub version: Box<str>,
    /// Day the facts were true, `YYYY-MM-DD`.
    pub date: Box<str>,
    /// What they are.
    pub holds: Box<str>,
}

/// Instance types and regions, read-only. China's regions are not among them: they sell in
/// another currency.
#[derive(Debug)]
pub struct Dataset {
    index: Index,
    types: Vec<InstanceType>,
    regions: Vec<OnceLock<Result<Region, DataError>>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Index {
    format: u32,
    date: Box<str>,
    sources: Vec<Source>,
    types: Frame,
    regions: Vec<Frame>,
}

/// One zstd frame: where it lies in its file, and how long its content is.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Frame {
    name: Box<str>,
    offset: usize,
    bytes: usize,
    content_bytes: usize,
}

impl Dataset {
    /// The facts compiled into this program. The first call decodes the instance types (a few
    /// milliseconds), later ones return the same data set.
    ///
    /// # Errors
    /// [`DataError::Corrupt`] when the program was built from damaged blobs.
    pub fn embedded() -> Result<&'static Self, DataError> {
        static EMBEDDED: OnceLock<Result<Dataset, DataError>> = OnceLock::new();
        EMBEDDED.get_or_init(|| Self::decode(INDEX, TYPES)).as_ref().map_err(Clone::clone)
    }

    /// Day of the newest source, `YYYY-MM-DD`; older parts have theirs in [`Self::sources`].
    #[must_use]
    pub fn date(&self) -> &str {
        &self.index.date
    }

    /// Where the facts come from.
    #[must_use]
    pub fn sources(&self) -> &[Source] {
        &self.index.sources
    }

    /// All instance types, sorted by name.
    #[must_use]
    pub fn instance_types(&self) -> &[InstanceType] {
        &self.types
    }

    /// The instance type of that name.
    #[must_use]
    pub fn instance_type(&self, name: &str) -> Option<&InstanceType> {
        let position = self.types.binary_search_by(|found| (*found.name).cmp(name)).ok()?;
        self.types.get(position)
    }

    /// Names of all regions, sorted.
    pub fn regions(&self) -> impl Iterator<Item = &str> {
        self.index.regions.iter().map(|frame| &*frame.name)
    }

    /// The region of that name, decoded when first asked for.
    ///
    /// # Errors
    /// [`DataError::UnknownRegion`] when there is none, [`DataError::Corrupt`] as for
    /// [`Self::embedded`].
    pub fn region(&self, name: &str) -> Result<&Region, DataError> {
        let found = self.index.regions.iter().zip(&self.regions).find(|(f, _)| &*f.name == name);
        let (frame, slot) = found.ok_or_else(|| self.unknown_region(name))?;
        slot.get_or_init(|| unpack(frame, REGIONS)).as_ref().map_err(Clone::clone)
    }

    /// What a region sells, each offering with its type, sorted by type name.
    ///
    /// # Errors
    /// As for [`Self::region`].
    pub fn catalogue(
        &self,
        region: &str,
    ) -> Result<impl Iterator<Item = (&InstanceType, &Offering)>, DataError> {
        let offerings = self.region(region)?.offerings().iter();
        Ok(offerings.filter_map(|offering| {
            self.instance_type(&offering.instance_type).map(|found| (found, offering))
        }))
    }

    fn decode(index: &str, types: &[u8]) -> Result<Self, DataError> {
        let index: Index = parse("index", index.as_bytes())?;
        if index.format != FORMAT {
            let reason = format!("format {} where this program reads {FORMAT}", index.format);
            return Err(DataError::Corrupt { part: "index".to_owned(), reason });
        }
        let types = unpack(&index.types, types)?;
        let regions = index.regions.iter().map(|_| OnceLock::new()).collect();
        Ok(Self { index, types, regions })
    }

    fn unknown_region(&self, region: &str) -> DataError {
        let known = self.regions().collect::<Vec<_>>().join(", ");
        DataError::UnknownRegion { region: region.to_owned(), known }
    }
}

/// Decompresses and parses one frame of a file.
fn unpack<T: DeserializeOwned>(frame: &Frame, file: &[u8]) -> Result<T, DataError> {
    let corrupt = |reason: String| DataError::Corrupt { part: frame.name.to_string(), reason };
    let end = frame.offset.saturating_add(frame.bytes);
    let packed = file
        .get(frame.offset..end)
        .ok_or_else(|| corrupt(format!("ends at {} of {} bytes", end, file.len())))?;
    let content = zstd::bulk::decompress(packed, frame.content_bytes)
        .map_err(|error| corrupt(error.to_string()))?;
    parse(&frame.name, &content)
}

fn parse<T: DeserializeOwned>(part: &str, content: &[u8]) -> Result<T, DataError> {
    serde_json::from_slice(content)
        .map_err(|error| DataError::Corrupt { part: part.to_owned(), reason: error.to_string() })
}

#[cfg(test)]
mod tests;
