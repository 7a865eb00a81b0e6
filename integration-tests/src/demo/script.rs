//! What happens in the demo, step by step.
//!
//! Invariant: a step ends when the cluster shows what was asked for, never after a fixed time.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result};
use longshore_lab::instance::{InstanceSource, InstanceState};
use longshore_lab::region::Offer;
use longshore_proto::types::v1::CapacityType;
use tokio::time::{Instant, interval};

use super::audit;
use super::summary::{InterruptionResult, StepResult, Summary};
use super::table::{self, Row, Table};
use super::world::DemoWorld;
use crate::parts::poll;
use crate::stage::eyes::{self, Sight};
use crate::stage::{agreement, hands};

/// How long the region may take until its offerings are known.
const REGION_LIMIT: Duration = Duration::from_secs(60);
/// How often the stage is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The workload.
const WORKLOAD: &str = "web";
const SELECTOR: &str = "app=web";
const NAMESPACE: &str = "default";

/// Plays all steps.
pub async fn play(world: &mut DemoWorld) -> Result<Summary> {
    let mut play = Play { started: Instant::now(), table: Table::start(), steps: Vec::new() };
    let (supply, workload): (Vec<_>, Vec<_>) =
        world.manifests.clone().into_iter().partition(|manifest| manifest["kind"] != "Deployment");
    hands::apply(&world.stage.client, &supply).await?;
    let sold_out = sell_out_cheapest(world).await?;
    table::say(&format!("        out of stock from the start: {sold_out}, the cheapest choice"));
    hands::apply(&world.stage.client, &workload).await?;
    play.until(world, "apply 4", 4, |sight| sight.running == 4 && sight.pending == 0).await?;
    hands::scale(&world.stage.client, NAMESPACE, WORKLOAD, 100).await?;
    play.until(world, "scale to 100", 100, |sight| sight.running == 100).await?;
    let interruption = play.interrupt(world).await?;
    hands::scale(&world.stage.client, NAMESPACE, WORKLOAD, 4).await?;
    table::say(
        "        back to 4: nodes that empty go at once; where pods stay, a cheaper node is bought in place of \
         theirs\n        when they have rested until its saving has paid, two minutes at most",
    );
    // All the way back: the same pods cost about what they cost at first, when one offering less
    // was out of stock.
    let region = world.stage.region.clone();
    let first = play.steps.first().map(|step| (step.price_usd_per_hour, step.nodes));
    let (first_price, first_nodes) = first.unwrap_or_default();
    let settled = |sight: &Sight| {
        let price = dollars(region.spend_micro_usd_per_hour());
        let back = price <= first_price * BACK_AGAIN && sight.all_nodes <= first_nodes;
        sight.running == 4 && sight.pending == 0 && back
    };
    play.until(world, "scale to 4", 4, settled).await?;
    let claims = eyes::claims(&world.stage.client).await?;
    let claimed: BTreeSet<String> = agreement::provider_ids(&claims).collect();
    let books = audit::books(&world.stage.region.instances(), &claimed);
    Ok(Summary {
        steps: play.steps,
        interruption,
        launches: books.launches,
        duplicate_launches: books.duplicates,
        leaked_instances: books.leaks,
        boot_seconds: world.boot_seconds,
        ..Summary::default()
    })
}

/// How much of the first price the way back may end at.
const BACK_AGAIN: f64 = 1.1;

/// Takes the offering that a plan would buy first out of stock.
async fn sell_out_cheapest(world: &DemoWorld) -> Result<String> {
    let planned = poll::until("the region is known", REGION_LIMIT, || world.plan(4)).await?;
    let candidate = planned.nodes.first().and_then(|node| node.candidates.first());
    let candidate = candidate.context("no offering for the workload")?;
    let spot = candidate.capacity_type() == CapacityType::Spot;
    let offer = Offer::new(&candidate.instance_type, &candidate.zone, spot);
    let name = offer_name(&offer);
    world.stage.region.set_capacity(offer, Some(0));
    Ok(name)
}

fn offer_name(offer: &Offer) -> String {
    let bought = if offer.spot { "spot" } else { "on-demand" };
    format!("{} {bought} in {}", offer.instance_type, offer.zone)
}

struct Play {
    started: Instant,
    table: Table,
    steps: Vec<StepResult>,
}

impl Play {
    /// Watches until `done`, and records the step.
    async fn until(
        &mut self,
        world: &mut DemoWorld,
        step: &str,
        pods: u32,
        done: impl Fn(&Sight) -> bool,
    ) -> Result<()> {
        let began = Instant::now();
        let sight = self.watch(world, step, done).await?;
        let price = world.stage.region.spend_micro_usd_per_hour();
        let (bound, fee) = bound(world, pods).await?;
        let fees = fee * u64::try_from(sight.all_nodes).unwrap_or_default();
        self.steps.push(StepResult {
            name: step.to_owned(),
            pods,
            pods_running: sight.running,
            nodes: sight.all_nodes,
            seconds: began.elapsed().as_secs_f64(),
            price_usd_per_hour: dollars(price),
            cost_usd_per_hour: dollars(price + fees),
            lower_bound_usd_per_hour: dollars(bound),
        });
        Ok(())
    }

    async fn watch(
        &mut self,
        world: &mut DemoWorld,
        step: &str,
        done: impl Fn(&Sight) -> bool,
    ) -> Result<Sight> {
        let mut ticks = interval(LOOK_EVERY);
        loop {
            ticks.tick().await;
            world.stage.ensure_running()?;
            let sight = eyes::look(&world.stage.client, NAMESPACE, SELECTOR).await?;
            self.table.show(&Row {
                at: self.started.elapsed(),
                step,
                sight: &sight,
                price_micro_usd_per_hour: world.stage.region.spend_micro_usd_per_hour(),
            });
            if done(&sight) {
                return Ok(sight);
            }
        }
    }

    /// Takes a spot instance away and waits until its pods run elsewhere.
    async fn interrupt(&mut self, world: &mut DemoWorld) -> Result<InterruptionResult> {
        let instances = world.stage.region.instances();
        let running = |instance: &&longshore_lab::instance::Instance| {
            instance.spot && instance.state == InstanceState::Running
        };
        let victim = instances.iter().find(running).context("no spot instance to interrupt")?;
        let sight = eyes::look(&world.stage.client, NAMESPACE, SELECTOR).await?;
        let pods_moved = sight.pods_on.get(&victim.private_dns_name).map_or(0, Vec::len);
        let began = Instant::now();
        world.stage.region.interrupt_spot(&victim.instance_id)?;
        let node = victim.private_dns_name.clone();
        let moved = |sight: &Sight| sight.running == 100 && !sight.pods_on.contains_key(&node);
        self.until(world, "interruption", 100, moved).await?;
        let seconds = began.elapsed().as_secs_f64();
        Ok(InterruptionResult { noticed_to_replacement_ready_seconds: seconds, pods_moved })
    }
}

/// No nodes that carry so many replicas cost less, in micro-dollars per hour; and what each node
/// costs besides its price.
async fn bound(world: &DemoWorld, pods: u32) -> Result<(u64, u64)> {
    let plan = world.plan(pods).await?;
    let bound = plan.bound.context("a plan without a bound")?.price_micro_usd_per_hour;
    let fees = plan.cost_micro_usd_per_hour - plan.price_micro_usd_per_hour;
    let fee = fees / i64::try_from(plan.nodes.len().max(1))?;
    Ok((u64::try_from(bound).unwrap_or_default(), u64::try_from(fee).unwrap_or_default()))
}

/// Micro-dollars as dollars.
fn dollars(micro: u64) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "prices have far fewer digits than a double")]
    let dollars = micro as f64;
    dollars / 1e6
}
