//! How plans are made: what they minimise, and how policies of pools are taken. One set of
//! arguments for every program that plans.
//!
//! Invariant: what is absent is off or as the planner has it; what is absurd is refused where it is
//! read, with its range.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use clap::ValueEnum;
use longshore_core::offers::Objective;
use longshore_core::question::{MinValuesPolicy, PREFERENCE_PREMIUM_PERCENT, PlanInput};

/// Most interruptions of an instance in a million hours: one an hour.
pub const INTERRUPTIONS_MAX: i64 = 1_000_000;
/// Interruptions of a spot instance in a million hours where nobody knows better: 5 % in a month of
/// 730 hours, which AWS gives as the average of all regions and types.
pub const SPOT_INTERRUPTIONS: i64 = 68;
/// What a node costs an hour besides its price, in millionths of a dollar, where nobody knows
/// better: 8 GiB of gp3 at $0.08 a month and GiB, which is the smallest disk that a node of Amazon
/// Linux has. Addresses, DaemonSets' shares of agents and licences would be more; this much keeps a
/// fleet from being cut into small nodes for nothing.
const NODE_FEE: i64 = 1_000;
/// Most dollars that a node may have as its fee an hour, or that an interruption may cost.
const DOLLARS_MAX: i64 = 1_000;
/// Millionths of a dollar in a dollar.
const MICRO_USD: i64 = 1_000_000;
/// Performance that a family may have, in percent of that of others.
const PERFORMANCE_PERCENT: RangeInclusive<i64> = 10..=1_000;
/// Most percent that a wish may make a node cost more.
const PREMIUM_MAX: i64 = 1_000;

/// Longest that launches may be held for more pods, in milliseconds: what the peer waits at most.
const BURST_MS_MAX: u64 = 10_000;
/// How long they are unless it is said otherwise: a controller creates five hundred pods in it, and
/// a node takes twenty times as long to boot.
const BURST_MAX: Duration = Duration::from_secs(1);

/// How plans are made, as it is typed.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "How plans are made")]
pub struct SettingsArgs {
    /// What each node costs besides its price, in dollars an hour: disks, licences, agents,
    /// addresses. 0.001 unless given, which a disk of 8 GiB costs; 0 for prices alone.
    #[arg(long, env = "LONGSHORE_NODE_FEE", value_name = "USD", value_parser = dollars,
        allow_negative_numbers = true)]
    pub node_fee: Option<i64>,
    /// What one interruption costs, in dollars: work done twice and nodes that are paid twice. 0
    /// unless given.
    #[arg(long, env = "LONGSHORE_INTERRUPTION_COST", value_name = "USD", value_parser = dollars,
        allow_negative_numbers = true)]
    pub interruption_cost: Option<i64>,
    /// Interruptions of a spot instance in a million hours, where its offering does not say; 68
    /// unless given, which is 5 % a month.
    #[arg(long, env = "LONGSHORE_SPOT_INTERRUPTIONS", value_name = "COUNT",
        allow_negative_numbers = true, value_parser = clap::value_parser!(i64).range(0..=INTERRUPTIONS_MAX))]
    pub spot_interruptions: Option<i64>,
    /// What families do with a unit of their capacity, in percent of others: m7i=110,t3=70.
    #[arg(long, env = "LONGSHORE_FAMILY_PERFORMANCE", value_name = "FAMILY=PERCENT,…")]
    pub family_performance: Option<FamilyPerformance>,
    /// What happens when a launch cannot keep as many values open as `minValues` of a pool asks
    /// for: nothing is launched (strict, unless given), or what there is.
    #[arg(long, env = "LONGSHORE_MIN_VALUES_POLICY", value_name = "POLICY")]
    pub min_values_policy: Option<MinValues>,
    /// How much more a node may cost for the sake of what pods wish of other pods, in percent; 10
    /// unless given.
    #[arg(long, env = "LONGSHORE_PREFERENCE_PREMIUM", value_name = "PERCENT",
        allow_negative_numbers = true, value_parser = clap::value_parser!(i64).range(0..=PREMIUM_MAX))]
    pub preference_premium: Option<i64>,
    /// How long a launch that further pods could better is held while pods still arrive, in
    /// milliseconds; 1000 unless given, 0 for never. Up to five times that while kube-scheduler has
    /// hundreds of others to place first. A pod that comes alone waits for no other. One plan of
    /// files holds nothing.
    #[arg(long, env = "LONGSHORE_BURST_MAX_MS", value_name = "MS",
        allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(0..=BURST_MS_MAX))]
    pub burst_max_ms: Option<u64>,
}

/// How plans are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// What is minimised.
    pub objective: Objective,
    /// What happens when `minValues` of a pool cannot be kept.
    pub min_values: MinValuesPolicy,
    /// How much more a node may cost for a wish, in percent.
    pub preference_premium_percent: i64,
    /// How long launches that further pods could better are held while pods arrive.
    pub burst_max: Duration,
}

/// What happens when `minValues` of a pool cannot be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MinValues {
    /// Nothing is launched.
    Strict,
    /// What there is is launched.
    BestEffort,
}

/// Performance of families in percent of that of others, by family.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FamilyPerformance(BTreeMap<String, i64>);

impl Default for Settings {
    fn default() -> Self {
        SettingsArgs::default().settings()
    }
}

impl SettingsArgs {
    /// What they say, with everything that was left out.
    #[must_use]
    pub fn settings(&self) -> Settings {
        let families = self.family_performance.clone().unwrap_or_default();
        Settings {
            objective: Objective {
                node_fee_micro_usd_per_hour: self.node_fee.unwrap_or(NODE_FEE),
                interruption_cost_micro_usd: self.interruption_cost.unwrap_or(0),
                spot_interruptions_per_million_hours: self
                    .spot_interruptions
                    .unwrap_or(SPOT_INTERRUPTIONS),
                family_performance_percent: families.0,
            },
            min_values: match self.min_values_policy {
                Some(MinValues::BestEffort) => MinValuesPolicy::BestEffort,
                Some(MinValues::Strict) | None => MinValuesPolicy::Strict,
            },
            preference_premium_percent: self
                .preference_premium
                .unwrap_or(PREFERENCE_PREMIUM_PERCENT),
            burst_max: self.burst_max_ms.map_or(BURST_MAX, Duration::from_millis),
        }
    }
}

impl Settings {
    /// The same question, to be answered in this way.
    #[must_use]
    pub fn applied(&self, input: PlanInput) -> PlanInput {
        PlanInput {
            objective: self.objective.clone(),
            min_values: self.min_values,
            preference_premium_percent: self.preference_premium_percent,
            ..input
        }
    }
}

impl FromStr for FamilyPerformance {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut families = BTreeMap::new();
        for pair in text.split(',').filter(|pair| !pair.is_empty()) {
            let read = pair.split_once('=').and_then(|(name, percent)| {
                let percent: i64 = percent.parse().ok()?;
                (!name.is_empty() && PERFORMANCE_PERCENT.contains(&percent))
                    .then_some((name, percent))
            });
            let (least, most) = PERFORMANCE_PERCENT.into_inner();
            let (name, percent) = read.ok_or_else(|| {
                format!("{pair:?} is not a family with {least} to {most} percent; write m7i=110")
            })?;
            if families.insert(name.to_owned(), percent).is_some() {
                return Err(format!("family {name} is named twice; keep one of them"));
            }
        }
        Ok(Self(families))
    }
}

/// Dollars as millionths of them.
fn dollars(text: &str) -> Result<i64, String> {
    let amount = micro_usd(text).filter(|amount| *amount <= DOLLARS_MAX * MICRO_USD);
    amount.ok_or_else(|| {
        format!(
            "it is not within 0 to {DOLLARS_MAX} dollars; write it as 0.05, in millionths at most"
        )
    })
}

/// A decimal number in millionths, if it has no more decimals than that.
fn micro_usd(text: &str) -> Option<i64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let plain = !whole.is_empty() && part.len() <= 6 && digits(whole) && digits(part);
    plain.then(|| format!("{whole}{part:0<6}").parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Program {
        #[command(flatten)]
        settings: SettingsArgs,
    }

    fn read(words: &[&str]) -> Result<Settings, String> {
        let words = ["program"].iter().chain(words);
        let program = Program::try_parse_from(words).map_err(|error| error.to_string())?;
        Ok(program.settings.settings())
    }

    #[test]
    fn nothing_given_is_what_the_planner_does_by_itself() {
        let settings = read(&[]).unwrap();
        assert_eq!(settings, Settings::default());
        let (applied, plain) = (settings.applied(PlanInput::default()), PlanInput::default());
        assert_eq!(applied.min_values, plain.min_values);
        assert_eq!(applied.preference_premium_percent, plain.preference_premium_percent);
        let by_default = Objective {
            node_fee_micro_usd_per_hour: 1_000,
            spot_interruptions_per_million_hours: SPOT_INTERRUPTIONS,
            ..plain.objective
        };
        assert_eq!(applied.objective, by_default, "a rate without a cost weighs nothing");
    }

    #[test]
    fn every_setting_reaches_the_planner() {
        let line = "--node-fee 0.02 --interruption-cost 1.5 --spot-interruptions 300 \
                    --family-performance m7i=110,t3=70 --min-values-policy best-effort --preference-premium 25 \
                    --burst-max-ms 250";
        let settings = read(&line.split_whitespace().collect::<Vec<_>>()).unwrap();
        let input = settings.applied(PlanInput { now_ms: 7, ..PlanInput::default() });
        let objective = Objective {
            node_fee_micro_usd_per_hour: 20_000,
            interruption_cost_micro_usd: 1_500_000,
            spot_interruptions_per_million_hours: 300,
            family_performance_percent: [("m7i".to_owned(), 110), ("t3".to_owned(), 70)].into(),
        };
        assert_eq!(input.objective, objective);
        assert_eq!(input.min_values, MinValuesPolicy::BestEffort);
        assert_eq!((input.preference_premium_percent, input.now_ms), (25, 7));
        assert_eq!(settings.burst_max, Duration::from_millis(250));
    }

    #[test]
    fn what_is_absurd_is_refused_with_its_name_and_range() {
        for (words, name, range) in [
            (["--node-fee", "1000.01"], "--node-fee", "0 to 1000 dollars"),
            (["--node-fee", "-1"], "--node-fee", "0 to 1000 dollars"),
            (["--node-fee", "0.0000001"], "--node-fee", "0 to 1000 dollars"),
            (["--interruption-cost", "1e3"], "--interruption-cost", "0 to 1000 dollars"),
            (["--spot-interruptions", "1000001"], "--spot-interruptions", "0..=1000000"),
            (["--family-performance", "m7i=0"], "--family-performance", "10 to 1000 percent"),
            (["--family-performance", "m7i"], "--family-performance", "write m7i=110"),
            (["--family-performance", "a=90,a=90"], "--family-performance", "twice"),
            (["--min-values-policy", "some"], "--min-values-policy", "best-effort"),
            (["--preference-premium", "1001"], "--preference-premium", "0..=1000"),
            (["--burst-max-ms", "10001"], "--burst-max-ms", "0..=10000"),
        ] {
            let error = read(&words).unwrap_err();
            assert!(error.contains(name) && error.contains(range), "{words:?}: {error}");
        }
    }
}
