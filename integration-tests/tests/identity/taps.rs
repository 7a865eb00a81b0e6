//! What a tap on each hop hears while a node is bought: nothing that could be read.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Result, ensure};
use longshore_it::parts::poll;
use longshore_it::stage::hands;
use longshore_it::stage::home::Home;
use longshore_it::stage::keys::Keys;
use longshore_it::stage::services::Surroundings;
use longshore_it::stage::world::ROOT;
use longshore_lab::region::{Region, RegionConfig};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::{ANY_PORT, REGION};

/// What every session has in plain text: the preface of HTTP/2, and what it is about.
const WORDS: [&str; 2] = ["PRI * HTTP/2", "us-east-1"];
/// Bytes that a tap has heard at least once a node is bought.
const SPOKEN: usize = 2_000;
const LIMIT: Duration = Duration::from_secs(60);

/// Hands bytes on in both directions, and remembers them.
struct Tap {
    address: SocketAddr,
    heard: Arc<Mutex<Vec<u8>>>,
    // Owns the tasks: dropped, all end.
    _tasks: JoinSet<()>,
}

impl Tap {
    async fn before(server: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind(ANY_PORT).await?;
        let address = listener.local_addr()?;
        let heard = Arc::new(Mutex::new(Vec::new()));
        let (mut tasks, memory) = (JoinSet::new(), Arc::clone(&heard));
        tasks.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((near, _)) = listener.accept().await {
                let Ok(far) = TcpStream::connect(server).await else { continue };
                let ((from_near, to_near), (from_far, to_far)) =
                    (near.into_split(), far.into_split());
                open.spawn(pass(from_near, to_far, Arc::clone(&memory)));
                open.spawn(pass(from_far, to_near, Arc::clone(&memory)));
            }
        });
        Ok(Self { address, heard, _tasks: tasks })
    }

    fn heard(&self) -> Vec<u8> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Words that it could read.
    fn words(&self) -> Vec<&'static str> {
        let heard = self.heard();
        let in_it = |word: &&str| heard.windows(word.len()).any(|part| part == word.as_bytes());
        WORDS.into_iter().filter(in_it).collect()
    }
}

async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    memory: Arc<Mutex<Vec<u8>>>,
) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        memory.lock().unwrap_or_else(PoisonError::into_inner).extend(&buffer[..count]);
        if to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}

/// What taps hear between watcher and scheduler, and between scheduler and actuator, until an
/// instance is bought.
async fn overhear(keys: impl FnOnce(&Path) -> Result<Option<Keys>>) -> Result<[Tap; 2]> {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let region = Region::start(RegionConfig::simple(REGION)?).await?;
    let home = Home::start(false, dir.path()).await?;
    let root = Path::new(ROOT);
    hands::apply(&home.client, &hands::manifests(&root.join("deploy/crds"))?).await?;
    hands::established(&home.client).await?;
    let surroundings = Surroundings {
        keys: keys(dir.path())?,
        kubeconfig: home.kubeconfig.clone(),
        ..Surroundings::without_cluster(dir.path(), REGION, &region.endpoint_url())
    };
    let scheme = if surroundings.keys.is_some() { "https" } else { "http" };
    let actuator = surroundings.start_actuator("actuator", ANY_PORT).await?;
    let second = Tap::before(actuator.address).await?;
    let actuators = [format!("{scheme}://{}", second.address)];
    let scheduler = surroundings.start_scheduler(ANY_PORT, &actuators).await?;
    let first = Tap::before(scheduler.address).await?;
    let dialled = format!("{scheme}://{}", first.address);
    let _watcher = surroundings.start_watcher("watcher", &dialled)?;
    hands::apply(&home.client, &hands::manifests(&root.join("integration-tests/demo"))?).await?;
    poll::until("an instance is bought", LIMIT, || async {
        ensure!(region.spend_micro_usd_per_hour() > 0, "none yet");
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    for tap in [&first, &second] {
        let count = tap.heard().len();
        ensure!(count > SPOKEN, "only {count} bytes went past");
    }
    Ok([first, second])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tap_on_either_hop_hears_nothing() -> Result<()> {
    for tap in overhear(|dir| Keys::new(dir).map(Some)).await? {
        ensure!(tap.words().is_empty(), "read: {:?}", tap.words());
    }
    Ok(())
}

/// That the taps would hear what there is to be heard.
#[tokio::test(flavor = "multi_thread")]
async fn a_tap_on_plain_text_reads_it() -> Result<()> {
    for tap in overhear(|_| Ok(None)).await? {
        ensure!(tap.words() == WORDS, "only {:?}", tap.words());
    }
    Ok(())
}
