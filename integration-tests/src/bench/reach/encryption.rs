//! What it costs that both ends of a hop prove who they are, and that nobody else can read it.
//!
//! Invariant: two schedulers of one build above one region, one in plain text; they are asked by
//! turns, so that what else the machine does meets both.

use std::time::Duration;

use anyhow::{Context as _, Result};
use longshore_lab::region::ACCOUNT;
use longshore_proto::planning::v1::planning_service_client::PlanningServiceClient;
use longshore_proto::planning::v1::{ComputePlanOptions, ComputePlanRequest};
use longshore_proto::types::v1::PodCount;
use longshore_runtime::client;
use longshore_runtime::identity::Identity;
use longshore_runtime::platform::Platform;
use longshore_runtime::tls::Server;
use tokio::time::{Instant, timeout};
use tonic::transport::Channel;

use super::EncryptionArgs;
use super::cluster::{Cluster, REGION, Size};
use super::quantity::Quantity;
use super::stand::{ANY_PORT, Stand};
use super::watcher::Watcher;
use crate::bench::numbers::{median, percentile};
use crate::bench::tell;
use crate::stage::keys::Keys;
use crate::stage::services::{Service, Surroundings};

/// Encrypted over plain.
const LIMITS: (f64, f64) = (1.05, 1.01);
/// Pods that a plan is for.
const PODS: u32 = 100;
/// Sessions of one cluster are opened at a limited rate: each of these has so many.
const SESSIONS_EACH: u32 = 4;
/// Plans that are not counted.
const WARM: u32 = 10;
/// Longest that taking a cluster in may take.
const LIMIT: Duration = Duration::from_secs(30);

/// One of the two, and by what it is reached.
struct Side {
    scheduler: Service,
    keys: Option<Keys>,
}

impl Side {
    async fn start(stand: &Stand, keys: Option<Keys>) -> Result<Self> {
        let plain = Surroundings::without_cluster(stand.dir(), REGION, "");
        let around = Surroundings { keys: keys.clone(), ..plain };
        let name = if keys.is_some() { "encrypted" } else { "plain" };
        let actuators = [stand.region_url().to_owned()];
        let scheduler = around.start_scheduler_as(name, ANY_PORT, &actuators).await?;
        Ok(Self { scheduler, keys })
    }

    /// A channel of a client, or of the watcher of a cluster.
    fn channel(&self, cluster: Option<&Cluster>) -> Result<Channel> {
        let caller = match (&self.keys, cluster) {
            (None, _) => Platform::system(),
            (Some(keys), None) => keys.client()?,
            (Some(keys), Some(cluster)) => keys.platform(&Identity::Cluster {
                account: ACCOUNT.to_owned(),
                region: REGION.to_owned(),
                name: cluster.name.clone(),
            })?,
        };
        client::channel_to(Server::Scheduler, &self.scheduler.url(), &caller)
    }
}

/// Measures.
///
/// # Errors
/// When a part does not start, or no plan comes.
pub async fn measure(args: &EncryptionArgs) -> Result<Vec<Quantity>> {
    let size = Size { nodes: args.nodes, pods_each: args.pods_each };
    let stand = Stand::start(0, args.sessions.div_ceil(SESSIONS_EACH), size).await?;
    let keys = Keys::new(stand.dir())?;
    let sides = [Side::start(&stand, None).await?, Side::start(&stand, Some(keys)).await?];
    let first = stand.clusters.first().context("no cluster")?;
    tell(&format!("encryption: {} plans of each side", args.plans));
    let plans = plans(&sides, first, args.plans).await?;
    tell(&format!("encryption: {} sessions of each side", args.sessions));
    let mut sessions: [Vec<f64>; 2] = Default::default();
    for number in 0..args.sessions {
        let cluster = &stand.clusters[(number / SESSIONS_EACH) as usize];
        for (side, times) in sides.iter().zip(&mut sessions) {
            times.push(session(side, cluster, u64::from(number % SESSIONS_EACH) + 1).await?);
        }
    }
    Ok(vec![
        judge("a client's plan, encrypted over plain", &plans),
        judge("all of a cluster, sent and taken in, encrypted over plain", &sessions),
    ])
}

/// Times of plans for pods that come to a cluster, in thousandths of a second.
async fn plans(sides: &[Side; 2], cluster: &Cluster, count: u32) -> Result<[Vec<f64>; 2]> {
    let question = ComputePlanRequest {
        options: Some(ComputePlanOptions { region: REGION.to_owned(), ..Default::default() }),
        objects: cluster.objects(),
        pods: vec![PodCount { shape_id: "small".to_owned(), count: PODS }],
        catalogue: None,
    };
    let [plain, encrypted] = sides;
    let mut clients =
        [plain.channel(None)?, encrypted.channel(None)?].map(PlanningServiceClient::new);
    let mut times: [Vec<f64>; 2] = Default::default();
    for number in 0..count + WARM {
        for (client, times) in clients.iter_mut().zip(&mut times) {
            let request = tokio_stream::once(question.clone());
            let asked = Instant::now();
            client.compute_plan(request).await.context("ComputePlan")?;
            if number >= WARM {
                times.push(asked.elapsed().as_secs_f64() * 1e3);
            }
        }
    }
    Ok(times)
}

/// Time from a session's opening until the scheduler has taken in all that the cluster is.
async fn session(side: &Side, cluster: &Cluster, epoch: u64) -> Result<f64> {
    let channel = side.channel(Some(cluster))?;
    let objects = cluster.objects();
    let asked = Instant::now();
    let mut watcher = Watcher::open_over(channel, cluster, objects, epoch).await?;
    timeout(LIMIT, watcher.acknowledged()).await.context("no answer comes")??;
    Ok(asked.elapsed().as_secs_f64() * 1e3)
}

/// The ratio of the middle ones.
fn judge(name: &str, [plain, encrypted]: &[Vec<f64>; 2]) -> Quantity {
    let detail = format!(
        "medians {:.2} ms and {:.2} ms, p90 {:.2} ms and {:.2} ms, of {} each",
        median(encrypted),
        median(plain),
        percentile(encrypted, 90),
        percentile(plain, 90),
        plain.len()
    );
    Quantity::new(name, " times", median(encrypted) / median(plain), LIMITS).with(detail, true)
}
