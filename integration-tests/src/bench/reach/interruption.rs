//! How long a node of an interrupted instance goes on taking pods, while many others join.
//!
//! Invariant: the clock starts before the message enters the queue, and stops when the API server
//! shows the node's taint, which the drain begins with. All three services are the real ones;
//! cluster and region are simulated.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Node;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, ResourceExt as _};
use longshore_lab::instance::{InstanceSource as _, InstanceState};
use longshore_lab::region::{CLUSTER, RegionConfig};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

use super::InterruptionArgs;
use super::quantity::Quantity;
use crate::bench::numbers::percentile;
use crate::bench::tell;
use crate::parts::poll;
use crate::stage::world::{World, WorldConfig};
use crate::stage::{crowd, eyes, hands};

/// From the message to the taint, in thousandths of a second.
const LIMITS: (f64, f64) = (1_000.0, 300.0);
/// Taint of a node that is to be emptied.
const TAINT: &str = "karpenter.sh/disrupted";
/// How long pods may take to run, and nodes to be tainted.
const PATIENCE: Duration = Duration::from_secs(300);
/// How long the last of the nodes that join take to boot: the time in which interruptions are
/// spread.
const JOINING: Duration = Duration::from_secs(30);

/// Measures.
///
/// # Errors
/// When a part does not start, nodes do not join, or an interruption has no effect.
pub async fn measure(args: &InterruptionArgs) -> Result<Vec<Quantity>> {
    let kept = tempfile::tempdir()?;
    let dir = args.logs.clone().unwrap_or_else(|| PathBuf::from(kept.path()));
    let mut config = RegionConfig::simple("us-east-1")?;
    let longest = u32::try_from(JOINING.as_millis())?;
    (config.timing.boot_min_ms, config.timing.boot_max_ms) = (500, longest);
    // They are measured to the taint; their end would only make more work for the machine.
    config.timing.spot_notice_ms = u32::try_from(PATIENCE.as_millis())?;
    let mut world = World::start(WorldConfig::new(config, CLUSTER, &dir)).await?;
    let client = world.client.clone();
    hands::apply(&client, &supply()).await?;
    tell(&format!("interruption: {} nodes for those that will be interrupted", args.interruptions));
    hands::apply(&client, &[crowd::workload("stays", args.interruptions)]).await?;
    running(&client, "stays", args.interruptions).await?;
    let terminating: Vec<_> = world.region.instances().into_iter().filter(is_up).collect();
    ensure!(terminating.len() >= args.interruptions as usize, "{} instances", terminating.len());
    let (tainted, mut taints) = mpsc::unbounded_channel();
    let mut watching = JoinSet::new();
    watching.spawn(watch(client.clone(), tainted));
    tell(&format!("interruption: {} more nodes, and interruptions as they join", args.joining));
    hands::apply(&client, &[crowd::workload("joins", args.joining)]).await?;
    launched(&world, args).await?;
    let joined_before = eyes::pool_nodes(&client).await?.len();
    let mut began = BTreeMap::new();
    for instance in terminating.iter().take(args.interruptions as usize) {
        began.insert(instance.private_dns_name.clone(), Instant::now());
        world.region.interrupt_spot(&instance.instance_id)?;
        sleep(JOINING.mul_f64(0.6) / args.interruptions.max(1)).await;
    }
    let joined_after = eyes::pool_nodes(&client).await?.len();
    let waits = waits(&began, &mut taints).await;
    world.ensure_running()?;
    Ok(vec![judge(&waits, began.len(), (joined_before, joined_after))])
}

/// Times until the taints that came, in thousandths of a second.
async fn waits(
    began: &BTreeMap<String, Instant>,
    taints: &mut mpsc::UnboundedReceiver<(String, Instant)>,
) -> Vec<f64> {
    let until = Instant::now() + PATIENCE;
    let mut waits = BTreeMap::new();
    while waits.len() < began.len() {
        let Ok(Some((node, at))) = timeout_at(until, taints.recv()).await else { break };
        if let Some(began) = began.get(&node) {
            let wait = at.saturating_duration_since(*began).as_secs_f64() * 1e3;
            waits.entry(node).or_insert(wait);
        }
    }
    waits.into_values().collect()
}

fn judge(waits: &[f64], interrupted: usize, (before, after): (usize, usize)) -> Quantity {
    let [p50, p99, most] = [50, 99, 100].map(|percent| percentile(waits, percent));
    let detail = format!(
        "{} of {interrupted} tainted; p50 {p50:.0} ms, longest {most:.0} ms; nodes there at the first \
         interruption {before}, at the last {after}",
        waits.len()
    );
    let name = "from an interruption's message to its node's taint, p99";
    let sound = waits.len() == interrupted && interrupted > 0 && after > before;
    Quantity::new(name, " ms", p99, LIMITS).with(detail, sound)
}

/// Tells of every node that has the taint.
async fn watch(client: Client, tainted: mpsc::UnboundedSender<(String, Instant)>) {
    let nodes: Api<Node> = Api::all(client);
    let mut changes = watcher(nodes, watcher::Config::default()).applied_objects().boxed();
    while let Some(node) = changes.next().await {
        let Ok(node) = node else { continue };
        let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
        if taints.into_iter().flatten().any(|taint| taint.key == TAINT) {
            // Whoever listened may have gone.
            drop(tainted.send((node.name_any(), Instant::now())));
        }
    }
}

fn is_up(instance: &longshore_lab::instance::Instance) -> bool {
    instance.state == InstanceState::Running && instance.spot
}

async fn running(client: &Client, app: &str, wanted: u32) -> Result<()> {
    poll::until(&format!("{wanted} pods of {app} run"), PATIENCE, || async {
        let sight = eyes::look(client, "default", &format!("app={app}")).await?;
        ensure!(sight.running == wanted as usize, "{} run, {} wait", sight.running, sight.pending);
        Ok::<_, anyhow::Error>(())
    })
    .await
}

/// Waits until the instances of those that join are launched: from then on they join one after the
/// other.
async fn launched(world: &World, args: &InterruptionArgs) -> Result<()> {
    let wanted = (args.interruptions + args.joining) as usize;
    poll::until("instances are launched", PATIENCE, || async {
        let found = world.region.instances().len();
        ensure!(found >= wanted, "{found} of {wanted}");
        Ok::<_, anyhow::Error>(())
    })
    .await
    .context("nobody joins")
}

/// A class, and a pool of the spot market whose nodes stay.
fn supply() -> [Value; 2] {
    let spot = json!({ "key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"] });
    crowd::supply(&[spot, crowd::families(&["c5", "m5", "r5", "c6i", "m6i", "r6i"])])
}
