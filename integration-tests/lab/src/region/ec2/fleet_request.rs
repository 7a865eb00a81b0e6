//! A CreateFleet request, read and checked before anything is bought.
//!
//! Invariant: only instant fleets with explicit types pass; everything else is refused by name.

use super::super::config::Tags;
use super::super::wire::{AwsError, Params, Result};
use super::super::world::TemplateData;
use super::allocate::Strategy;
use super::template_data::{read, tag_specifications};

/// What is asked.
#[derive(Debug)]
pub struct FleetRequest {
    /// Only checks permissions.
    pub dry_run: bool,
    /// How much of each market.
    pub targets: Vec<Target>,
    /// Templates with their overrides.
    pub configs: Vec<Config>,
    /// Tags by kind of resource.
    pub tags: Vec<(String, Tags)>,
}

/// Units of one market.
#[derive(Debug)]
pub struct Target {
    /// True for spot.
    pub spot: bool,
    /// Capacity in units (instances, unless overrides carry weights).
    pub units: u32,
    /// How to choose among overrides.
    pub strategy: Strategy,
    /// All of one type.
    pub single_type: bool,
    /// All in one zone.
    pub single_zone: bool,
    /// Launch at least this much or nothing.
    pub min_units: u32,
    /// Aimed at capacity reservations.
    pub reserved: bool,
}

/// A template with its overrides.
#[derive(Debug)]
pub struct Config {
    /// Template name.
    pub name: Option<String>,
    /// Template id.
    pub id: Option<String>,
    /// Version: a number, `$Latest` or `$Default`.
    pub version: Option<String>,
    /// Overrides; one that changes nothing when none were sent.
    pub overrides: Vec<Override>,
}

/// One override.
#[derive(Clone, Debug, Default)]
pub struct Override {
    /// Subnet to launch in.
    pub subnet_id: Option<String>,
    /// Zone name to launch in.
    pub zone: Option<String>,
    /// Zone id to launch in.
    pub zone_id: Option<String>,
    /// Lower is tried first.
    pub priority: Option<f64>,
    /// Units that one instance counts for.
    pub weight: Option<f64>,
    /// Most to pay for an hour of spot.
    pub max_price_micro_usd: Option<u64>,
    /// Type, image and the like.
    pub data: TemplateData,
}

impl FleetRequest {
    /// Reads a request.
    ///
    /// # Errors
    /// EC2's complaint about what is missing or invalid.
    pub fn read(params: &Params) -> Result<FleetRequest> {
        if params.text("Type") != Some("instant") {
            let message = "Only fleets of type instant exist in this region.";
            return Err(AwsError::client("UnsupportedOperation", message));
        }
        let configs: Vec<Config> =
            params.list("LaunchTemplateConfigs").into_iter().map(config).collect::<Result<_>>()?;
        if configs.is_empty() {
            return Err(AwsError::missing_parameter("LaunchTemplateConfigs"));
        }
        Ok(FleetRequest {
            dry_run: params.flag("DryRun"),
            targets: targets(params)?,
            configs,
            tags: tag_specifications(params),
        })
    }
}

fn targets(params: &Params) -> Result<Vec<Target>> {
    let specification = params.at("TargetCapacitySpecification");
    let total = specification
        .number("TotalTargetCapacity")?
        .ok_or_else(|| AwsError::missing_parameter("TotalTargetCapacity"))?;
    let on_demand = specification.number("OnDemandTargetCapacity")?.unwrap_or(0);
    let spot = specification.number("SpotTargetCapacity")?.unwrap_or(0);
    let rest = total.checked_sub(on_demand.saturating_add(spot)).ok_or_else(|| {
        AwsError::invalid_parameter("Target capacities of the markets exceed TotalTargetCapacity")
    })?;
    let by_default = specification.text("DefaultTargetCapacityType").unwrap_or("on-demand");
    let (rest_spot, reserved) = match by_default {
        "spot" => (rest, false),
        "on-demand" => (0, false),
        "capacity-block" | "reserved-capacity" => (0, true),
        other => {
            let message = format!("Invalid value '{other}' for DefaultTargetCapacityType");
            return Err(AwsError::invalid_parameter(message));
        }
    };
    let wanted = [
        (false, on_demand + rest - rest_spot, "OnDemandOptions"),
        (true, spot + rest_spot, "SpotOptions"),
    ];
    wanted
        .into_iter()
        .filter(|(_, units, _)| *units > 0)
        .map(|(spot, units, options)| target(params.at(options), spot, units, reserved))
        .collect()
}

fn target(options: &Params, spot: bool, units: u32, reserved: bool) -> Result<Target> {
    Ok(Target {
        spot,
        units,
        strategy: Strategy::read(options)?,
        single_type: options.flag("SingleInstanceType"),
        single_zone: options.flag("SingleAvailabilityZone"),
        min_units: options.number("MinTargetCapacity")?.unwrap_or(0),
        reserved,
    })
}

fn config(params: &Params) -> Result<Config> {
    let template = params.at("LaunchTemplateSpecification");
    let owned = |name| template.text(name).map(str::to_owned);
    let mut overrides: Vec<Override> =
        params.list("Overrides").into_iter().map(read_override).collect::<Result<_>>()?;
    if overrides.is_empty() {
        overrides.push(Override::default());
    }
    Ok(Config {
        name: owned("LaunchTemplateName"),
        id: owned("LaunchTemplateId"),
        version: owned("Version"),
        overrides,
    })
}

fn read_override(params: &Params) -> Result<Override> {
    if !params.at("InstanceRequirements").is_absent() {
        let message = "InstanceRequirements are not offered in this region; name instance types.";
        return Err(AwsError::client("UnsupportedOperation", message));
    }
    let owned = |name| params.text(name).map(str::to_owned);
    Ok(Override {
        subnet_id: owned("SubnetId"),
        zone: owned("AvailabilityZone"),
        zone_id: owned("AvailabilityZoneId"),
        priority: params.decimal("Priority")?,
        weight: params.decimal("WeightedCapacity")?,
        max_price_micro_usd: params.text("MaxPrice").map(micro_usd).transpose()?,
        data: read(params)?,
    })
}

/// `0.0303` dollars in millionths; digits beyond the sixth are cut.
fn micro_usd(text: &str) -> Result<u64> {
    let invalid = || AwsError::invalid_parameter(format!("Invalid value '{text}' for MaxPrice"));
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fraction: String = fraction.chars().chain("000000".chars()).take(6).collect();
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| invalid())? };
    let fraction: u64 = fraction.parse().map_err(|_| invalid())?;
    Ok(whole * 1_000_000 + fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(extra: &str) -> Result<FleetRequest> {
        let base =
            "Type=instant&LaunchTemplateConfigs.1.LaunchTemplateSpecification.LaunchTemplateName=t";
        FleetRequest::read(&Params::parse(format!("{base}&{extra}").as_bytes()))
    }

    #[test]
    fn targets_are_split_by_market() {
        let read = request(
            "TargetCapacitySpecification.TotalTargetCapacity=5\
             &TargetCapacitySpecification.OnDemandTargetCapacity=2\
             &TargetCapacitySpecification.DefaultTargetCapacityType=spot",
        )
        .expect("valid");
        let split: Vec<_> = read.targets.iter().map(|t| (t.spot, t.units)).collect();
        assert_eq!(split, [(false, 2), (true, 3)]);
        assert_eq!(read.configs[0].overrides.len(), 1);
    }

    #[test]
    fn prices_are_read_to_the_micro_dollar() {
        assert_eq!(micro_usd("0.0303"), Ok(30_300));
        assert_eq!(micro_usd("1"), Ok(1_000_000));
        assert_eq!(micro_usd(".5"), Ok(500_000));
        assert!(micro_usd("cheap").is_err());
    }

    #[test]
    fn what_is_not_offered_is_refused_by_name() {
        let error = FleetRequest::read(&Params::parse(b"Type=maintain")).expect_err("not instant");
        assert_eq!(error.code, "UnsupportedOperation");
        assert_eq!(request("").expect_err("no capacity").code, "MissingParameter");
    }
}
