//! One run.

use std::process::ExitCode;
use std::time::Duration;

use crate::users::Users;
use crate::world::{Size, World};

/// Pause between two looks of the world at itself.
const STEP: Duration = Duration::from_millis(250);

pub fn main() -> ExitCode {
    let seed = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1);
    let minutes: u64 = std::env::args().nth(2).and_then(|text| text.parse().ok()).unwrap_or(10);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let started = std::time::Instant::now();
    let outcome = runtime.block_on(one(seed, minutes));
    println!("{outcome:?} wall {:?}", started.elapsed());
    ExitCode::SUCCESS
}

async fn one(seed: u64, minutes: u64) -> anyhow::Result<()> {
    let size = Size { clusters: vec![("prod", "111122223333", "us-east-1")], schedulers: 1, pods: 150 };
    let mut world = World::start(seed, &size).await?;
    let subscriber = tracing_subscriber::fmt()
        .with_writer(world.journal.clone())
        .with_timer(world.journal.clone())
        .with_ansi(false)
        .with_max_level(tracing::Level::INFO)
        .finish();
    tracing::subscriber::set_global_default(subscriber)?;
    let end = tokio::time::Instant::now() + Duration::from_secs(60 * minutes);
    for cluster in &world.clusters {
        let users = Users::new(cluster, seed, (size.pods, &world.judge), &world.journal);
        crate::process::start(users.act(end - Duration::from_secs(240)));
    }
    while tokio::time::Instant::now() < end {
        tokio::time::sleep(STEP).await;
        world.judge.look();
        for index in world.ended() {
            world.boot(index);
        }
    }
    world.journal.lines().iter().for_each(|line| println!("{line}"));
    println!("unrest: {:#?}", world.judge.unrest());
    println!("digest {:?} violations {:?}", world.journal.digest(), world.judge.violations());
    Ok(())
}
